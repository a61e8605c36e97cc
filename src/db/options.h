/* SPDX-License-Identifier: MIT
 *
 * The table of knobs (options.c), as the rest of the floor uses it.
 */
#ifndef TAMIZ_DB_OPTIONS_H
#define TAMIZ_DB_OPTIONS_H

#include "base/buf.h"
#include "base/op.h"

/* Every field within its bounds, and those that depend on each other; the detail says which not. */
tamiz_status options_check(const tamiz_options *options);
/* What a caller gave (NULL: nothing; shorter where it is older), completed by the defaults, the
 * real env among them, and checked. */
tamiz_status options_take(const tamiz_options *options, tamiz_options *taken);
/* "name=value" a line. */
void options_print(struct buf *out, const tamiz_options *options);
size_t options_row_count(void);

#endif
