/* SPDX-License-Identifier: MIT
 *
 * One filter's row. A store of its own is filled with all keys, then opened anew, with an empty
 * cache, for each pass:
 *
 *     with     filters asked; timed; the store's counters and the kernel's
 *     where    the same again with a trace, which says which probe caused which device read; it
 *              must come to the same number, or the experiment is not repeatable and says so
 *     without  filters not asked: the twin
 *     members  every key that was loaded is asked for, with filters: none may be denied
 *
 * The kernel's account of this process (read_bytes in /proc/self/io) stands beside the store's own.
 */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include "lab.h"

#include "progress.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH_WRITES = 1000, VALUE_MAX = 32 };

struct measure {
    struct lab *lab;
    const char *policy;
    char path[4096];
    struct lab_row *row;
};

/* ---- being stopped ---- */

/* A store of many megabytes should not stay behind because somebody lost patience: the first
 * interrupt ends the loops below, and the store is removed as always. The second one kills. */
static volatile sig_atomic_t interrupted;

static void interrupt_take(int number)
{
    (void)number;
    interrupted = 1;
}

static void interrupts_catch(void)
{
    struct sigaction action = {.sa_handler = interrupt_take, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

static int stop_asked(const struct measure *m)
{
    return interrupted ? fail(m->lab->call, "interrupted") : EXIT_DONE;
}

/* ---- opening ---- */

static void note_take(void *ctx, tamiz_event_kind kind, const char *text)
{
    struct lab *lab = ctx;
    if (kind == TAMIZ_EVENT_NOTE && strstr(text, "direct"))
        (void)snprintf(lab->note, sizeof lab->note, "%s", text);
}

/* The options of one pass: the caller's -o first, then what the experiment is about. */
static int open_for(struct measure *m, bool build, tamiz **db)
{
    const struct lab *lab = m->lab;
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    struct text text = {0};
    *db = NULL;
    text_printf(&text, "%s filter=%s cache=%s direct_io=true",
                lab->call->options.size ? lab->call->options.data : "", m->policy, lab->cache);
    if (!lab->tree)
        text_word(&text, " compaction=off");
    if (!build)
        text_word(&text, " read_only=true create_if_missing=false threads=0");
    tamiz_status st = tamiz_options_set(&options, text.data);
    options.log = (tamiz_event_log){note_take, m->lab};
    if (st == TAMIZ_OK)
        st = tamiz_open(m->path, &options, db);
    text_free(&text);
    return st == TAMIZ_OK ? EXIT_DONE : fail_status(lab->call, st, m->policy);
}

static int close_after(const struct measure *m, tamiz *db, int status)
{
    const tamiz_status st = tamiz_close(db);
    return st < 0 && status == EXIT_DONE ? fail_status(m->lab->call, st, "closing") : status;
}

/* ---- filling ---- */

/* The value of the i-th key in order is that number: so each get can be checked. */
static size_t value_of(size_t i, char *value)
{
    return (size_t)snprintf(value, VALUE_MAX, "%zu", i);
}

static tamiz_status batch_fill(const struct lab *lab, size_t from, tamiz_batch *batch)
{
    tamiz_status st = TAMIZ_OK;
    tamiz_batch_clear(batch);
    for (size_t i = from; st == TAMIZ_OK && i < lab->key_count && i < from + BATCH_WRITES; i++) {
        char value[VALUE_MAX];
        const struct word key = lab->load_order[i];
        const size_t size = value_of(word_find(lab->keys, lab->key_count, key), value);
        st = tamiz_batch_put(batch, NULL, key.data, key.size, value, size);
    }
    return st;
}

static tamiz_status all_load(const struct measure *m, tamiz *db, tamiz_batch *batch)
{
    const struct lab *lab = m->lab;
    tamiz_write_options options = TAMIZ_WRITE_OPTIONS_INIT;
    options.no_log = true; /* the flush below makes it durable */
    struct progress bar = progress_start("loading", lab->key_count);
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; st == TAMIZ_OK && !interrupted && i < lab->key_count; i += BATCH_WRITES) {
        st = batch_fill(lab, i, batch);
        if (st == TAMIZ_OK)
            st = tamiz_write(db, batch, &options);
        progress_at(&bar, i & ~(size_t)255);
    }
    progress_end(&bar);
    if (st == TAMIZ_OK && !interrupted)
        st = lab->tree ? tamiz_flush(db) : tamiz_compact(db, NULL, 0, NULL, 0);
    return st;
}

static int fill(struct measure *m)
{
    tamiz *db = NULL;
    tamiz_batch *batch = tamiz_batch_new();
    if (!batch)
        return fail(m->lab->call, "out of memory");
    int status = open_for(m, true, &db);
    if (status == EXIT_DONE) {
        const tamiz_status st = all_load(m, db, batch);
        status = st == TAMIZ_OK ? stop_asked(m) : fail_status(m->lab->call, st, "loading");
        status = close_after(m, db, status);
    }
    tamiz_batch_free(batch);
    return status;
}

/* ---- probing ---- */

/* read_bytes of /proc/self/io: what this process caused to be read from storage. UINT64_MAX where
 * there is no such account. */
static uint64_t kernel_read_bytes(void)
{
    FILE *file = fopen("/proc/self/io", "r");
    char line[128];
    unsigned long long bytes = UINT64_MAX;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "read_bytes: %llu", &bytes) == 1)
            break;
    if (file)
        (void)fclose(file);
    return bytes;
}

static uint64_t store_read_bytes(const tamiz_stats *s)
{
    return s->data.read_bytes + s->index.read_bytes + s->filter.read_bytes + s->meta.read_bytes +
           s->log.read_bytes + s->compaction.read_bytes;
}

struct device_count {
    uint64_t reads;
};

static void step_take(void *ctx, const tamiz_step_info *step)
{
    struct device_count *count = ctx;
    count->reads += step->kind == TAMIZ_STEP_BLOCK_DEVICE;
}

/* The answer must be what was loaded: value and all, or nothing. */
static int answer_check(const struct measure *m, size_t probe, tamiz_status st, const char *value,
                        size_t size)
{
    const struct lab *lab = m->lab;
    char want[VALUE_MAX];
    if (st < 0)
        return fail_status(lab->call, st, "probing");
    if ((st == TAMIZ_OK) != lab->present[probe])
        return fail(lab->call, "%s: the answer to probe %zu is wrong: %s", m->policy, probe,
                    tamiz_status_name(st));
    if (st != TAMIZ_OK)
        return EXIT_DONE;
    const size_t want_size =
        value_of(word_find(lab->keys, lab->key_count, lab->probes[probe]), want);
    if (size != want_size || memcmp(value, want, size) != 0)
        return fail(lab->call, "%s: probe %zu got another key's value", m->policy, probe);
    return EXIT_DONE;
}

static int probes_run(const struct measure *m, tamiz *db, const tamiz_read_options *options,
                      const char *label, struct lab_pass *pass, const struct device_count *count)
{
    const struct lab *lab = m->lab;
    struct progress bar = progress_start(label, lab->probe_count);
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < lab->probe_count; i++) {
        char value[VALUE_MAX];
        size_t size = 0;
        const uint64_t before = count ? count->reads : 0;
        const uint64_t start = tool_now_ns();
        const tamiz_status st = tamiz_get_into(db, lab->probes[i].data, lab->probes[i].size, value,
                                               sizeof value, &size, options);
        pass->nanoseconds += tool_now_ns() - start;
        if (count && !lab->present[i])
            pass->absent_device_reads += count->reads - before;
        status = answer_check(m, i, st, value, size);
        if (status == EXIT_DONE)
            status = stop_asked(m);
        progress_at(&bar, i);
    }
    progress_end(&bar);
    return status;
}

static int pass_run(struct measure *m, bool use_filters, bool traced, struct lab_pass *pass)
{
    struct device_count count = {0};
    const tamiz_trace trace = {step_take, &count};
    tamiz_read_options options = TAMIZ_READ_OPTIONS_INIT;
    tamiz *db = NULL;
    options.use_filters = use_filters;
    options.trace = traced ? &trace : NULL;
    *pass = (struct lab_pass){.stats = TAMIZ_STATS_INIT};
    int status = open_for(m, false, &db);
    if (status)
        return status;
    tamiz_stats before = TAMIZ_STATS_INIT;
    (void)tamiz_stats_get(db, &before);
    const uint64_t kernel_before = kernel_read_bytes();
    status = probes_run(m, db, &options, use_filters ? "with filters" : "without filters", pass,
                        traced ? &count : NULL);
    pass->kernel_read_bytes = kernel_read_bytes() - kernel_before;
    (void)tamiz_stats_get(db, &pass->stats);
    pass->store_read_bytes = store_read_bytes(&pass->stats) - store_read_bytes(&before);
    if (status == EXIT_DONE && traced && count.reads != pass->stats.total.device_reads)
        status = fail(m->lab->call, "the trace tells of %llu device reads, the counters of %llu",
                      (unsigned long long)count.reads,
                      (unsigned long long)pass->stats.total.device_reads);
    return close_after(m, db, status);
}

/* Every key, in order, so that neighbours share their blocks. */
static int members_check(struct measure *m)
{
    const struct lab *lab = m->lab;
    struct progress bar = progress_start("every key once more", lab->key_count);
    tamiz *db = NULL;
    int status = open_for(m, false, &db);
    for (size_t i = 0; status == EXIT_DONE && !interrupted && i < lab->key_count; i++) {
        char value[VALUE_MAX], want[VALUE_MAX];
        size_t size = 0;
        const tamiz_status st = tamiz_get_into(db, lab->keys[i].data, lab->keys[i].size, value,
                                               sizeof value, &size, NULL);
        const size_t want_size = value_of(i, want);
        if (st < 0)
            status = fail_status(lab->call, st, "looking for every key");
        m->row->keys_checked++;
        m->row->false_negatives +=
            st == TAMIZ_NOT_FOUND || size != want_size || memcmp(value, want, want_size) != 0;
        progress_at(&bar, i);
    }
    progress_end(&bar);
    if (status == EXIT_DONE)
        status = stop_asked(m);
    return db ? close_after(m, db, status) : status;
}

/* ---- the row ---- */

static void rates_fill(const struct lab *lab, struct lab_row *row, const tamiz_level_stats *with)
{
    const double asked = (double)(with->filter_negatives + with->filter_false_positives);
    if (asked == 0 || lab->absent_count == 0)
        return;
    row->measured_fpr = (double)with->filter_false_positives / asked;
    row->expected_fpr = with->filter_expected_false_positives / asked;
    const double independent = asked * lab->absent_independent / (double)lab->absent_count;
    const double deviation = sqrt(row->expected_fpr * (1 - row->expected_fpr) / independent);
    row->sigmas = deviation > 0 ? (row->measured_fpr - row->expected_fpr) / deviation : 0;
}

static void row_fill(struct measure *m, const struct lab_pass *with, const struct lab_pass *where,
                     const struct lab_pass *without)
{
    struct lab_row *row = m->row;
    const tamiz_level_stats *total = &with->stats.total;
    const double probes = (double)m->lab->probe_count;
    (void)snprintf(row->filter, sizeof row->filter, "%s", m->policy);
    row->tables = total->tables;
    row->table_bytes = total->bytes;
    row->filter_bytes = total->filter_bytes;
    row->bits_per_key = total->keys ? (double)total->filter_bytes * 8 / (double)total->keys : 0;
    rates_fill(m->lab, row, total);
    row->probes = m->lab->probe_count;
    row->absent_probes = m->lab->absent_count;
    row->filter_negatives = total->filter_negatives;
    row->filter_false_positives = total->filter_false_positives;
    row->device_reads_with = total->device_reads;
    row->device_reads_without = without->stats.total.device_reads;
    row->device_reads_avoided =
        (int64_t)row->device_reads_without - (int64_t)row->device_reads_with;
    row->absent_reads_with = where->absent_device_reads;
    row->absent_reads_without = without->absent_device_reads;
    row->estimated_reads_avoided = total->device_reads_avoided;
    row->estimated_reads_avoided_error = total->device_reads_avoided_error;
    row->kernel_read_bytes = with->kernel_read_bytes;
    row->store_read_bytes = with->store_read_bytes;
    row->kernel_read_bytes_without = without->kernel_read_bytes;
    row->store_read_bytes_without = without->store_read_bytes;
    row->ns_per_get = (double)with->nanoseconds / probes;
    row->ns_per_get_without = (double)without->nanoseconds / probes;
}

static int passes_run(struct measure *m)
{
    struct lab_pass with, where, without;
    int status;
    if ((status = fill(m)) || (status = pass_run(m, true, false, &with)) ||
        (status = pass_run(m, true, true, &where)) ||
        (status = pass_run(m, false, true, &without)) || (status = members_check(m)))
        return status;
    if (with.stats.total.device_reads != where.stats.total.device_reads)
        return fail(m->lab->call, "%s: the same pass made %llu device reads, then %llu", m->policy,
                    (unsigned long long)with.stats.total.device_reads,
                    (unsigned long long)where.stats.total.device_reads);
    row_fill(m, &with, &where, &without);
    return EXIT_DONE;
}

int lab_measure(struct lab *lab, const char *policy, struct lab_row *row)
{
    struct measure m = {.lab = lab, .policy = policy, .row = row};
    const int size = snprintf(m.path, sizeof m.path, "%s/tamiz-lab-XXXXXX", lab->directory);
    if (size < 0 || (size_t)size >= sizeof m.path || !mkdtemp(m.path))
        return fail(lab->call, "%s: %s", lab->directory, strerror(errno));
    interrupts_catch();
    int status = passes_run(&m);
    const tamiz_status st = tamiz_destroy(m.path);
    if (st < 0 && status == EXIT_DONE)
        status = fail_status(lab->call, st, "removing the store");
    (void)rmdir(m.path); /* it is gone already where the store was made in it */
    return status;
}
