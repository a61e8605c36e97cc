/* SPDX-License-Identifier: MIT
 *
 * The lab's experiment, avoided-reads, as data: what is asked (lab_setup), what came out of it for
 * one filter (lab_row), and the whole (lab).
 */
#ifndef TAMIZ_TOOLS_LAB_H
#define TAMIZ_TOOLS_LAB_H

#include "tool.h"
#include "words.h"

/* One pass over the probes. */
struct lab_pass {
    tamiz_stats stats;          /* what this pass added                        */
    uint64_t kernel_read_bytes; /* by the kernel's account, of this process     */
    uint64_t store_read_bytes;  /* by the store's, all purposes together       */
    uint64_t nanoseconds;
    uint64_t absent_device_reads; /* of absent keys' probes; only a traced pass knows */
};

struct lab_row {
    char filter[64];
    double bits_per_key;
    uint64_t filter_bytes;
    double expected_fpr, measured_fpr;
    double sigmas; /* how far the two are apart, in standard deviations of the measurement */
    uint64_t probes, absent_probes;
    uint64_t filter_negatives, filter_false_positives;
    uint64_t device_reads_without, device_reads_with;
    int64_t device_reads_avoided; /* a filter that costs reads would show it */
    uint64_t absent_reads_without, absent_reads_with;
    uint64_t estimated_reads_avoided, estimated_reads_avoided_error;
    uint64_t kernel_read_bytes, store_read_bytes;                 /* with the filter */
    uint64_t kernel_read_bytes_without, store_read_bytes_without; /* without         */
    double ns_per_get, ns_per_get_without;
    uint64_t tables, table_bytes;
    uint64_t keys_checked, false_negatives;
};

struct lab {
    struct call *call;
    const char *filters, *cache, *directory;
    bool shuffled, tree;
    uint64_t seed;
    struct words key_words, probe_words;
    struct word *keys; /* sorted, no repeats */
    size_t key_count;
    struct word *load_order; /* the same, as they are loaded */
    struct word *probes;
    bool *present; /* of each probe */
    size_t probe_count, absent_count;
    double absent_independent; /* of the absent probes, as many as chance sees: repeats tell nothing
                                  new */
    struct lab_row *rows;
    size_t row_count;
    char note[200]; /* what the store said of direct I/O where it was refused, or "" */
    struct text machine;
};

/* Builds the store for one filter, runs the passes, fills in the row. An exit status. */
int lab_measure(struct lab *lab, const char *policy, struct lab_row *row);
/* The whole outcome as an object of JSON. */
void lab_json(const struct lab *lab, struct text *out);
void lab_print(const struct lab *lab);
/* "51,291", and "50,974 ± 916": how both tables show them. */
void lab_avoided_show(struct text *out, const struct lab_row *r);
void lab_estimate_show(struct text *out, const struct lab_row *r);
/* Writes what --report and --csv ask for. An exit status. */
int lab_report(const struct lab *lab);
/* The experiment "levels": lab_levels.c. An exit status. */
int lab_levels_run(struct call *call);

#endif
