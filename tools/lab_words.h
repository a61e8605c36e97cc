/* SPDX-License-Identifier: MIT
 *
 * The keys and probes of the lab's experiments: lines of files, or made up as the flags say.
 */
#ifndef TAMIZ_TOOLS_LAB_WORDS_H
#define TAMIZ_TOOLS_LAB_WORDS_H

#include "tool.h"
#include "words.h"

/* From --keys, or `count` made up as --keys-as says. An exit status; at least one at EXIT_DONE. */
int lab_keys_take(const struct call *call, struct words *words, uint64_t count);
/* From --probes, or `count` made up of keys[0..key_count) (sorted, one at least) as --probes-as
 * says: most of them absent. *shuffled: whether --order and the way they were made want them
 * shuffled, which is the caller's to do. An exit status; at least one at EXIT_DONE. */
int lab_probes_take(const struct call *call, struct words *words, const struct word *keys,
                    size_t key_count, uint64_t count, struct random *random, bool *shuffled);

#endif
