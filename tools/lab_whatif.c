/* SPDX-License-Identifier: MIT
 *
 * `lab whatif STORE --filters LIST`: what would another kind of filter, or other bits, do for these
 * reads of this store? Nothing is rebuilt. The reads run once without filters, and the trace says
 * which tables each would look into and whether the key is there. Then each hypothetical filter is
 * played through: a table that has the key is read; one that has not is read as often as the
 * filter's theory for that many keys says; what is read goes through a ghost of the cache. Memory
 * is the plan of each table's filter.
 *
 * Beside the predictions stands what the filters that are there did, measured; and, as a check,
 * what is predicted for them.
 */
#define _POSIX_C_SOURCE 200809L /* strtok_r */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "db/ghost.h"
#include "filter.h"
#include "lab_kit.h"
#include "progress.h"
#include "table/cache.h"

enum { KEYS_SAMPLED = 200000, HYPOTHESES_MAX = 16, COST_UNIT = 16, GHOST_PLACES_MOST = 1 << 20 };

struct shape_table {
    uint64_t number, keys;
    double rates[HYPOTHESES_MAX]; /* of each hypothesis */
};

struct hypothesis {
    char filter[64];
    struct ghost ghost;
    uint64_t filter_bytes, false_positives, device_reads;
};

struct whatif {
    struct kit kit;
    struct shape_table *tables;
    size_t table_count;
    uint64_t keys;
    double entries_per_byte; /* of the tables: about how many stand in a block */
    struct hypothesis hypotheses[HYPOTHESES_MAX];
    size_t count;
    uint64_t cache_bytes;
    /* of the look under way */
    uint64_t probe_hash, offset, size;
    uint64_t absent_looks; /* tables looked into for nothing, without filters */
};

/* ---- the store as it is ---- */

static int store_reopen(struct whatif *w, tamiz **db)
{
    int status = EXIT_DONE;
    char forced[64] = "threads=0";
    if (call_flag(w->kit.call, "--cache"))
        (void)snprintf(forced, sizeof forced, "threads=0 cache=%s",
                       call_flag(w->kit.call, "--cache"));
    (void)store_open(w->kit.call, w->kit.call->operands[1], OPEN_READ, forced, db, &status);
    return status;
}

/* Lines of the property: level, run, table, bytes, keys, … */
static void tables_take(struct whatif *w, const char *text)
{
    uint64_t all_bytes = 0;
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        unsigned level;
        unsigned long long run, number, bytes, keys;
        if (sscanf(line, "%u %llu %llu %llu %llu", &level, &run, &number, &bytes, &keys) != 5)
            continue;
        w->tables = tool_resize(w->tables, (w->table_count + 1) * sizeof *w->tables);
        w->tables[w->table_count++] = (struct shape_table){.number = number, .keys = keys};
        w->keys += keys;
        all_bytes += bytes;
    }
    w->entries_per_byte = all_bytes ? (double)w->keys / (double)all_bytes : 0;
}

/* So many of all keys, each with the same chance: for made-up probes. */
static tamiz_status keys_sample(struct whatif *w, tamiz *db)
{
    struct words *words = &w->kit.key_words;
    tamiz_iter *it = NULL;
    struct random random = {w->kit.seed};
    const double share = (double)KEYS_SAMPLED / ((double)w->keys + 1);
    tamiz_status st = tamiz_iter_open(db, NULL, &it);
    if (st != TAMIZ_OK)
        return st;
    for (tamiz_iter_seek_first(it); tamiz_iter_valid(it); tamiz_iter_next(it)) {
        size_t size;
        const void *key = tamiz_iter_key(it, &size);
        if (share >= 1 || (double)(random_u64(&random) >> 11) / 9007199254740992.0 < share)
            words_add(words, key, size);
    }
    st = tamiz_iter_status(it);
    tamiz_iter_close(it);
    return st;
}

static int store_look(struct whatif *w)
{
    tamiz *db = NULL;
    char *text = NULL;
    int status = store_reopen(w, &db);
    if (status != EXIT_DONE)
        return status;
    tamiz_status st = tamiz_property(db, "tables", &text);
    if (st == TAMIZ_OK)
        tables_take(w, text);
    tamiz_free(text);
    text = NULL;
    if (st == TAMIZ_OK && !call_flag(w->kit.call, "--keys"))
        st = keys_sample(w, db);
    if (st == TAMIZ_OK)
        st = tamiz_property(db, "options", &text);
    const char *cache = text ? strstr(text, "cache=") : NULL;
    w->cache_bytes = cache ? strtoull(cache + 6, NULL, 10) : 0;
    if (cache && strstr(cache, "KiB") && strstr(cache, "KiB") < cache + strcspn(cache, "\n "))
        w->cache_bytes <<= 10;
    if (cache && strstr(cache, "MiB") && strstr(cache, "MiB") < cache + strcspn(cache, "\n "))
        w->cache_bytes <<= 20;
    if (cache && strstr(cache, "GiB") && strstr(cache, "GiB") < cache + strcspn(cache, "\n "))
        w->cache_bytes <<= 30;
    tamiz_free(text);
    (void)tamiz_close(db); /* opened for reading: nothing that could be lost */
    return st == TAMIZ_OK ? EXIT_DONE : fail_status(w->kit.call, st, "looking at the store");
}

/* ---- hypotheses ---- */

static int hypothesis_add(struct whatif *w, const char *filter)
{
    tamiz_filter_policy policy;
    if (w->count == HYPOTHESES_MAX)
        return misuse(w->kit.call, "--filters: at most %d", HYPOTHESES_MAX);
    struct hypothesis *h = &w->hypotheses[w->count];
    tamiz_status st = tamiz_filter_policy_parse(filter, &policy);
    if (st != TAMIZ_OK)
        return fail_status(w->kit.call, st, filter);
    *h = (struct hypothesis){0};
    (void)snprintf(h->filter, sizeof h->filter, "%s", filter);
    for (size_t i = 0; i < w->table_count; i++) {
        tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
        const bool none = strcmp(policy.kind, "none") == 0;
        if (!none && (st = tamiz_filter_plan(&policy, w->tables[i].keys, &info)) != TAMIZ_OK)
            return fail_status(w->kit.call, st, filter);
        w->tables[i].rates[w->count] = none ? 1 : info.expected_fpr;
        h->filter_bytes += none ? 0 : info.bytes;
    }
    uint32_t places = 1024;
    while (places < GHOST_PLACES_MOST && places < w->cache_bytes / 2048)
        places *= 2;
    if (!ghost_init(&h->ghost, &alloc_libc, places))
        return fail(w->kit.call, "out of memory");
    ghost_limit(&h->ghost, (w->cache_bytes - w->cache_bytes / 16) / COST_UNIT);
    w->count++;
    return EXIT_DONE;
}

/* A number in [0, 1) that is this key's and this filter's own: the same key errs again. */
static double chance(uint64_t hash, uint64_t table, size_t hypothesis)
{
    struct random random = {hash ^ table * UINT64_C(0x9e3779b97f4a7c15) ^ hypothesis << 56};
    return (double)(random_u64(&random) >> 11) / 9007199254740992.0;
}

static void look_play(struct whatif *w, uint64_t number, bool known)
{
    size_t t = 0;
    const size_t entries = (size_t)((double)w->size * w->entries_per_byte);
    const uint64_t cost = cached_block_cost((size_t)w->size, entries) / COST_UNIT;
    while (t < w->table_count && w->tables[t].number != number)
        t++;
    if (t == w->table_count)
        return;
    w->absent_looks += !known;
    for (size_t i = 0; i < w->count; i++) {
        struct hypothesis *h = &w->hypotheses[i];
        if (!known && chance(w->probe_hash, number, i) >= w->tables[t].rates[i])
            continue;
        h->false_positives += !known;
        h->device_reads += !ghost_touch(&h->ghost, number << 40 ^ w->offset, 0,
                                        cost < UINT16_MAX ? (uint16_t)cost : UINT16_MAX, false);
    }
}

static void step_take(void *ctx, const tamiz_step_info *step)
{
    struct whatif *w = ctx;
    if (step->kind == TAMIZ_STEP_INDEX) {
        w->offset = step->offset;
        w->size = step->size;
    } else if (step->level >= 0 &&
               (step->kind == TAMIZ_STEP_FOUND || step->kind == TAMIZ_STEP_TOMBSTONE ||
                step->kind == TAMIZ_STEP_ABSENT_IN_BLOCK)) {
        look_play(w, step->table, step->kind != TAMIZ_STEP_ABSENT_IN_BLOCK || step->text[0]);
    }
}

/* ---- the reads ---- */

static int reads_run(struct whatif *w, bool use_filters, const char *label, struct kit_pass *pass)
{
    const tamiz_trace trace = {step_take, w};
    tamiz_read_options read = TAMIZ_READ_OPTIONS_INIT;
    struct progress bar = progress_start(label, w->kit.probe_count);
    tamiz *db = NULL;
    tamiz_status st = TAMIZ_OK;
    *pass = (struct kit_pass){.stats = TAMIZ_STATS_INIT};
    read.use_filters = use_filters;
    read.trace = use_filters ? NULL : &trace;
    const int status = store_reopen(w, &db);
    if (status != EXIT_DONE)
        return status;
    const uint64_t start = tool_now_ns();
    for (size_t i = 0; st >= 0 && i < w->kit.probe_count; i++) {
        const struct word probe = w->kit.probes[i];
        w->probe_hash = tamiz_hash(probe.data, probe.size);
        st = tamiz_exists(db, probe.data, probe.size, &read);
        progress_at(&bar, i);
    }
    progress_end(&bar);
    pass->ns_per_get = (double)(tool_now_ns() - start) / (double)w->kit.probe_count;
    (void)tamiz_stats_get(db, &pass->stats);
    (void)tamiz_close(db);
    return st >= 0 ? EXIT_DONE : fail_status(w->kit.call, st, label);
}

/* ---- the outcome ---- */

static void columns_make(struct sheet *s)
{
    sheet_column(s, "filter", "filter", SHEET_WORD);
    sheet_column(s, "how", "how", SHEET_WORD);
    sheet_column(s, "filter_bytes", "memory", SHEET_SIZE);
    sheet_column(s, "bits_per_key", "bits a key", SHEET_REAL);
    sheet_column(s, "filter_false_positives", "false pos.", SHEET_COUNT);
    sheet_column(s, "fpr", "rate", SHEET_PERCENT);
    sheet_column(s, "device_reads", "device reads", SHEET_COUNT);
    sheet_column(s, "reads_per_get", "reads/get", SHEET_REAL);
    sheet_column(s, "ns_per_get", "ns/get", SHEET_COUNT);
    sheet_chart(s, &(struct sheet_chart){.title = "Device reads against memory",
                                         .caption = "Each point a filter; left and low is good.",
                                         .x = "filter_bytes",
                                         .y = {"device_reads"},
                                         .by = "filter",
                                         .y_label = "device reads"});
}

static void row_add(struct sheet *s, const struct whatif *w, const char *filter, const char *how,
                    uint64_t filter_bytes, uint64_t false_positives, uint64_t device_reads,
                    double ns)
{
    sheet_word(s, filter);
    sheet_word(s, how);
    sheet_number(s, (double)filter_bytes);
    sheet_number(s, w->keys ? (double)filter_bytes * 8 / (double)w->keys : NAN);
    sheet_number(s, (double)false_positives);
    sheet_number(s, w->absent_looks ? (double)false_positives / (double)w->absent_looks : NAN);
    sheet_number(s, (double)device_reads);
    sheet_number(s, (double)device_reads / (double)w->kit.probe_count);
    sheet_number(s, ns);
}

static int hypotheses_make(struct whatif *w)
{
    const char *asked = call_flag(w->kit.call, "--filters");
    char list[512], *rest = NULL;
    int status = EXIT_DONE;
    if (asked) {
        (void)snprintf(list, sizeof list, "%s", asked);
        for (char *one = strtok_r(list, ", ", &rest); one && status == EXIT_DONE;
             one = strtok_r(NULL, ", ", &rest))
            status = hypothesis_add(w, one);
        return status;
    }
    for (size_t i = 0; filter_usual(i) && status == EXIT_DONE; i++)
        status = hypothesis_add(w, filter_usual(i));
    return status == EXIT_DONE ? hypothesis_add(w, "none") : status;
}

static int whatif_run(struct whatif *w, struct sheet *s)
{
    struct kit_pass now, twin;
    int status;
    if ((status = reads_run(w, true, "the filters there are", &now)) ||
        (status = reads_run(w, false, "without, and played through", &twin)))
        return status;
    row_add(s, w, "as it is", "measured", now.stats.total.filter_bytes,
            now.stats.total.filter_false_positives, now.stats.total.device_reads, now.ns_per_get);
    row_add(s, w, "not asked", "measured", 0, w->absent_looks, twin.stats.total.device_reads, NAN);
    for (size_t i = 0; i < w->count; i++)
        row_add(s, w, w->hypotheses[i].filter, "predicted", w->hypotheses[i].filter_bytes,
                w->hypotheses[i].false_positives, w->hypotheses[i].device_reads, NAN);
    return EXIT_DONE;
}

int lab_whatif(struct call *call)
{
    struct sheet s = {.experiment = "whatif",
                      .title = "What another filter would do for this store"};
    struct whatif w = {0};
    if (call->count != 2)
        return misuse(call, "whatif: want STORE behind it");
    int status = kit_begin(&w.kit, call);
    columns_make(&s);
    if (status == EXIT_DONE)
        status = store_look(&w);
    if (status == EXIT_DONE)
        status = kit_fill(&w.kit, 0, 100000);
    if (status == EXIT_DONE)
        status = hypotheses_make(&w);
    if (status == EXIT_DONE)
        status = whatif_run(&w, &s);
    s.seed = w.kit.seed;
    if (status == EXIT_DONE) {
        count_show(&s.setting, w.kit.probe_count);
        text_word(&s.setting, " reads of ");
        text_word(&s.setting, call->operands[1]);
        text_printf(&s.setting, ", %zu table%s, cache ", w.table_count,
                    w.table_count == 1 ? "" : "s");
        size_show(&s.setting, w.cache_bytes);
        text_word(&s.setting, ".");
        status = sheet_tell(&s, call);
    }
    for (size_t i = 0; i < w.count; i++)
        ghost_free(&w.hypotheses[i].ghost);
    free(w.tables);
    kit_free(&w.kit);
    sheet_free(&s);
    return status;
}
