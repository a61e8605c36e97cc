/* SPDX-License-Identifier: MIT
 *
 * A query told in words. What families have in common; each tells the rest in its own file.
 */
#include "filter/family.h"

void filter_view_story(const struct filter_view *view, uint64_t hash, struct buf *out)
{
    if (view->family && view->family->story)
        view->family->story(view, hash, out);
}

void filter_story_bit(struct filter_bits_story *story, struct buf *out, uint64_t bit, bool set)
{
    buf_printf(out, " %llu", (unsigned long long)bit);
    if (!set && !story->clear)
        story->clear = bit + 1;
}

void filter_story_bits_end(const struct filter_bits_story *story, struct buf *out)
{
    if (story->clear)
        buf_printf(out, ": %llu is clear", (unsigned long long)story->clear - 1);
    else
        buf_text(out, ": all set");
}
