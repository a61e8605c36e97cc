/* SPDX-License-Identifier: MIT
 *
 * Whose directory is it? The names of a store's files are those of other stores too (CURRENT, LOCK,
 * MANIFEST-000002, 000003.log), so that names alone must not decide what is removed or put aside.
 *
 * A file has the mark where it begins with "TAMIZLOG" (manifests and logs) or begins or ends with
 * "TAMIZTAB" (tables). One mark makes the directory a store's. With none it still may be one whose
 * creation or removal was cut short: nothing in it then but empty files and zeros, a LOCK that
 * names a holder, a CURRENT that names a manifest.
 */
#ifndef TAMIZ_VERSION_SIGNATURE_H
#define TAMIZ_VERSION_SIGNATURE_H

#include "env/env.h"

/* TAMIZ_OK: a store, or the rest of one. TAMIZ_NOT_FOUND: no file with such a name, or all of them
 * somebody else's; op then has words for it. */
tamiz_status store_signature(struct op *op, const tamiz_env *env, const char *directory);

#endif
