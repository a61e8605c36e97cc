/* SPDX-License-Identifier: MIT
 *
 * What the page's C files share.
 */
#ifndef TAMIZ_PAGE_INSIDE_H
#define TAMIZ_PAGE_INSIDE_H

#include "base/buf.h"
#include "base/op.h"
#include "page.h"

#define PAGE_DIRECTORY "lab"

struct page_store {
    tamiz_env *env; /* owned */
    tamiz *db;      /* NULL: not open */
};

/* Hands `out` over and frees it. */
int page_hand(struct buf *out, struct page_bytes *bytes);
/* The next line of *text that is not empty, without its end; *text is what is left. */
bool page_line_next(struct slice *text, struct slice *line);
/* The fields of a filter, with no braces. */
void page_info_json(struct buf *out, const tamiz_filter_info *info);
void page_string_json(struct buf *out, struct slice text);

#endif
