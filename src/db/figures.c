/* SPDX-License-Identifier: MIT */
#include "db/figures.h"

#include <stddef.h>

/* clang-format off */
#define LEVEL(f)     {#f, offsetof(tamiz_level_stats, f), false, false}
#define LEVEL_NOW(f) {#f, offsetof(tamiz_level_stats, f), false, true}
#define STORE(f)     {#f, offsetof(tamiz_stats, f), false, false}
#define STORE_NOW(f) {#f, offsetof(tamiz_stats, f), false, true}
/* clang-format on */

const struct figure figures_of_level[FIGURES_OF_LEVEL] = {
    LEVEL_NOW(tables),
    LEVEL_NOW(bytes),
    LEVEL_NOW(keys),
    LEVEL_NOW(filter_bytes),
    LEVEL(tables_considered),
    LEVEL(filter_probes),
    LEVEL(filter_negatives),
    LEVEL(filter_true_positives),
    LEVEL(filter_false_positives),
    {"filter_expected_false_positives",
     offsetof(tamiz_level_stats, filter_expected_false_positives), true, false},
    LEVEL(filter_unavailable),
    LEVEL(block_cache_hits),
    LEVEL(block_cache_misses),
    LEVEL(device_reads),
    LEVEL(device_read_bytes),
    LEVEL_NOW(device_reads_avoided),
    LEVEL_NOW(device_reads_avoided_error),
    LEVEL(not_asked_outside_range),
    LEVEL(not_asked_answered_above),
};

const struct figure figures_of_store[FIGURES_OF_STORE] = {
    STORE(gets),
    STORE(gets_found),
    STORE(memtable_hits),
    STORE(syncs),
    STORE(flushes),
    STORE(flush_bytes_in),
    STORE(flush_bytes_out),
    STORE(compactions),
    STORE(compaction_bytes_in),
    STORE(compaction_bytes_out),
    STORE(stalls),
    STORE(stall_us),
    STORE(stall_flush_us),
    STORE(stall_level0_us),
    STORE(stall_debt_us),
    STORE_NOW(cache_bytes),
    STORE_NOW(memtable_bytes),
    STORE_NOW(table_memory_bytes),
    STORE(filter_audits),
    STORE(filter_denials),
    STORE_NOW(range_deletes),
    STORE(range_deleted),
    STORE(tables_dropped),
    STORE(compaction_filter_dropped),
    STORE(compaction_filter_changed),
    STORE(compaction_filter_again),
    STORE(prefix_probes),
    STORE(prefix_negatives),
    STORE(prefix_false_positives),
    STORE(prefix_unavailable),
    STORE(checkpoints),
    STORE(backups),
    STORE(copied_bytes_linked),
    STORE(copied_bytes),
    STORE(ingests),
    STORE(ingested_tables),
    STORE(ingested_bytes_linked),
    STORE(ingested_bytes_copied),
    STORE(background_us),
    STORE(filter_build_us),
    STORE(memory_bytes),
};

const struct figure figures_of_io[FIGURES_OF_IO] = {
    STORE(data), STORE(index), STORE(filter), STORE(meta), STORE(log), STORE(compaction),
};

void figure_print(struct buf *out, const void *from, const struct figure *f)
{
    const char *at = (const char *)from + f->offset;
    if (f->real)
        buf_printf(out, "%.6g", *(const double *)(const void *)at);
    else
        buf_printf(out, "%llu", (unsigned long long)*(const uint64_t *)(const void *)at);
}
