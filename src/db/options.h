/* SPDX-License-Identifier: MIT
 *
 * The options, as the rest of the floor uses them: taken from the caller, checked, printed.
 */
#ifndef TAMIZ_DB_OPTIONS_H
#define TAMIZ_DB_OPTIONS_H

#include "base/buf.h"
#include "base/op.h"
#include "table/table_build.h"

/* Seconds that a value may be given to live: 100 years. */
#define TTL_MAX UINT64_C(3155760000)

/* Every field within its bounds, and those that depend on each other; the detail says which not. */
tamiz_status options_check(const tamiz_options *options);
/* What a caller gave (NULL: nothing; shorter where it is older), completed by the defaults, the
 * real env among them, and checked. */
tamiz_status options_take(const tamiz_options *options, tamiz_options *taken);
/* "name=value" a line. */
void options_print(struct buf *out, const tamiz_options *options);
size_t options_row_count(void);
struct prefix_rule options_prefix_rule(const tamiz_options *options);
/* How a table of that level is built under these options; the filter is as uniform memory has it.
 */
struct table_build_options options_recipe(const tamiz_options *options, uint32_t level,
                                          enum io_purpose purpose);

#endif
