/* SPDX-License-Identifier: MIT
 *
 * Which of many ranges is the newest over a key. Seen from above, ranges of keys stacked by age
 * show one piece each stretch; that is the skyline, pieces that do not overlap, in key order:
 *
 *     30        +----+                 a  c    e       g    j
 *     20    +---|--------------+       |20|30  |  20   | 10 |
 *     10    |   |       +------|---+
 *           a   c    e         g   j
 *
 * Persistent: putting a range on top makes a new skyline that shares most nodes with the old one,
 * which stays as it was, so that readers of any moment need no lock. A treap (R. Seidel, C. Aragon,
 * "Randomized search trees", 1996) whose path is copied: O(log n) a range, whatever lies below it,
 * where cutting all ranges at all ends would take n^2 for ranges that all begin at one key.
 */
#ifndef TAMIZ_BASE_SKYLINE_H
#define TAMIZ_BASE_SKYLINE_H

#include "base/arena.h"
#include "base/slice.h"

/* One piece: keys in [from, to). */
struct cover {
    struct slice from, to;
    uint64_t seq;
    uint32_t source; /* whatever its maker wants to know of it */
};

struct skyline; /* NULL: nothing is covered */

/* `piece` on top of all that `under` has; from < to, its bytes stay the caller's and outlive the
 * result. The nodes lie in the arena. NULL: memory is out. */
const struct skyline *skyline_add(struct arena *arena, const struct skyline *under,
                                  const struct cover *piece);
/* The piece over `key`, or NULL. */
const struct cover *skyline_find(const struct skyline *skyline, struct slice key);
/* The first piece that ends above `key`, or NULL. */
const struct cover *skyline_from(const struct skyline *skyline, struct slice key);
/* The same, and where the piece before it ends (*end; its data is NULL: there is none). */
const struct cover *skyline_around(const struct skyline *skyline, struct slice key,
                                   struct slice *end);
/* All pieces in key order. */
void skyline_walk(const struct skyline *skyline, void (*see)(void *ctx, const struct cover *piece),
                  void *ctx);

#endif
