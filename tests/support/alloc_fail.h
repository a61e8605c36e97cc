/* SPDX-License-Identifier: MIT
 *
 * An allocator that counts, fails where it is told to, and checks its callers: each piece carries
 * its size in front, so that a wrong `old_size` shows, and what was not given back is known. Any
 * thread.
 *
 *     for (uint64_t nth = 1; !done; nth++) {
 *         struct alloc_fail a;
 *         alloc_fail_init(&a);
 *         alloc_fail_at(&a, nth, false);
 *         done = whatever(&a.alloc) == TAMIZ_OK && a.failed == 0;
 *         alloc_fail_done(&a);
 *     }
 */
#ifndef TAMIZ_ALLOC_FAIL_H
#define TAMIZ_ALLOC_FAIL_H

#include "support/test.h"

struct alloc_fail {
    struct alloc alloc;       /* .hook goes into tamiz_options.allocator */
    _Atomic uint64_t asked;   /* allocations and resizes so far, failed ones too */
    _Atomic uint64_t fail_at; /* by that number; 0: never */
    _Atomic bool sticky;      /* and all after it */
    _Atomic uint64_t failed;
    _Atomic uint64_t blocks, bytes; /* in use */
    _Atomic uint64_t most_bytes;    /* in use at once, at most */
    _Atomic uint64_t largest;       /* single request */
    _Atomic uint64_t wrong;         /* sizes that were not what was given out */
};

/* Fails nothing yet. `a` does not move. */
void alloc_fail_init(struct alloc_fail *a);
/* The nth request from now on fails, from 1; 0: none. */
void alloc_fail_at(struct alloc_fail *a, uint64_t nth, bool sticky);
/* The test fails unless all was given back with the right sizes. */
void alloc_fail_done(const struct alloc_fail *a);

#endif
