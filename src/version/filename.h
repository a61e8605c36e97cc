/* SPDX-License-Identifier: MIT
 *
 * 000012.sst and back: what each name in a store's directory means.
 *
 *     CURRENT           one line, the name of the manifest in force
 *     CURRENT.new       the next CURRENT while it is written
 *     LOCK              held by whoever has the store open
 *     MANIFEST-000007   which tables exist, as logged edits
 *     000012.log        write-ahead log
 *     000013.sst        table
 */
#ifndef TAMIZ_VERSION_FILENAME_H
#define TAMIZ_VERSION_FILENAME_H

#include "base/alloc.h"

enum file_kind {
    FILE_OTHER,
    FILE_CURRENT,
    FILE_CURRENT_NEW,
    FILE_LOCK,
    FILE_MANIFEST,
    FILE_LOG,
    FILE_TABLE
};

enum { FILE_NAME_MAX = 48 };
#define FILE_NUMBER_END (UINT64_C(1) << 62) /* numbers are 1 to below this */

/* Exactly what filename_format writes. FILE_OTHER: not one of ours, never touched. *number is 0
 * where the kind has none. */
enum file_kind filename_parse(const char *name, uint64_t *number);
/* "000012.sst" into `out` of FILE_NAME_MAX bytes. */
void filename_format(enum file_kind kind, uint64_t number, char *out);
/* "DIRECTORY/NAME", owned (mem_free_text). NULL: memory is out. */
char *filename_path(const struct alloc *alloc, const char *directory, enum file_kind kind,
                    uint64_t number);

#endif
