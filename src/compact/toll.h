/* SPDX-License-Identifier: MIT
 *
 * When readers have paid for a merge. Every run that a tree has beside its last costs each read
 * that comes as far as its tables: a get the look into one more filter, a seek one more place to
 * begin at. A merge of B bytes ends that, and costs as much for each byte however long it is put
 * off. So reads are counted, and a merge is due as soon as what they paid for runs in vain is what
 * the merge costs ("ski rental": A. R. Karlin, M. S. Manasse, L. Rudolph, D. D. Sleator,
 * "Competitive snoopy caching", Algorithmica 3, 1988): whatever comes, that is at most twice the
 * cost of whoever knew beforehand how many reads there would be. Where nobody reads nothing is
 * merged early, and where there are many reads the tree has few runs though it is written all the
 * time.
 *
 *     6 runs, 1,000,000 gets since the last look: 5 runs in vain, 50 ns each: 250 ms, 50 MB merged
 *     2 runs, 10,000 gets, 1000 seeks: 1.2 ms, which is less than any merge costs: nothing
 *
 * What was paid and not spent is forgotten where nothing is left to be merged. Pure arithmetic.
 */
#ifndef TAMIZ_COMPACT_TOLL_H
#define TAMIZ_COMPACT_TOLL_H

#include <stdbool.h>
#include <stdint.h>

/* Reads so far that came as far as the tables. */
struct toll_reads {
    uint64_t gets, seeks;
};

struct toll {
    struct toll_reads seen; /* at the last look */
    double paid_ns;         /* and not spent yet */
    double vain_ns; /* with which nothing could be bought, as long as the tree stays as it is */
};

/* They saw `runs` runs since the last look. */
void toll_look(struct toll *t, struct toll_reads now, uint32_t runs);
/* Bytes that may be merged for what was paid. 0: nothing worth the asking, or what was paid is not
 * a good part more than what was of no use before. */
uint64_t toll_buys(const struct toll *t);
/* For all that was paid there was nothing. */
void toll_in_vain(struct toll *t);
/* So much is merged now. */
void toll_spend(struct toll *t, uint64_t bytes);
/* The tree is another one. */
void toll_changed(struct toll *t);
/* Nothing is left to be merged. */
void toll_forget(struct toll *t);

#endif
