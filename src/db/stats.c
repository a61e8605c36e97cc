/* SPDX-License-Identifier: MIT
 *
 * Statistics and properties: sums of the slots' counters, and the shape of the tree, as numbers and
 * as text.
 */
#include <math.h>

#include "db/background.h"
#include "db/figures.h"
#include "db/ledger.h"
#include "db/options.h"
#include "db/prometheus.h"
#include "db/scan.h"
#include "db/trust.h"
#include "db/view.h"

/* All counters of a keyspace: slots, views, closed iterators and ended jobs, open iterators. */
static void sum_counters(struct tamiz *db, struct counters *sum)
{
    struct store *s = db->store;
    memset(sum, 0, sizeof *sum);
    epoch_counters(db->slots, sum);
    views_sum(db, sum);
    mutex_lock(&s->mutex);
    counters_sum(sum, &db->ended);
    for (const struct tamiz_iter *it = s->iters; it; it = it->following)
        if (it->db == db)
            counters_sum(sum, &it->count);
    mutex_unlock(&s->mutex);
}

static void fill_level(tamiz_level_stats *to, const struct level_counters *c)
{
    const uint64_t no = counter_get(&c->steps[TAMIZ_STEP_FILTER_NEGATIVE]);
    const uint64_t maybe = counter_get(&c->steps[TAMIZ_STEP_FILTER_MAYBE]);
    to->filter_unavailable = counter_get(&c->steps[TAMIZ_STEP_NO_FILTER]);
    to->filter_probes = no + maybe;
    to->tables_considered = no + maybe + to->filter_unavailable;
    to->filter_negatives = no;
    to->filter_true_positives = counter_get(&c->true_positives);
    to->filter_false_positives = counter_get(&c->false_positives);
    to->filter_expected_false_positives = (double)counter_get(&c->expected_fp_1e9) / 1e9;
    to->block_cache_hits = counter_get(&c->steps[TAMIZ_STEP_BLOCK_CACHED]);
    to->block_cache_misses = to->device_reads = counter_get(&c->steps[TAMIZ_STEP_BLOCK_DEVICE]);
    to->device_read_bytes = counter_get(&c->device_read_bytes);
    to->not_asked_outside_range = counter_get(&c->outside_range);
    to->not_asked_answered_above = counter_get(&c->answered_above);
}

static void add_level(tamiz_level_stats *sum, const tamiz_level_stats *l)
{
    sum->tables += l->tables;
    sum->bytes += l->bytes;
    sum->keys += l->keys;
    sum->filter_bytes += l->filter_bytes;
    sum->tables_considered += l->tables_considered;
    sum->filter_probes += l->filter_probes;
    sum->filter_negatives += l->filter_negatives;
    sum->filter_true_positives += l->filter_true_positives;
    sum->filter_false_positives += l->filter_false_positives;
    sum->filter_expected_false_positives += l->filter_expected_false_positives;
    sum->filter_unavailable += l->filter_unavailable;
    sum->block_cache_hits += l->block_cache_hits;
    sum->block_cache_misses += l->block_cache_misses;
    sum->device_reads += l->device_reads;
    sum->device_read_bytes += l->device_read_bytes;
    sum->not_asked_outside_range += l->not_asked_outside_range;
    sum->not_asked_answered_above += l->not_asked_answered_above;
}

static tamiz_io_stats io_of(const struct io_counters *c)
{
    return (tamiz_io_stats){counter_get(&c->reads), counter_get(&c->read_bytes),
                            counter_get(&c->writes), counter_get(&c->write_bytes)};
}

/* The tree as it is: tables, bytes, keys by level; memory of loaded tables and of memtables. */
static void fill_shape(tamiz_stats *out, const struct view *view)
{
    for (uint32_t r = 0; r < view->version->run_count; r++) {
        const struct run *run = &view->version->runs[r];
        tamiz_level_stats *level = &out->level[run->level];
        for (uint32_t i = 0; i < run->count; i++) {
            const struct table_meta *meta = run->tables[i];
            level->tables++;
            level->bytes += meta->file_size;
            level->keys += meta->keys;
            level->filter_bytes += meta->filter_bytes;
            out->range_deletes += meta->ranges;
            out->table_memory_bytes += table_memory(meta->table);
        }
    }
    for (uint32_t i = 0; i < view->memtable_count; i++)
        out->memtable_bytes += memtable_bytes(view->memtables[i]->memtable);
}

/* Of signed terms; what is avoided is not below 0. */
static void fill_estimate(tamiz_level_stats *to, const struct estimate *e)
{
    to->device_reads_avoided = e->avoided > 0 ? (uint64_t)llround(e->avoided) : 0;
    to->device_reads_avoided_error = (uint64_t)llround(ledger_error(e));
}

static void fill_prefixes(tamiz_stats *out, const struct level_counters *c)
{
    const uint64_t no = counter_get(&c->steps[TAMIZ_STEP_PREFIX_NEGATIVE]);
    out->prefix_negatives += no;
    out->prefix_probes += no + counter_get(&c->steps[TAMIZ_STEP_PREFIX_MAYBE]);
    out->prefix_false_positives += counter_get(&c->prefix_false_positives);
    out->prefix_unavailable += counter_get(&c->steps[TAMIZ_STEP_NO_PREFIX_FILTER]);
}

static void fill_counters(tamiz_stats *out, const struct counters *c)
{
    struct estimate sum = {0};
    out->gets = counter_get(&c->gets);
    out->gets_found = counter_get(&c->gets_found);
    out->memtable_hits = counter_get(&c->memtable_hits);
    out->syncs = counter_get(&c->syncs);
    out->flushes = counter_get(&c->flushes);
    out->flush_bytes_in = counter_get(&c->flush_bytes_in);
    out->flush_bytes_out = counter_get(&c->flush_bytes_out);
    out->compactions = counter_get(&c->compactions);
    out->compaction_bytes_in = counter_get(&c->compaction_bytes_in);
    out->compaction_bytes_out = counter_get(&c->compaction_bytes_out);
    out->stalls = counter_get(&c->stalls);
    out->stall_us = counter_get(&c->stall_us);
    out->stall_flush_us = counter_get(&c->stall_flush_us);
    out->stall_level0_us = counter_get(&c->stall_level0_us);
    out->stall_debt_us = counter_get(&c->stall_debt_us);
    out->background_us = counter_get(&c->background_us);
    out->filter_build_us = counter_get(&c->filter_build_us);
    out->tables_dropped = counter_get(&c->tables_dropped);
    out->compaction_filter_dropped = counter_get(&c->judged_dropped);
    out->compaction_filter_changed = counter_get(&c->judged_changed);
    out->compaction_filter_again = counter_get(&c->judged_again);
    out->range_deleted = counter_get(&c->memtables.steps[TAMIZ_STEP_RANGE_TOMBSTONE]);
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        out->range_deleted += counter_get(&c->level[i].steps[TAMIZ_STEP_RANGE_TOMBSTONE]);
    out->filter_audits = counter_get(&c->filter_audits);
    out->filter_denials = counter_get(&c->filter_denials);
    out->checkpoints = counter_get(&c->checkpoints);
    out->backups = counter_get(&c->backups);
    out->copied_bytes_linked = counter_get(&c->copied_bytes_linked);
    out->copied_bytes = counter_get(&c->copied_bytes);
    out->ingests = counter_get(&c->ingests);
    out->ingested_tables = counter_get(&c->ingested_tables);
    out->ingested_bytes_linked = counter_get(&c->ingested_bytes_linked);
    out->ingested_bytes_copied = counter_get(&c->ingested_bytes_copied);
    tamiz_io_stats *const io[IO_PURPOSES] = {
        [IO_DATA] = &out->data, [IO_INDEX] = &out->index, [IO_FILTER] = &out->filter,
        [IO_META] = &out->meta, [IO_LOG] = &out->log,     [IO_COMPACTION] = &out->compaction};
    for (int i = 0; i < IO_PURPOSES; i++)
        *io[i] = io_of(&c->io[i]);
    for (int i = 0; i < TAMIZ_LEVELS; i++) {
        fill_level(&out->level[i], &c->level[i]);
        add_level(&out->total, &out->level[i]);
        fill_prefixes(out, &c->level[i]);
        const struct estimate one = ledger_estimate(c, &c->level[i]);
        fill_estimate(&out->level[i], &one);
        sum = (struct estimate){sum.avoided + one.avoided, sum.variance + one.variance,
                                sum.model + one.model};
    }
    fill_estimate(&out->total, &sum);
}

static uint64_t memory_of(const struct store *s)
{
    const size_t taken = alloc_bytes(&s->memory), untouched = heap_untouched(cache_heap(s->cache));
    return taken > untouched ? taken - untouched : 0;
}

static void stats_fill(tamiz *db, tamiz_stats *out, struct counters *room)
{
    struct store *s = db->store;
    uint64_t seq;
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    struct epoch_slot *slot = epoch_enter(&s->epoch);
    fill_shape(out, view_borrow(db, &seq));
    epoch_leave(slot);
    sum_counters(db, room);
    fill_counters(out, room);
    out->cache_bytes = cache_bytes(s->cache);
    out->memory_bytes = memory_of(s);
}

tamiz_status tamiz_stats_get(tamiz *db, tamiz_stats *stats)
{
    const tamiz_status st = store_check(db);
    if (st != TAMIZ_OK)
        return st;
    if (!stats || stats->struct_size < sizeof stats->struct_size)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "stats: NULL, or not from TAMIZ_STATS_INIT");
    struct counters *room = mem_new_array(&db->store->alloc, 1, sizeof *room);
    tamiz_stats *all = mem_new_array(&db->store->alloc, 1, sizeof *all);
    if (room && all) {
        const size_t size = stats->struct_size < sizeof *all ? stats->struct_size : sizeof *all;
        stats_fill(db, all, room);
        all->struct_size = stats->struct_size;
        memcpy(stats, all, size);
    }
    const bool done = room && all;
    mem_free(&db->store->alloc, room, sizeof *room);
    mem_free(&db->store->alloc, all, sizeof *all);
    return done ? TAMIZ_OK : op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
}

/* ---- text ---- */

/* FP / (FP + TN), or -1 with no absent key probed. */
static double measured_rate(const tamiz_level_stats *l)
{
    const uint64_t absent = l->filter_false_positives + l->filter_negatives;
    return absent ? (double)l->filter_false_positives / (double)absent : -1;
}

static void json_level(struct buf *out, const tamiz_level_stats *l)
{
    buf_text(out, "{");
    for (int i = 0; i < FIGURES_OF_LEVEL; i++) {
        buf_printf(out, "%s\"%s\":", i ? "," : "", figures_of_level[i].name);
        figure_print(out, l, &figures_of_level[i]);
    }
    trust_rate_json(out, l->filter_false_positives, l->filter_negatives,
                    l->filter_expected_false_positives);
    if (l->filter_bytes)
        buf_printf(out, ",\"device_reads_avoided_per_kib\":%.6g",
                   (double)l->device_reads_avoided * 1024 / (double)l->filter_bytes);
    buf_text(out, "}");
}

static void stats_json(struct buf *out, const tamiz *db, const tamiz_stats *s,
                       const struct version *v)
{
    buf_printf(out, "{\"keyspace\":\"%s\",", db->name);
    for (int i = 0; i < FIGURES_OF_STORE; i++) {
        buf_printf(out, "\"%s\":", figures_of_store[i].name);
        figure_print(out, s, &figures_of_store[i]);
        buf_text(out, ",");
    }
    /* The sum's fields stand at the top as well, by their own names. */
    for (int i = 0; i < FIGURES_OF_LEVEL; i++) {
        buf_printf(out, "\"%s\":", figures_of_level[i].name);
        figure_print(out, &s->total, &figures_of_level[i]);
        buf_text(out, ",");
    }
    buf_text(out, "\"io\":{");
    for (int i = 0; i < FIGURES_OF_IO; i++) {
        const tamiz_io_stats *io =
            (const tamiz_io_stats *)(const void *)((const char *)s + figures_of_io[i].offset);
        buf_printf(
            out,
            "%s\"%s\":{\"reads\":%llu,\"read_bytes\":%llu,\"writes\":%llu,\"write_bytes\":%llu}",
            i ? "," : "", figures_of_io[i].name, (unsigned long long)io->reads,
            (unsigned long long)io->read_bytes, (unsigned long long)io->writes,
            (unsigned long long)io->write_bytes);
    }
    buf_text(out, "},\"total\":");
    json_level(out, &s->total);
    buf_text(out, ",\"levels\":[");
    for (int i = 0; i < TAMIZ_LEVELS; i++) {
        buf_text(out, i ? "," : "");
        json_level(out, &s->level[i]);
    }
    buf_text(out, "],");
    trust_tables_json(out, v);
    buf_text(out, "}\n");
}

static double seconds_open(const struct store *s)
{
    return (double)(env_monotonic_ns(s->env) - s->opened_ns) / 1e9;
}

static void stats_text(struct buf *out, const tamiz_stats *s, const struct version *v,
                       double seconds)
{
    for (int i = 0; i < FIGURES_OF_STORE; i++) {
        buf_printf(out, "%-34s ", figures_of_store[i].name);
        figure_print(out, s, &figures_of_store[i]);
        buf_text(out, "\n");
    }
    for (int i = 0; i < FIGURES_OF_LEVEL; i++) {
        buf_printf(out, "%-34s ", figures_of_level[i].name);
        figure_print(out, &s->total, &figures_of_level[i]);
        buf_text(out, "\n");
    }
    const double rate = measured_rate(&s->total);
    if (rate >= 0)
        buf_printf(out, "%-34s %.6g\n", "measured_fpr", rate);
    for (int i = 0; i < FIGURES_OF_IO; i++) {
        const tamiz_io_stats *io =
            (const tamiz_io_stats *)(const void *)((const char *)s + figures_of_io[i].offset);
        buf_printf(out, "%-12s reads %llu (%llu bytes), writes %llu (%llu bytes)\n",
                   figures_of_io[i].name, (unsigned long long)io->reads,
                   (unsigned long long)io->read_bytes, (unsigned long long)io->writes,
                   (unsigned long long)io->write_bytes);
    }
    trust_text(out, s, v, seconds);
}

static void levels_text(struct buf *out, const tamiz_stats *s, const struct version *v)
{
    buf_text(out, "level  runs  tables       size         keys     filter      probes "
                  "device reads\n");
    for (int i = 0; i < TAMIZ_LEVELS; i++) {
        const tamiz_level_stats *l = &s->level[i];
        char size[TRUST_SIZE_TEXT], filter[TRUST_SIZE_TEXT];
        if (!l->tables && !l->filter_probes)
            continue;
        buf_printf(out, "%5d %5u %7llu %10s %12llu %10s %11llu %12llu\n", i, v->level_runs[i],
                   (unsigned long long)l->tables, trust_size(size, l->bytes),
                   (unsigned long long)l->keys, trust_size(filter, l->filter_bytes),
                   (unsigned long long)l->filter_probes, (unsigned long long)l->device_reads);
    }
}

static void tables_text(struct buf *out, const struct version *v)
{
    buf_text(out,
             "level  run   table       bytes      keys  tombst. ranges  smallest .. largest\n");
    for (uint32_t r = 0; r < v->run_count; r++)
        for (uint32_t i = 0; i < v->runs[r].count; i++) {
            const struct table_meta *m = v->runs[r].tables[i];
            char smallest[64], largest[64];
            buf_printf(out, "%5u %4llu  %06llu %11llu %9llu %8llu %6llu  %s .. %s\n",
                       v->runs[r].level, (unsigned long long)v->runs[r].id,
                       (unsigned long long)m->number, (unsigned long long)m->file_size,
                       (unsigned long long)m->keys, (unsigned long long)m->tombstones,
                       (unsigned long long)m->ranges,
                       slice_print(m->smallest, smallest, sizeof smallest),
                       slice_print(m->largest, largest, sizeof largest));
        }
}

/* A name a line. */
static void keyspaces_text(struct buf *out, struct store *s)
{
    mutex_lock(&s->mutex);
    for (size_t i = 0; i < s->keyspace_count; i++)
        buf_printf(out, "%s\n", s->keyspaces[i]->name);
    mutex_unlock(&s->mutex);
}

/* false: no such property. */
static bool property_print(struct buf *out, tamiz *db, const char *name, const tamiz_stats *stats,
                           const struct view *view)
{
    if (strcmp(name, "stats") == 0)
        stats_text(out, stats, view->version, seconds_open(db->store));
    else if (strcmp(name, "stats.json") == 0)
        stats_json(out, db, stats, view->version);
    else if (strcmp(name, "stats.prometheus") == 0)
        prometheus_print(out, db->name, stats, view->version);
    else if (strcmp(name, "levels") == 0)
        levels_text(out, stats, view->version);
    else if (strcmp(name, "keyspaces") == 0)
        keyspaces_text(out, db->store);
    else if (strcmp(name, "tables") == 0)
        tables_text(out, view->version);
    else if (strcmp(name, "settled") == 0)
        buf_text(out, background_settled(db) ? "true\n" : "false\n");
    else if (strcmp(name, "options") == 0) {
        options_print(out, &db->options);
        buf_printf(out, "read_many=%s\n", env_read_many_name(db->store->env));
    } else
        return false;
    return true;
}

tamiz_status tamiz_property(tamiz *db, const char *name, char **text)
{
    if (text)
        *text = NULL;
    tamiz_status st = store_check(db);
    if (st != TAMIZ_OK)
        return st;
    if (!name || !text)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "name or text: NULL");
    struct store *s = db->store;
    struct counters *room = mem_new_array(&s->alloc, 1, sizeof *room);
    tamiz_stats *stats = mem_new_array(&s->alloc, 1, sizeof *stats);
    struct buf out = buf_init(&s->alloc);
    if (room && stats) {
        uint64_t seq;
        stats_fill(db, stats, room);
        struct epoch_slot *slot = epoch_enter(&s->epoch);
        struct view *view = view_acquire(db, &seq);
        epoch_leave(slot);
        if (!property_print(&out, db, name, stats, view))
            st = op_refuse(
                TAMIZ_NOT_FOUND,
                "%s: no such property; there are stats, stats.json, stats.prometheus, levels, "
                "tables, options, keyspaces, settled",
                name);
        view_unref(view);
    }
    if (st == TAMIZ_OK)
        *text = room && stats ? buf_handout(&out) : NULL;
    if (st == TAMIZ_OK && !*text)
        st = op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
    buf_free(&out);
    mem_free(&s->alloc, room, sizeof *room);
    mem_free(&s->alloc, stats, sizeof *stats);
    return st;
}
