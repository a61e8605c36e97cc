/* SPDX-License-Identifier: MIT
 *
 * What the lab's experiments have in common: keys and probes, from files or made up; a store that
 * is built for a while; a pass over the probes that checks each answer.
 */
#ifndef TAMIZ_TOOLS_LAB_KIT_H
#define TAMIZ_TOOLS_LAB_KIT_H

#include "sheet.h"
#include "tool.h"
#include "words.h"

struct kit {
    struct call *call;
    const char *directory;
    uint64_t seed;
    struct words key_words, probe_words;
    struct word *keys; /* sorted, no repeats; owned, as the next ones */
    size_t key_count;
    struct word *load_order;
    struct word *probes;
    bool *present; /* of each probe */
    size_t probe_count, absent_count;
    char path[4096];  /* of the store that was made; "" */
    tamiz_stats made; /* as it was when that was done */
};

/* From --keys, --probes, --count, --probe-count, --keys-as, --probes-as, --order, --seed, --dir.
 * `keys`, `probes`: how many are made up where nothing is said. An exit status. */
int kit_take(struct kit *kit, struct call *call, uint64_t keys, uint64_t probes);
/* The same in two halves, between which kit->key_words may be filled from elsewhere. */
int kit_begin(struct kit *kit, struct call *call);
int kit_fill(struct kit *kit, uint64_t keys, uint64_t probes);
void kit_free(struct kit *kit);
/* "500,000 keys, 100,000 probes, 93,750 of them of absent keys" */
void kit_show(struct text *out, const struct kit *kit);

/* A store in a directory of its own with the first `count` of the load order, all background work
 * done. -o comes first, then `options`. An exit status. */
int kit_store_make(struct kit *kit, const char *options, size_t count);
int kit_store_remove(struct kit *kit, int status);

struct kit_pass {
    tamiz_stats stats;
    double ns_per_get;
};
/* The store opened anew for reading, all probes in order. `count`: of the load order that was
 * loaded. */
int kit_pass(struct kit *kit, const char *options, bool use_filters, const char *label,
             struct kit_pass *pass);

/* One experiment. An exit status. */
int lab_curve(struct call *call);
int lab_cache(struct call *call);
int lab_size(struct call *call);
int lab_whatif(struct call *call);
int lab_writes(struct call *call);

#endif
