/* SPDX-License-Identifier: MIT */
#include "db/trust.h"

#include <stdio.h>
#include <string.h>

#include "filter/theory.h"

typedef unsigned long long ull; /* for printing */

/* ---- rates ---- */

struct rate {
    uint64_t wrong, absent; /* false positives of so many absent keys */
    double measured, low, high;
};

static struct rate rate_of(uint64_t false_positives, uint64_t negatives)
{
    struct rate r = {.wrong = false_positives, .absent = false_positives + negatives};
    theory_wilson((double)r.wrong, (double)r.absent, TRUST_SIGMAS, &r.low, &r.high);
    r.measured = r.absent ? (double)r.wrong / (double)r.absent : 0;
    return r;
}

void trust_rate_json(struct buf *out, uint64_t false_positives, uint64_t negatives,
                     double expected_false_positives)
{
    const struct rate r = rate_of(false_positives, negatives);
    if (r.absent)
        buf_printf(out,
                   ",\"measured_fpr\":%.6g,\"measured_fpr_low\":%.6g,\"measured_fpr_high\":%.6g,"
                   "\"expected_fpr\":%.6g",
                   r.measured, r.low, r.high, expected_false_positives / (double)r.absent);
    else
        buf_text(out, ",\"measured_fpr\":null,\"measured_fpr_low\":null,"
                      "\"measured_fpr_high\":null,\"expected_fpr\":null");
}

/* ---- tables ---- */

/* One table's tally, read once. */
struct view_of_table {
    const struct table_meta *meta;
    uint32_t level;
    bool loaded, drifted, quarantined;
    uint64_t negatives, false_positives, true_positives;
    double expected;
    tamiz_filter_info filter;
};

static struct view_of_table look_at(const struct table_meta *meta, uint32_t level)
{
    struct view_of_table t = {
        .meta = meta, .level = level, .filter = TAMIZ_FILTER_INFO_INIT, .expected = 1};
    const struct table_tally *c = table_tally(meta->table);
    t.loaded = table_is_loaded(meta->table);
    if (!t.loaded)
        return t;
    if (table_filter(meta->table)->family) {
        t.expected = table_filter(meta->table)->expected_fpr;
        /* Not filter_view_info: that counts bits. */
        (void)snprintf(t.filter.kind, sizeof t.filter.kind, "%s",
                       table_filter(meta->table)->family->name);
        t.filter.bits_per_key =
            meta->keys ? (double)table_filter(meta->table)->payload_bytes * 8 / (double)meta->keys
                       : 0;
    } else {
        (void)snprintf(t.filter.kind, sizeof t.filter.kind, "none");
    }
    t.negatives = counter_get(&c->negatives);
    t.false_positives = counter_get(&c->false_positives);
    t.true_positives = counter_get(&c->true_positives);
    t.drifted = counter_get(&c->drifted) != 0;
    t.quarantined = table_is_quarantined(meta->table);
    return t;
}

/* Calls `each` for every table, newest run first. */
static void tables_each(const struct version *v,
                        void (*each)(struct buf *out, const struct view_of_table *t, void *ctx),
                        struct buf *out, void *ctx)
{
    for (uint32_t r = 0; r < v->run_count; r++)
        for (uint32_t i = 0; i < v->runs[r].count; i++) {
            const struct view_of_table t = look_at(v->runs[r].tables[i], v->runs[r].level);
            each(out, &t, ctx);
        }
}

static void table_json(struct buf *out, const struct view_of_table *t, void *ctx)
{
    bool *first = ctx;
    buf_printf(out, "%s{\"table\":%llu,\"level\":%u,\"keys\":%llu,\"filter_bytes\":%llu",
               *first ? "" : ",", (ull)t->meta->number, t->level, (ull)t->meta->keys,
               (ull)t->meta->filter_bytes);
    *first = false;
    if (t->loaded) {
        buf_printf(out,
                   ",\"kind\":\"%s\",\"bits_per_key\":%.4g,\"sampled_negatives\":%llu,"
                   "\"sampled_false_positives\":%llu,\"sampled_true_positives\":%llu,"
                   "\"drifted\":%s,\"quarantined\":%s",
                   t->filter.kind, t->filter.bits_per_key, (ull)t->negatives,
                   (ull)t->false_positives, (ull)t->true_positives, t->drifted ? "true" : "false",
                   t->quarantined ? "true" : "false");
        trust_rate_json(out, t->false_positives, t->negatives,
                        t->expected * (double)(t->negatives + t->false_positives));
    }
    buf_text(out, "}");
}

enum { KINDS_MAX = 24, WORTH_PROBES = 10000 /* before a filter is judged */ };
struct kinds {
    uint32_t count;
    struct of_kind {
        char name[16];
        uint64_t tables, filter_bytes, negatives, false_positives, true_positives;
        double expected;
    } at[KINDS_MAX];
};

static void kind_add(struct buf *out, const struct view_of_table *t, void *ctx)
{
    struct kinds *kinds = ctx;
    uint32_t i = 0;
    (void)out;
    if (!t->loaded)
        return;
    while (i < kinds->count && strcmp(kinds->at[i].name, t->filter.kind) != 0)
        i++;
    if (i == KINDS_MAX)
        return;
    struct of_kind *k = &kinds->at[i];
    if (i == kinds->count) {
        *k = (struct of_kind){0};
        memcpy(k->name, t->filter.kind, sizeof k->name);
        kinds->count++;
    }
    k->tables++;
    k->filter_bytes += t->meta->filter_bytes;
    k->negatives += t->negatives;
    k->false_positives += t->false_positives;
    k->true_positives += t->true_positives;
    k->expected += t->expected * (double)(t->negatives + t->false_positives);
}

static void kinds_json(struct buf *out, const struct version *v)
{
    struct kinds kinds = {0};
    tables_each(v, kind_add, out, &kinds);
    for (uint32_t i = 0; i < kinds.count; i++) {
        const struct of_kind *k = &kinds.at[i];
        buf_printf(out,
                   "%s{\"kind\":\"%s\",\"tables\":%llu,\"filter_bytes\":%llu,"
                   "\"sampled_negatives\":%llu,\"sampled_false_positives\":%llu,"
                   "\"sampled_true_positives\":%llu",
                   i ? "," : "", k->name, (ull)k->tables, (ull)k->filter_bytes, (ull)k->negatives,
                   (ull)k->false_positives, (ull)k->true_positives);
        trust_rate_json(out, k->false_positives, k->negatives, k->expected);
        buf_text(out, "}");
    }
}

void trust_tables_json(struct buf *out, const struct version *v)
{
    bool first = true;
    buf_text(out, "\"kinds\":[");
    kinds_json(out, v);
    buf_text(out, "],\"tables\":[");
    tables_each(v, table_json, out, &first);
    buf_text(out, "]");
}

/* What is said of one table, by metric: all lines of a metric stand together. */
static const struct {
    const char *name;
    bool counts;
} table_metrics[] = {{"measured_fpr", false},      {"measured_fpr_low", false},
                     {"measured_fpr_high", false}, {"expected_fpr", false},
                     {"sampled_absent", true},     {"drifted", false},
                     {"quarantined", false}};

struct table_metric {
    const char *keyspace;
    size_t which;
};

static void table_prometheus(struct buf *out, const struct view_of_table *t, void *ctx)
{
    const struct table_metric *m = ctx;
    const struct rate r = rate_of(t->false_positives, t->negatives);
    if (!t->loaded || !r.absent)
        return;
    const double values[] = {r.measured,       r.low,      r.high,        t->expected,
                             (double)r.absent, t->drifted, t->quarantined};
    buf_printf(out,
               "tamiz_table_%s{keyspace=\"%s\",level=\"%u\",table=\"%06llu\",kind=\"%s\"} %.9g\n",
               table_metrics[m->which].name, m->keyspace, t->level, (ull)t->meta->number,
               t->filter.kind, values[m->which]);
}

void trust_tables_prometheus(struct buf *out, const char *keyspace, const struct version *v)
{
    for (size_t i = 0; i < sizeof table_metrics / sizeof *table_metrics; i++) {
        buf_printf(out, "# TYPE tamiz_table_%s %s\n", table_metrics[i].name,
                   table_metrics[i].counts ? "counter" : "gauge");
        tables_each(v, table_prometheus, out, &(struct table_metric){keyspace, i});
    }
}

/* ---- text ---- */

const char *trust_size(char to[TRUST_SIZE_TEXT], uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes;
    int unit = 0;
    while (size >= 1024 && unit < 4) {
        size /= 1024;
        unit++;
    }
    (void)snprintf(to, TRUST_SIZE_TEXT, unit && size < 10 ? "%.1f %s" : "%.0f %s", size,
                   units[unit]);
    return to;
}

/* The end of a line: how many absent keys, and what was said to them. */
static void rate_text(struct buf *out, const struct rate *r, double expected)
{
    if (r->absent)
        buf_printf(out, "%9llu %8.4f%%  (%.4f..%.4f) %8.4f%%", (ull)r->absent, r->measured * 100,
                   r->low * 100, r->high * 100, expected * 100);
    else
        buf_text(out, "        0        -");
}

static void level_matrix(struct buf *out, int level, const tamiz_level_stats *l)
{
    buf_printf(out, "%5d %11llu %11llu %11llu %11llu %11llu %12llu\n", level,
               (ull)l->filter_negatives, (ull)l->filter_false_positives,
               (ull)l->filter_true_positives, (ull)l->filter_unavailable,
               (ull)l->not_asked_outside_range, (ull)l->not_asked_answered_above);
}

static void level_rate(struct buf *out, int level, const tamiz_level_stats *l)
{
    const struct rate r = rate_of(l->filter_false_positives, l->filter_negatives);
    buf_printf(out, "%5d     all                 ", level);
    rate_text(out, &r, r.absent ? l->filter_expected_false_positives / (double)r.absent : 0);
    buf_text(out, "\n");
}

static void table_line(struct buf *out, const struct view_of_table *t, void *ctx)
{
    (void)ctx;
    const struct rate r = rate_of(t->false_positives, t->negatives);
    if (!t->loaded || !(r.absent + t->true_positives))
        return;
    buf_printf(out, "%5u  %06llu  %-8s %5.1f  ", t->level, (ull)t->meta->number, t->filter.kind,
               t->filter.bits_per_key);
    rate_text(out, &r, t->expected);
    buf_text(out, t->quarantined ? " QUARANTINED\n" : t->drifted ? " DRIFTED\n" : "\n");
}

/* "level 6: 38 MiB of filter avoided 0.3 device reads a second …" */
static void worth(struct buf *out, int level, const tamiz_level_stats *l, double seconds)
{
    if (!l->filter_bytes)
        return;
    const double avoided = (double)l->device_reads_avoided;
    const double error = (double)l->device_reads_avoided_error;
    char size[TRUST_SIZE_TEXT];
    buf_printf(out, "level %d: %s", level, trust_size(size, l->filter_bytes));
    if (!l->filter_probes) {
        buf_text(out, " of filter was not asked since the store was opened\n");
        return;
    }
    buf_printf(out, " of filter avoided %.3g device reads a second, %.3g a KiB so far",
               avoided / seconds, avoided * 1024 / (double)l->filter_bytes);
    if (l->filter_probes > WORTH_PROBES && avoided + error < seconds / 2)
        buf_text(out, ": it could go, and its memory to the cache");
    buf_text(out, "\n");
}

static bool is_shown(const tamiz_level_stats *l)
{
    return l->tables || l->filter_probes;
}

void trust_text(struct buf *out, const tamiz_stats *stats, const struct version *v, double seconds)
{
    buf_text(out, "\nlevel   negatives  false pos.   true pos.   no filter     outside"
                  "  found above\n");
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        if (is_shown(&stats->level[i]))
            level_matrix(out, i, &stats->level[i]);
    buf_text(out, "\nrate = FP / (FP + TN); a table's, from distinct keys of sampled reads\n"
                  "level   table  kind      bits     absent  measured   95 % interval  expected\n");
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        if (is_shown(&stats->level[i]))
            level_rate(out, i, &stats->level[i]);
    tables_each(v, table_line, out, NULL);
    buf_text(out, "\n");
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        worth(out, i, &stats->level[i], seconds > 1e-9 ? seconds : 1e-9);
}
