/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include "lab_kit.h"

#include "lab_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

enum { BATCH_WRITES = 1000, VALUE_MAX = 64 };

/* ---- taking what was asked for ---- */

static int keys_take(struct kit *kit, uint64_t count)
{
    const int status = kit->key_words.count ? EXIT_DONE /* they are there */
                                            : lab_keys_take(kit->call, &kit->key_words, count);
    if (status != EXIT_DONE)
        return status;
    kit->keys = words_array(&kit->key_words);
    kit->key_count = word_sort(kit->keys, kit->key_words.count);
    return EXIT_DONE;
}

static int probes_take(struct kit *kit, uint64_t count, struct random *random)
{
    bool shuffled;
    const int status = lab_probes_take(kit->call, &kit->probe_words, kit->keys, kit->key_count,
                                       count, random, &shuffled);
    if (status != EXIT_DONE)
        return status;
    kit->probes = words_array(&kit->probe_words);
    kit->probe_count = kit->probe_words.count;
    if (shuffled)
        word_shuffle(kit->probes, kit->probe_count, random);
    kit->present = tool_resize(NULL, kit->probe_count * sizeof *kit->present);
    for (size_t i = 0; i < kit->probe_count; i++) {
        kit->present[i] = word_find(kit->keys, kit->key_count, kit->probes[i]) < kit->key_count;
        kit->absent_count += !kit->present[i];
    }
    return EXIT_DONE;
}

int kit_begin(struct kit *kit, struct call *call)
{
    *kit = (struct kit){
        .call = call, .directory = call_flag(call, "--dir"), .seed = (uint64_t)time(NULL)};
    kit->directory = kit->directory ? kit->directory : ".";
    return call_number(call, "--seed", &kit->seed) ? EXIT_DONE : EXIT_USAGE;
}

int kit_fill(struct kit *kit, uint64_t keys, uint64_t probes)
{
    if (!call_count(kit->call, "--count", &keys) ||
        !call_count(kit->call, "--probe-count", &probes))
        return EXIT_USAGE;
    if (keys > 1000000000 || probes == 0 || probes > 1000000000)
        return misuse(kit->call, "--count and --probe-count: want 1..1000000000");
    struct random random = {kit->seed};
    int status = keys_take(kit, keys);
    if (status == EXIT_DONE)
        status = probes_take(kit, probes, &random);
    if (status != EXIT_DONE)
        return status;
    kit->load_order = tool_resize(NULL, kit->key_count * sizeof *kit->load_order);
    memcpy(kit->load_order, kit->keys, kit->key_count * sizeof *kit->load_order);
    word_shuffle(kit->load_order, kit->key_count, &random);
    return EXIT_DONE;
}

int kit_take(struct kit *kit, struct call *call, uint64_t keys, uint64_t probes)
{
    const int status = kit_begin(kit, call);
    return status == EXIT_DONE ? kit_fill(kit, keys, probes) : status;
}

void kit_free(struct kit *kit)
{
    words_free(&kit->key_words);
    words_free(&kit->probe_words);
    free(kit->keys);
    free(kit->load_order);
    free(kit->probes);
    free(kit->present);
    *kit = (struct kit){0};
}

void kit_show(struct text *out, const struct kit *kit)
{
    count_show(out, kit->key_count);
    text_word(out, " keys, ");
    count_show(out, kit->probe_count);
    text_word(out, " probes, ");
    count_show(out, kit->absent_count);
    text_word(out, " of them of absent keys");
}

/* ---- the store ---- */

static int kit_open(const struct kit *kit, const char *options, bool build, tamiz **db)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    struct text text = {0};
    *db = NULL;
    text_printf(&text, "%s %s", kit->call->options.size ? kit->call->options.data : "", options);
    text_word(&text, build ? " threads=0 idle_merge=0"
                           : " read_only=true create_if_missing=false threads=0");
    tamiz_status st = tamiz_options_set(&o, text.data);
    if (st == TAMIZ_OK)
        st = tamiz_open(kit->path, &o, db);
    text_free(&text);
    return st == TAMIZ_OK ? EXIT_DONE : fail_status(kit->call, st, options);
}

static int kit_close(const struct kit *kit, tamiz *db, int status)
{
    const tamiz_status st = tamiz_close(db);
    return st < 0 && status == EXIT_DONE ? fail_status(kit->call, st, "closing") : status;
}

/* The value begins with the key's place in order, so that each get can be checked. */
static size_t value_of(size_t i, char *value)
{
    return (size_t)snprintf(value, VALUE_MAX, "%-40zu", i);
}

static tamiz_status load(const struct kit *kit, tamiz *db, size_t count, tamiz_batch *batch)
{
    tamiz_write_options options = TAMIZ_WRITE_OPTIONS_INIT;
    struct progress bar = progress_start("loading", count);
    tamiz_status st = TAMIZ_OK;
    options.no_log = true; /* the flush below makes it durable */
    for (size_t i = 0; st == TAMIZ_OK && i < count; i += BATCH_WRITES) {
        tamiz_batch_clear(batch);
        for (size_t k = i; st == TAMIZ_OK && k < count && k < i + BATCH_WRITES; k++) {
            char value[VALUE_MAX];
            const struct word key = kit->load_order[k];
            const size_t size = value_of(word_find(kit->keys, kit->key_count, key), value);
            st = tamiz_batch_put(batch, NULL, key.data, key.size, value, size);
        }
        if (st == TAMIZ_OK)
            st = tamiz_write(db, batch, &options);
        progress_at(&bar, i & ~(size_t)255);
    }
    progress_end(&bar);
    if (st == TAMIZ_OK)
        st = tamiz_flush(db);
    for (bool more = true; st == TAMIZ_OK && more;)
        st = tamiz_step(db, 1000000, &more);
    return st;
}

int kit_store_make(struct kit *kit, const char *options, size_t count)
{
    tamiz *db = NULL;
    tamiz_batch *batch = tamiz_batch_new();
    const int size = snprintf(kit->path, sizeof kit->path, "%s/tamiz-lab-XXXXXX", kit->directory);
    if (!batch)
        return fail(kit->call, "out of memory");
    int status = EXIT_DONE;
    if (size < 0 || (size_t)size >= sizeof kit->path || !mkdtemp(kit->path)) {
        kit->path[0] = 0;
        status = fail(kit->call, "%s: %s", kit->directory, strerror(errno));
    }
    if (status == EXIT_DONE)
        status = kit_open(kit, options, true, &db);
    if (status == EXIT_DONE) {
        const tamiz_status st = load(kit, db, count, batch);
        kit->made = (tamiz_stats)TAMIZ_STATS_INIT;
        (void)tamiz_stats_get(db, &kit->made);
        status =
            kit_close(kit, db, st == TAMIZ_OK ? EXIT_DONE : fail_status(kit->call, st, "loading"));
    }
    tamiz_batch_free(batch);
    return status;
}

int kit_store_remove(struct kit *kit, int status)
{
    if (!kit->path[0])
        return status;
    const tamiz_status st = tamiz_destroy(kit->path);
    (void)rmdir(kit->path); /* it is gone already where the store was made in it */
    kit->path[0] = 0;
    return st < 0 && status == EXIT_DONE ? fail_status(kit->call, st, "removing the store")
                                         : status;
}

/* ---- a pass ---- */

/* A wrong answer would make all figures worthless. Only what was loaded can be asked of: a store
 * that holds part of the keys answers "no" for the others. */
static int answer_check(const struct kit *kit, size_t probe, tamiz_status st, const char *value,
                        size_t size)
{
    char want[VALUE_MAX];
    if (st < 0)
        return fail_status(kit->call, st, "probing");
    if (st == TAMIZ_NOT_FOUND)
        return EXIT_DONE;
    const size_t want_size =
        value_of(word_find(kit->keys, kit->key_count, kit->probes[probe]), want);
    if (!kit->present[probe] || size != want_size || memcmp(value, want, size) != 0)
        return fail(kit->call, "probe %zu got another key's value", probe);
    return EXIT_DONE;
}

int kit_pass(struct kit *kit, const char *options, bool use_filters, const char *label,
             struct kit_pass *pass)
{
    tamiz_read_options read = TAMIZ_READ_OPTIONS_INIT;
    struct progress bar = progress_start(label, kit->probe_count);
    tamiz *db = NULL;
    uint64_t spent = 0;
    *pass = (struct kit_pass){.stats = TAMIZ_STATS_INIT};
    read.use_filters = use_filters;
    int status = kit_open(kit, options, false, &db);
    if (status != EXIT_DONE)
        return status;
    for (size_t i = 0; status == EXIT_DONE && i < kit->probe_count; i++) {
        char value[VALUE_MAX];
        size_t size = 0;
        const uint64_t start = tool_now_ns();
        const tamiz_status st = tamiz_get_into(db, kit->probes[i].data, kit->probes[i].size, value,
                                               sizeof value, &size, &read);
        spent += tool_now_ns() - start;
        status = answer_check(kit, i, st, value, size);
        progress_at(&bar, i);
    }
    progress_end(&bar);
    pass->ns_per_get = (double)spent / (double)kit->probe_count;
    (void)tamiz_stats_get(db, &pass->stats);
    return kit_close(kit, db, status);
}
