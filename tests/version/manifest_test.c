/* SPDX-License-Identifier: MIT
 *
 * The manifest: what was acknowledged is there after a crash at any call, and damage is told.
 */
#include "version/manifest.h"

#include <errno.h>
#include <stdlib.h>

#include "log/log_image.h"
#include "support/test.h"
#include "tamiz/env_sim.h"
#include "version/metas.h"

/* ---- a store that is nothing but its manifest ---- */

struct store {
    struct test_op t;
    tamiz_env_sim *sim;
    const tamiz_env *env; /* of sim */
    struct manifest m;
    struct manifest_state state;
    uint64_t tables; /* added so far */
};

static void store_start(struct store *s)
{
    *s = (struct store){.sim = tamiz_env_sim_new(1)};
    test_op_init(&s->t);
    assert_non_null(s->sim);
    s->env = tamiz_env_sim_env(s->sim);
    struct op *op = &s->t.op;
    assert_status(op, env_make_directory(op, s->env, "d"), TAMIZ_OK);
    assert_status(op, manifest_recover(op, s->env, &alloc_libc, "d", &s->state), TAMIZ_NOT_FOUND);
    assert_status(op, manifest_init(op, s->env, &alloc_libc, "d", &s->m), TAMIZ_OK);
}

static void store_free(struct store *s)
{
    manifest_close(&s->t.op, &s->m);
    manifest_state_free(&alloc_libc, &s->state);
    tamiz_env_sim_free(s->sim);
}

/* The nth call of a kind from now on goes wrong. `argument`: bytes that a short write does. */
static void fault(struct store *s, tamiz_sim_call call, tamiz_sim_effect effect, uint64_t nth,
                  int error, uint64_t argument)
{
    tamiz_sim_fault f = TAMIZ_SIM_FAULT_INIT;
    f.call = call;
    f.effect = effect;
    f.nth = nth;
    f.error = error;
    f.argument = argument;
    assert_true(tamiz_env_sim_fault(s->sim, &f));
}

/* The machine stops at its nth change from now on, before or after doing it. */
static void stop_at_change(struct store *s, uint64_t nth, bool after)
{
    tamiz_sim_fault f = TAMIZ_SIM_FAULT_INIT;
    f.call = TAMIZ_SIM_CHANGE;
    f.effect = TAMIZ_SIM_STOP;
    f.nth = nth;
    f.after = after;
    assert_true(tamiz_env_sim_fault(s->sim, &f));
}

/* A second machine, as this one would be found after a crash now; the n-th of several ways. */
static tamiz_env_sim *crashed(struct store *s, uint64_t n)
{
    tamiz_env_sim *copy = tamiz_env_sim_copy(s->sim);
    assert_non_null(copy);
    const tamiz_sim_crash mode = n == 0   ? TAMIZ_SIM_KEEP
                                 : n == 1 ? TAMIZ_SIM_DROP
                                          : TAMIZ_SIM_REORDER;
    tamiz_env_sim_crash(copy, mode, NULL, n);
    return copy;
}

/* One table in, at level 0; every third time the two before it out. As a store would: the picture
 * after is made, written, and taken over where that went well. */
static tamiz_status store_edit(struct store *s)
{
    struct op *op = &s->t.op;
    uint64_t removed[2] = {0};
    size_t removed_count = 0;
    struct manifest_state before = s->state;
    struct manifest_state *after = &s->state;
    struct version *next = NULL, *last = s->state.trees[0].version;
    op_forgive(op);
    if (s->tables % 3 == 2) {
        removed[0] = s->state.trees[0].version->tables[0]->number;
        removed[1] = s->state.trees[0].version->tables[1]->number;
        removed_count = 2;
    }
    struct table_meta *meta = meta_make(after->next_file++, 0, after->next_run++, "a", "z");
    const struct manifest_edit edit = {
        .has_next_file = true,
        .has_log_number = true,
        .has_last_seq = true,
        .has_next_run = true,
        .next_file = after->next_file,
        .log_number = after->log_number = s->tables + 1,
        .last_seq = after->last_seq = after->last_seq + 100,
        .next_run = after->next_run,
        TABLES(removed, removed_count, &meta, 1),
    };
    assert_status(op, version_apply(op, &alloc_libc, last, &edit.trees[0].tables, &next), TAMIZ_OK);
    after->trees[0].version = next;
    const tamiz_status st = manifest_write(op, &s->m, &edit, after);
    if (st == TAMIZ_OK) {
        s->tables++;
        version_unref(last);
    } else {
        s->state = before;
        s->state.trees[0].version = last;
        version_unref(next);
    }
    table_meta_unref(&alloc_libc, meta);
    return st;
}

static void store_edits(struct store *s, int n)
{
    for (int i = 0; i < n; i++)
        assert_status(&s->t.op, store_edit(s), TAMIZ_OK);
}

/* What `env` holds, as far as it can be had. Freed by manifest_state_free. */
static tamiz_status recover(const tamiz_env *env, struct manifest_state *state,
                            char words[OP_TEXT_MAX])
{
    struct test_op t;
    test_op_init(&t);
    const tamiz_status st = manifest_recover(&t.op, env, &alloc_libc, "d", state);
    if (st < 0)
        assert_true(t.op.status == st && state->trees == NULL && state->next_file == 0);
    if (words)
        memcpy(words, t.op.text, OP_TEXT_MAX);
    return st;
}

static tamiz_status recover_words(const tamiz_env *env, const char *words)
{
    struct manifest_state state;
    char text[OP_TEXT_MAX];
    const tamiz_status st = recover(env, &state, text);
    manifest_state_free(&alloc_libc, &state);
    if (!strstr(text, words))
        fail_msg("\"%s\" lacks \"%s\"", text, words);
    return st;
}

/* Recovered state and what the store thinks it is. */
static void check_same(const struct manifest_state *got, const struct manifest_state *want)
{
    assert_true(versions_equal(got->trees[0].version, want->trees[0].version));
    assert_true(got->log_number == want->log_number && got->last_seq == want->last_seq);
    assert_true(got->next_run == want->next_run && got->next_file >= want->next_file);
    assert_int_equal(got->manifest_number, want->manifest_number);
}

static void check_recovers(const struct store *s, const tamiz_env *env)
{
    struct manifest_state got;
    assert_int_equal(recover(env, &got, NULL), TAMIZ_OK);
    check_same(&got, &s->state);
    manifest_state_free(&alloc_libc, &got);
}

/* ---- files by hand ---- */

static void put_file(const tamiz_env *env, const char *path, const void *bytes, size_t size)
{
    struct test_op t;
    struct file *file;
    test_op_init(&t);
    (void)env->ops->remove(env->ctx, path);
    assert_status(&t.op, file_open(&t.op, env, path, TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &file),
                  TAMIZ_OK);
    if (size)
        assert_status(&t.op, file_write(&t.op, file, IO_META, 0, bytes, size), TAMIZ_OK);
    assert_status(&t.op, file_close(&t.op, file), TAMIZ_OK);
}

static void put_text(const tamiz_env *env, const char *path, const char *text)
{
    put_file(env, path, text, strlen(text));
}

static struct buf get_file(const tamiz_env *env, const char *path)
{
    struct test_op t;
    struct buf b = buf_init(&alloc_libc);
    test_op_init(&t);
    assert_status(&t.op, env_read_file(&t.op, env, path, IO_META, (size_t)1 << 30, &b), TAMIZ_OK);
    return b;
}

static void manifest_path(uint64_t number, char path[64])
{
    char name[FILE_NAME_MAX];
    filename_format(FILE_MANIFEST, number, name);
    (void)snprintf(path, 64, "d/%s", name);
}

struct count_kind {
    enum file_kind kind;
    int n;
};

static void count_name(void *ctx, const char *name)
{
    struct count_kind *c = ctx;
    uint64_t number;
    c->n += filename_parse(name, &number) == c->kind;
}

static int count_files(const tamiz_env *env, enum file_kind kind)
{
    struct count_kind c = {kind, 0};
    assert_int_equal(env->ops->list(env->ctx, "d", count_name, &c), 0);
    return c.n;
}

/* ---- plain running ---- */

static void edits_are_there_after_a_crash_and_after_a_close(void **state)
{
    (void)state;
    struct store s;
    store_start(&s);
    for (int i = 0; i < 20; i++) {
        store_edits(&s, 1);
        check_recovers(&s, s.env);
    }
    assert_int_equal(count_files(s.env, FILE_MANIFEST), 1);
    manifest_close(&s.t.op, &s.m);
    check_recovers(&s, s.env);
    store_free(&s);
}

static void a_reopened_store_goes_on_in_a_new_manifest(void **state)
{
    (void)state;
    struct store s;
    store_start(&s);
    store_edits(&s, 5);
    const uint64_t first = s.m.number;
    manifest_close(&s.t.op, &s.m);
    assert_status(&s.t.op, manifest_init(&s.t.op, s.env, &alloc_libc, "d", &s.m), TAMIZ_OK);
    store_edits(&s, 5);
    assert_true(s.m.number > first);
    check_recovers(&s, s.env);
    store_free(&s);
}

static void an_empty_edit_to_a_settled_manifest_writes_nothing(void **state)
{
    (void)state;
    struct store s;
    store_start(&s);
    store_edits(&s, 1);
    const uint64_t end = s.m.log.end;
    const struct manifest_edit nothing = {.has_next_file = false};
    assert_status(&s.t.op, manifest_write(&s.t.op, &s.m, &nothing, &s.state), TAMIZ_OK);
    assert_true(s.m.log.end == end);
    store_free(&s);
}

static void the_next_file_is_above_every_file_in_the_directory(void **state)
{
    (void)state;
    struct store s;
    struct manifest_state got;
    store_start(&s);
    store_edits(&s, 3);
    put_text(s.env, "d/000900.sst", "an orphan");
    put_text(s.env, "d/MANIFEST-000901", "");
    assert_int_equal(recover(s.env, &got, NULL), TAMIZ_OK);
    assert_int_equal(got.next_file, 902);
    manifest_state_free(&alloc_libc, &got);
    store_free(&s);
}

static void R26_the_manifest_stays_bounded_however_many_edits_there_are(void **state)
{
    (void)state;
    struct store s;
    store_start(&s);
    uint64_t most = 0, first = 0;
    int rolls = 0;
    for (int i = 0; i < 60000; i++) {
        struct manifest_state after = s.state;
        const struct manifest_edit edit = {.has_last_seq = true,
                                           .last_seq = after.last_seq = after.last_seq + 1};
        assert_status(&s.t.op, manifest_write(&s.t.op, &s.m, &edit, &after), TAMIZ_OK);
        s.state = after;
        most = s.m.log.end > most ? s.m.log.end : most;
        rolls += s.m.number != first;
        first = s.m.number;
    }
    assert_true(rolls >= 2 && most <= (1 << 20) + 4096);
    check_recovers(&s, s.env);
    store_free(&s);
}

/* ---- R12: a failed append ---- */

static void R12_after_a_failed_append_the_next_edit_goes_to_a_new_manifest(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 12; nth++) {
        for (uint64_t part = 1; part <= 101; part += 20) {
            struct store s;
            store_start(&s);
            store_edits(&s, 1);
            uint64_t failed = 0;
            fault(&s, TAMIZ_SIM_WRITE, TAMIZ_SIM_SHORT, nth, nth % 2 ? ENOSPC : EIO, part);
            for (int i = 0; i < 12; i++) {
                const tamiz_status st = store_edit(&s);
                failed += st < 0;
                if (st == TAMIZ_OK)
                    assert_false(s.m.unsettled);
            }
            assert_int_equal(failed, tamiz_env_sim_faults_acted(s.sim));
            tamiz_env_sim *after = crashed(&s, 1);
            check_recovers(&s, tamiz_env_sim_env(after));
            tamiz_env_sim_free(after);
            store_free(&s);
        }
    }
}

/* Every crash finds the picture before the edit that failed or the one after; how often each. */
static void count_pictures(struct store *s, int *before, int *after)
{
    const uint64_t known = s->state.log_number;
    *before = *after = 0;
    for (uint64_t n = 0; n < 40; n++) {
        struct manifest_state got;
        tamiz_env_sim *image = crashed(s, n);
        assert_int_equal(recover(tamiz_env_sim_env(image), &got, NULL), TAMIZ_OK);
        assert_true(got.log_number == known || got.log_number == known + 1);
        *before += got.log_number == known;
        *after += got.log_number == known + 1;
        manifest_state_free(&alloc_libc, &got);
        tamiz_env_sim_free(image);
    }
}

static void R12_a_failed_sync_leaves_it_open_and_both_pictures_legal(void **state)
{
    (void)state;
    struct store s;
    int before, after;
    store_start(&s);
    store_edits(&s, 4);
    fault(&s, TAMIZ_SIM_FSYNC, TAMIZ_SIM_FAIL, 1, EIO, 0);
    assert_status(&s.t.op, store_edit(&s), TAMIZ_IO_ERROR);
    assert_true(s.m.unsettled);
    count_pictures(&s, &before, &after);
    assert_true(before && after);
    store_edits(&s, 1);
    assert_false(s.m.unsettled);
    for (uint64_t n = 0; n < 20; n++) {
        tamiz_env_sim *image = crashed(&s, n);
        check_recovers(&s, tamiz_env_sim_env(image));
        tamiz_env_sim_free(image);
    }
    store_free(&s);
}

static void R12_a_switch_that_surely_did_not_happen_leaves_no_manifest_behind(void **state)
{
    (void)state;
    /* Every change that a switch makes but the last sync of the directory, after the rename. */
    uint64_t nth = 1;
    for (bool renamed = false; !renamed; nth++) {
        struct store s;
        store_start(&s);
        store_edits(&s, 2);
        s.m.log.broken = true; /* so that the next edit makes a new manifest */
        fault(&s, TAMIZ_SIM_CHANGE, TAMIZ_SIM_FAIL, nth, ENOSPC, 0);
        assert_status(&s.t.op, store_edit(&s), TAMIZ_NO_SPACE);
        renamed = count_files(s.env, FILE_MANIFEST) == 2;
        tamiz_env_sim_clear(s.sim);
        if (!renamed) {
            assert_int_equal(count_files(s.env, FILE_CURRENT_NEW), 0);
            check_recovers(&s, s.env);
            store_edits(&s, 1);
            check_recovers(&s, s.env);
        }
        store_free(&s);
    }
    assert_true(nth > 8);
}

static void R12_a_switch_whose_last_sync_failed_is_open_until_the_next_edit(void **state)
{
    (void)state;
    struct store s;
    int before, after;
    store_start(&s);
    store_edits(&s, 2);
    s.m.log.broken = true;
    fault(&s, TAMIZ_SIM_DIRSYNC, TAMIZ_SIM_FAIL, 2, EIO, 0);
    assert_status(&s.t.op, store_edit(&s), TAMIZ_IO_ERROR);
    /* The rename is done and may not last: both manifests stay, and neither takes an edit. */
    assert_true(s.m.unsettled && !s.m.open);
    assert_int_equal(count_files(s.env, FILE_MANIFEST), 2);
    count_pictures(&s, &before, &after);
    assert_true(before && after);
    /* The store's own counter went back with the picture that failed; the number is taken all the
     * same. */
    store_edits(&s, 1);
    assert_false(s.m.unsettled);
    check_recovers(&s, s.env);
    store_free(&s);
}

/* ---- R13: the switch ---- */

/* Three sessions of edits on one directory, until the machine stops. Whether all went through. */
static bool run_sessions(struct store *s)
{
    bool fine = true;
    for (int session = 0; session < 3 && fine; session++) {
        if (session > 0) {
            manifest_close(&s->t.op, &s->m);
            assert_status(&s->t.op, manifest_init(&s->t.op, s->env, &alloc_libc, "d", &s->m),
                          TAMIZ_OK);
        }
        for (int i = 0; i < 4 && fine; i++)
            fine = store_edit(s) == TAMIZ_OK;
    }
    return fine;
}

static void check_acknowledged(const tamiz_env *env, const struct store *s)
{
    struct manifest_state got;
    char words[OP_TEXT_MAX];
    const tamiz_status st = recover(env, &got, words);
    if (st == TAMIZ_NOT_FOUND) {
        assert_int_equal(s->tables, 0);
    } else {
        if (st != TAMIZ_OK)
            print_error("%s\n", words);
        assert_int_equal(st, TAMIZ_OK);
        assert_true(got.log_number == s->tables || got.log_number == s->tables + 1);
        if (got.log_number == s->tables)
            assert_true(versions_equal(got.trees[0].version, s->state.trees[0].version));
    }
    manifest_state_free(&alloc_libc, &got);
}

static void R13_a_crash_at_any_call_keeps_what_was_acknowledged(void **state)
{
    (void)state;
    bool done = false;
    uint64_t calls = 0;
    while (!done) {
        calls++;
        for (int after = 0; after < 2; after++) {
            struct store s;
            store_start(&s);
            stop_at_change(&s, calls, after);
            done = run_sessions(&s);
            for (uint64_t n = 0; n < 12; n++) {
                tamiz_env_sim *image = crashed(&s, n);
                check_acknowledged(tamiz_env_sim_env(image), &s);
                tamiz_env_sim_free(image);
            }
            store_free(&s);
        }
    }
    assert_true(calls > 50);
}

/* Whatever is left over, a store can be made in it, or gone on with. */
static void check_usable(const tamiz_env *env, bool made)
{
    struct test_op t;
    struct manifest_state got;
    struct manifest m;
    test_op_init(&t);
    const tamiz_status st = recover(env, &got, NULL);
    assert_true(st == TAMIZ_OK || (st == TAMIZ_NOT_FOUND && !made));
    assert_status(&t.op, manifest_init(&t.op, env, &alloc_libc, "d", &m), TAMIZ_OK);
    const struct manifest_edit edit = {.has_last_seq = true,
                                       .last_seq = got.last_seq = got.last_seq + 1};
    assert_status(&t.op, manifest_write(&t.op, &m, &edit, &got), TAMIZ_OK);
    manifest_close(&t.op, &m);
    manifest_state_free(&alloc_libc, &got);
    assert_int_equal(recover(env, &got, NULL), TAMIZ_OK);
    manifest_state_free(&alloc_libc, &got);
}

static void R13_a_crash_during_the_very_first_creation_is_no_store_and_can_be_repeated(void **state)
{
    (void)state;
    bool done = false;
    for (uint64_t nth = 1; !done; nth++) {
        struct store s;
        store_start(&s);
        stop_at_change(&s, nth, false);
        done = store_edit(&s) == TAMIZ_OK;
        for (uint64_t n = 0; n < 12; n++) {
            tamiz_env_sim *image = crashed(&s, n);
            check_usable(tamiz_env_sim_env(image), done);
            tamiz_env_sim_free(image);
        }
        store_free(&s);
    }
}

/* A log in the directory with `records` records. */
static void put_log(struct store *s, const char *path, int records)
{
    struct log_writer w;
    const struct log_header header = {.kind = LOG_WAL, .file_id = 5, .number = 30, .first = 1};
    const struct slice body = slice_of_text("something");
    struct op *op = &s->t.op;
    assert_status(op, log_create(op, s->env, &alloc_libc, path, IO_LOG, &header, 0, &w), TAMIZ_OK);
    for (int i = 0; i < records; i++)
        assert_status(op, log_append(op, &w, &body, 1), TAMIZ_OK);
    assert_status(op, log_close(op, &w), TAMIZ_OK);
}

static void R13_current_missing_beside_data_is_damage_and_beside_nothing_is_no_store(void **state)
{
    (void)state;
    struct store s;
    store_start(&s);
    store_edits(&s, 3);
    struct op *op = &s.t.op;
    assert_status(op, env_remove(op, s.env, "d/CURRENT"), TAMIZ_OK);
    /* A manifest alone holds no data; neither does a log without records. */
    put_log(&s, "d/000030.log", 0);
    put_text(s.env, "d/000031.log", "torn head");
    put_text(s.env, "d/CURRENT.new", "MANIFEST-0000");
    assert_int_equal(recover_words(s.env, ""), TAMIZ_NOT_FOUND);
    put_log(&s, "d/000032.log", 1);
    assert_int_equal(recover_words(s.env, "000032.log, which has records"), TAMIZ_CORRUPTION);
    assert_status(op, env_remove(op, s.env, "d/000032.log"), TAMIZ_OK);
    put_text(s.env, "d/000033.sst", "table");
    assert_int_equal(recover_words(s.env, "d/CURRENT: expected"), TAMIZ_CORRUPTION);
    store_free(&s);
    store_start(&s);
    assert_status(&s.t.op, env_remove_directory(&s.t.op, s.env, "d"), TAMIZ_OK);
    assert_int_equal(recover_words(s.env, ""), TAMIZ_NOT_FOUND);
    assert_status(&s.t.op, env_make_directory(&s.t.op, s.env, "d"), TAMIZ_OK);
    store_free(&s);
}

static void R13_a_current_that_names_no_manifest_is_damage_and_nothing_changes(void **state)
{
    (void)state;
    static const struct {
        const char *content, *words;
    } cases[] = {
        {"MANIFEST-999999\n", "MANIFEST-999999: expected the manifest that CURRENT names"},
        {"", "d/CURRENT: expected"},
        {"\n", "d/CURRENT: expected"},
        {"MANIFEST-000001", "d/CURRENT: expected"},
        {"MANIFEST-000001\n\n", "d/CURRENT: expected"},
        {"MANIFEST-1\n", "d/CURRENT: expected"},
        {"000001.sst\n", "d/CURRENT: expected"},
        {"MANIFEST-00000000000000000000000000000000000000000000000000001\n", "d/CURRENT"},
    };
    struct store s;
    store_start(&s);
    store_edits(&s, 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text(s.env, "d/CURRENT", cases[i].content);
        const uint64_t changes = tamiz_env_sim_calls(s.sim, TAMIZ_SIM_CHANGE);
        assert_int_equal(recover_words(s.env, cases[i].words), TAMIZ_CORRUPTION);
        assert_int_equal(tamiz_env_sim_calls(s.sim, TAMIZ_SIM_CHANGE), changes);
    }
    put_file(s.env, "d/CURRENT", "MANIFEST-000001\0\n", 17);
    assert_int_equal(recover_words(s.env, "d/CURRENT"), TAMIZ_CORRUPTION);
    store_free(&s);
}

/* ---- damage ---- */

/* A manifest of five edits, sealed, as bytes; the store beside it. */
static struct buf sealed_manifest(struct store *s, char path[64])
{
    store_start(s);
    store_edits(s, 5);
    manifest_path(s->m.number, path);
    manifest_close(&s->t.op, &s->m);
    return get_file(s->env, path);
}

static void a_flip_of_any_byte_of_a_closed_manifest_is_reported_or_harmless(void **state)
{
    (void)state;
    struct store s;
    char path[64];
    struct buf bytes = sealed_manifest(&s, path);
    for (size_t i = 0; i < bytes.size; i++) {
        struct manifest_state got;
        bytes.data[i] ^= (uint8_t)(1 << i % 8);
        put_file(s.env, path, bytes.data, bytes.size);
        const tamiz_status st = recover(s.env, &got, NULL);
        if (i >= bytes.size - LOG_RECORD_HEADER_SIZE) {
            assert_int_equal(st, TAMIZ_OK);
            check_same(&got, &s.state);
        } else {
            assert_int_equal(st, TAMIZ_CORRUPTION);
        }
        manifest_state_free(&alloc_libc, &got);
        bytes.data[i] ^= (uint8_t)(1 << i % 8);
    }
    buf_free(&bytes);
    store_free(&s);
}

static void a_manifest_cut_at_any_byte_is_the_store_after_some_edit(void **state)
{
    (void)state;
    struct store s;
    char path[64];
    struct buf bytes = sealed_manifest(&s, path);
    uint64_t last = 0;
    for (size_t size = 0; size <= bytes.size; size++) {
        struct manifest_state got;
        put_file(s.env, path, bytes.data, size);
        const tamiz_status st = recover(s.env, &got, NULL);
        if (last == 0 && st == TAMIZ_CORRUPTION)
            continue; /* not even the first picture is whole */
        assert_int_equal(st, TAMIZ_OK);
        assert_true(got.log_number == last || got.log_number == last + 1);
        last = got.log_number;
        manifest_state_free(&alloc_libc, &got);
    }
    assert_int_equal(last, 5);
    buf_free(&bytes);
    store_free(&s);
}

static void a_manifest_under_another_ones_name_is_refused(void **state)
{
    (void)state;
    struct store s;
    char path[64];
    struct buf bytes = sealed_manifest(&s, path);
    put_file(s.env, "d/MANIFEST-000077", bytes.data, bytes.size);
    put_text(s.env, "d/CURRENT", "MANIFEST-000077\n");
    assert_int_equal(recover_words(s.env, "expected number 77"), TAMIZ_CORRUPTION);
    buf_free(&bytes);
    store_free(&s);
}

/* ---- edits that make no sense together ---- */

static void append_raw(struct store *s, struct log_writer *w, const struct manifest_edit *edit)
{
    struct buf body = buf_init(&alloc_libc);
    manifest_edit_encode(&body, edit);
    const struct slice piece = buf_slice(&body);
    assert_status(&s->t.op, log_append(&s->t.op, w, &piece, 1), TAMIZ_OK);
    buf_free(&body);
}

/* A manifest of a picture with tables 1 (level 1, a..m) and 2 (level 1, n..z), then `edit`. */
static tamiz_status recover_with(const struct manifest_edit *edit, const char *words)
{
    struct store s;
    struct log_writer w;
    struct table_meta *m[] = {meta_make(1, 1, 1, "a", "m"), meta_make(2, 1, 1, "n", "z")};
    const struct log_header header = {.kind = LOG_MANIFEST, .file_id = 9, .number = 3};
    const struct manifest_edit picture = {.has_next_file = true,
                                          .has_log_number = true,
                                          .has_last_seq = true,
                                          .has_next_run = true,
                                          .next_file = 4,
                                          .next_run = 2,
                                          TABLES(NULL, 0, m, 2)};
    store_start(&s);
    struct op *op = &s.t.op;
    assert_status(op,
                  log_create(op, s.env, &alloc_libc, "d/MANIFEST-000003", IO_META, &header, 0, &w),
                  TAMIZ_OK);
    put_text(s.env, "d/CURRENT", "MANIFEST-000003\n");
    append_raw(&s, &w, &picture);
    append_raw(&s, &w, edit);
    assert_status(op, log_close(op, &w), TAMIZ_OK);
    const tamiz_status st = recover_words(s.env, words);
    if (st < 0)
        assert_int_equal(recover_words(s.env, "d/MANIFEST-000003: record at offset 152: "), st);
    metas_free(m, 2);
    store_free(&s);
    return st;
}

static void R22_edits_that_make_no_sense_together_name_manifest_and_offset(void **state)
{
    (void)state;
    static const uint64_t unknown[] = {3}, twice[] = {1, 1};
    struct table_meta *again = meta_make(2, 0, 5, "a", "b"), *over = meta_make(5, 1, 1, "m", "mm");
    struct table_meta *fine = meta_make(6, 0, 5, "a", "b"), *other = meta_make(7, 0, 5, "a", "b");
    struct table_meta *pair[] = {fine, fine};
    other->keyspace = 3;
    const struct manifest_keyspace named[] = {{3, slice_of_text("words"), false},
                                              {4, slice_of_text("words"), false}};
    const struct manifest_keyspace backward[] = {{4, slice_of_text("a"), false},
                                                 {3, slice_of_text("b"), false}};
    const struct manifest_keyspace dropped[] = {{3, slice_of(NULL, 0), true},
                                                {3, slice_of_text("words"), false}};
    const struct {
        struct manifest_edit edit;
        tamiz_status want;
        const char *words;
    } cases[] = {
        {{TABLES(NULL, 0, &fine, 1)}, TAMIZ_OK, ""},
        {{TABLES(NULL, 0, &again, 1)}, TAMIZ_CORRUPTION, "found table 2 there already"},
        {{TABLES(NULL, 0, pair, 2)}, TAMIZ_CORRUPTION, "table 6 added once, found it twice"},
        {{TABLES(unknown, 1, NULL, 0)}, TAMIZ_CORRUPTION, "found no table 3"},
        {{TABLES(twice, 2, NULL, 0)}, TAMIZ_CORRUPTION, "table 1 removed once"},
        {{TABLES(NULL, 0, &over, 1)}, TAMIZ_CORRUPTION, "the largest of table 1, found m"},
        {{.trees = &(const struct tree_edit){3, 0, {NULL, 0, &other, 1}}, .tree_count = 1},
         TAMIZ_CORRUPTION,
         "changes of a keyspace that is there, found none with the id 3"},
        {{.trees = &(const struct tree_edit){3, 7, {NULL, 0, NULL, 0}}, .tree_count = 1},
         TAMIZ_CORRUPTION,
         "changes of a keyspace that is there, found none with the id 3"},
        {{.keyspaces = named, .keyspace_count = 1}, TAMIZ_OK, ""},
        {{.keyspaces = named, .keyspace_count = 2},
         TAMIZ_CORRUPTION,
         "found words made again, as 4"},
        {{.keyspaces = backward, .keyspace_count = 2}, TAMIZ_CORRUPTION, "found 3 made after 4"},
        {{.keyspaces = dropped, .keyspace_count = 1}, TAMIZ_CORRUPTION, "none with the id 3"},
        {{.keyspaces = dropped, .keyspace_count = 2}, TAMIZ_OK, ""},
        {{.has_next_keyspace = true, .next_keyspace = 4}, TAMIZ_OK, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(recover_with(&cases[i].edit, cases[i].words), cases[i].want);
    struct table_meta *all[] = {again, over, fine, other};
    metas_free(all, 4);
}

static void R22_a_first_edit_that_is_no_whole_picture_is_refused(void **state)
{
    (void)state;
    for (int lacks = 0; lacks < 4; lacks++) {
        struct store s;
        struct log_writer w;
        const struct log_header header = {.kind = LOG_MANIFEST, .file_id = 9, .number = 3};
        const struct manifest_edit part = {.has_next_file = lacks != 0,
                                           .has_log_number = lacks != 1,
                                           .has_last_seq = lacks != 2,
                                           .has_next_run = lacks != 3,
                                           .next_file = 4};
        store_start(&s);
        struct op *op = &s.t.op;
        assert_status(
            op, log_create(op, s.env, &alloc_libc, "d/MANIFEST-000003", IO_META, &header, 0, &w),
            TAMIZ_OK);
        append_raw(&s, &w, &part);
        assert_status(op, log_close(op, &w), TAMIZ_OK);
        put_text(s.env, "d/CURRENT", "MANIFEST-000003\n");
        assert_int_equal(
            recover_words(s.env, "offset 64: expected a whole picture as the first edit"),
            TAMIZ_CORRUPTION);
        store_free(&s);
    }
}

static void R22_random_damage_with_repaired_checks_is_survived(void **state)
{
    (void)state;
    struct test_random random = test_random_start(222);
    struct store s;
    char path[64];
    struct buf bytes = sealed_manifest(&s, path);
    const uint64_t file_id = load_u64(bytes.data + 16);
    int refused = 0;
    for (int round = 0; round < 5000; round++) {
        struct manifest_state got;
        struct buf copy = image_copy(buf_slice(&bytes));
        for (uint64_t i = 1 + test_random_below(&random, 3); i; i--)
            copy.data[64 + test_random_below(&random, copy.size - 64)] =
                (uint8_t)test_random_u64(&random);
        for (size_t at = 64, next; at < copy.size; at = next) {
            next = at + 24 + ((size_t)load_u32(bytes.data + at) + 7) / 8 * 8;
            image_repair_record(&copy, file_id, at);
        }
        put_file(s.env, path, copy.data, copy.size);
        refused += recover(s.env, &got, NULL) < 0;
        manifest_state_free(&alloc_libc, &got);
        buf_free(&copy);
    }
    assert_true(refused > 1000);
    buf_free(&bytes);
    store_free(&s);
}

static void version_check_files_names_a_missing_or_short_table(void **state)
{
    (void)state;
    struct store s;
    static const uint8_t zeros[500] = {0};
    char path[64], name[FILE_NAME_MAX];
    store_start(&s);
    store_edits(&s, 2);
    struct op *op = &s.t.op;
    for (uint32_t i = 0; i < 2; i++) {
        const struct table_meta *t = s.state.trees[0].version->tables[i];
        assert_status(op, version_check_files(op, s.state.trees[0].version, s.env, "d"),
                      TAMIZ_CORRUPTION);
        op_forgive(op);
        filename_format(FILE_TABLE, t->number, name);
        (void)snprintf(path, sizeof path, "d/%s", name);
        put_file(s.env, path, zeros, t->file_size - 1);
        assert_status(op, version_check_files(op, s.state.trees[0].version, s.env, "d"),
                      TAMIZ_CORRUPTION);
        assert_non_null(strstr(op->text, name));
        op_forgive(op);
        put_file(s.env, path, zeros, t->file_size);
    }
    assert_status(op, version_check_files(op, s.state.trees[0].version, s.env, "d"), TAMIZ_OK);
    store_free(&s);
}

/* ---- the golden file ---- */

/* TAMIZ_GOLDEN_WRITE=1 writes it anew: a change of format. */
static void the_golden_manifest_is_written_and_read_the_same(void **state)
{
    (void)state;
    const char *golden_path = TEST_SOURCE_DIR "/tests/golden/manifest/MANIFEST-000003";
    struct store s;
    struct log_writer w;
    struct manifest_state got;
    static const uint64_t removed[] = {1};
    struct table_meta *m[] = {meta_make(1, 0, 1, "a", "m"), meta_make(2, 0, 2, "", "\xff"),
                              meta_make(300, 1, 3, "sieve", "tamiz")};
    const struct log_header header = {
        .kind = LOG_MANIFEST, .file_id = IMAGE_FILE_ID, .number = 3, .boot_id = IMAGE_BOOT};
    const struct manifest_edit picture = {.has_next_file = true,
                                          .has_log_number = true,
                                          .has_last_seq = true,
                                          .has_next_run = true,
                                          .next_file = 4,
                                          .log_number = 2,
                                          .last_seq = 11,
                                          .next_run = 3,
                                          TABLES(NULL, 0, m, 2)};
    const struct manifest_edit edit = {.has_last_seq = true,
                                       .has_next_keyspace = true,
                                       .last_seq = 100000,
                                       .next_keyspace = 1,
                                       TABLES(removed, 1, m + 2, 1)};
    store_start(&s);
    struct op *op = &s.t.op;
    assert_status(op,
                  log_create(op, s.env, &alloc_libc, "d/MANIFEST-000003", IO_META, &header, 0, &w),
                  TAMIZ_OK);
    append_raw(&s, &w, &picture);
    assert_status(op, log_sync(op, &w), TAMIZ_OK);
    append_raw(&s, &w, &edit);
    assert_status(op, log_seal(op, &w), TAMIZ_OK);
    assert_status(op, log_close(op, &w), TAMIZ_OK);
    struct buf bytes = get_file(s.env, "d/MANIFEST-000003");
    if (getenv("TAMIZ_GOLDEN_WRITE")) {
        FILE *f = fopen(golden_path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(bytes.data, 1, bytes.size, f), bytes.size);
        assert_int_equal(fclose(f), 0);
    }
    struct buf golden = get_file(tamiz_env_posix(), golden_path);
    assert_int_equal(golden.size, bytes.size);
    assert_memory_equal(golden.data, bytes.data, bytes.size);
    put_file(s.env, "d/MANIFEST-000003", golden.data, golden.size);
    put_text(s.env, "d/CURRENT", "MANIFEST-000003\n");
    assert_int_equal(recover(s.env, &got, NULL), TAMIZ_OK);
    assert_true(got.trees[0].version->table_count == 2 &&
                metas_equal(got.trees[0].version->tables[0], m[1]) &&
                metas_equal(got.trees[0].version->tables[1], m[2]));
    assert_true(got.next_file == 301 && got.log_number == 2 && got.last_seq == 100000 &&
                got.next_run == 4 && got.next_keyspace == 1 && got.manifest_number == 3);
    manifest_state_free(&alloc_libc, &got);
    buf_free(&golden);
    buf_free(&bytes);
    metas_free(m, 3);
    store_free(&s);
}

/* Two keyspaces made, one of them dropped, tables and log numbers of each. */
static void the_golden_manifest_with_keyspaces_is_written_and_read_the_same(void **state)
{
    (void)state;
    const char *golden_path = TEST_SOURCE_DIR "/tests/golden/manifest/MANIFEST-000005";
    struct store s;
    struct log_writer w;
    struct manifest_state got;
    struct table_meta *m[] = {meta_make(1, 0, 1, "a", "m"), meta_make(2, 0, 1, "b", "n"),
                              meta_make(3, 1, 2, "c", "o")};
    m[1]->keyspace = m[2]->keyspace = 300;
    const struct log_header header = {
        .kind = LOG_MANIFEST, .file_id = IMAGE_FILE_ID, .number = 5, .boot_id = IMAGE_BOOT};
    const struct manifest_keyspace made[] = {{.id = 7, .name = slice_of_text("gone")},
                                             {.id = 300, .name = slice_of_text("people")}};
    const struct manifest_keyspace gone = {.id = 7, .dropped = true};
    const struct tree_edit first[] = {
        {.keyspace = 0, .tables = {.added = m, .added_count = 1}},
        {.keyspace = 300, .log_number = 4, .tables = {.added = m + 1, .added_count = 1}}};
    const struct tree_edit second = {
        .keyspace = 300, .log_number = 6, .tables = {.added = m + 2, .added_count = 1}};
    const struct manifest_edit picture = {.has_next_file = true,
                                          .has_log_number = true,
                                          .has_last_seq = true,
                                          .has_next_run = true,
                                          .has_next_keyspace = true,
                                          .next_file = 6,
                                          .log_number = 2,
                                          .last_seq = 11,
                                          .next_run = 3,
                                          .next_keyspace = 301,
                                          .keyspaces = made,
                                          .keyspace_count = 2,
                                          .trees = first,
                                          .tree_count = 2};
    const struct manifest_edit edit = {
        .keyspaces = &gone, .keyspace_count = 1, .trees = &second, .tree_count = 1};
    store_start(&s);
    struct op *op = &s.t.op;
    assert_status(op,
                  log_create(op, s.env, &alloc_libc, "d/MANIFEST-000005", IO_META, &header, 0, &w),
                  TAMIZ_OK);
    append_raw(&s, &w, &picture);
    append_raw(&s, &w, &edit);
    assert_status(op, log_seal(op, &w), TAMIZ_OK);
    assert_status(op, log_close(op, &w), TAMIZ_OK);
    struct buf bytes = get_file(s.env, "d/MANIFEST-000005");
    if (getenv("TAMIZ_GOLDEN_WRITE")) {
        FILE *f = fopen(golden_path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(bytes.data, 1, bytes.size, f), bytes.size);
        assert_int_equal(fclose(f), 0);
    }
    struct buf golden = get_file(tamiz_env_posix(), golden_path);
    assert_int_equal(golden.size, bytes.size);
    assert_memory_equal(golden.data, bytes.data, bytes.size);
    put_file(s.env, "d/MANIFEST-000005", golden.data, golden.size);
    put_text(s.env, "d/CURRENT", "MANIFEST-000005\n");
    assert_int_equal(recover(s.env, &got, NULL), TAMIZ_OK);
    assert_int_equal(got.tree_count, 2);
    assert_true(got.trees[1].id == 300 && got.trees[1].log_number == 6 &&
                strcmp(got.trees[1].name, "people") == 0);
    assert_true(got.trees[0].version->table_count == 1 &&
                metas_equal(got.trees[0].version->tables[0], m[0]));
    assert_true(got.trees[1].version->table_count == 2 &&
                metas_equal(got.trees[1].version->tables[0], m[1]) &&
                metas_equal(got.trees[1].version->tables[1], m[2]));
    assert_true(got.next_keyspace == 301 && got.log_number == 2);
    manifest_state_free(&alloc_libc, &got);
    buf_free(&golden);
    buf_free(&bytes);
    metas_free(m, 3);
    store_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_are_there_after_a_crash_and_after_a_close),
        cmocka_unit_test(a_reopened_store_goes_on_in_a_new_manifest),
        cmocka_unit_test(an_empty_edit_to_a_settled_manifest_writes_nothing),
        cmocka_unit_test(the_next_file_is_above_every_file_in_the_directory),
        cmocka_unit_test(R26_the_manifest_stays_bounded_however_many_edits_there_are),
        cmocka_unit_test(R12_after_a_failed_append_the_next_edit_goes_to_a_new_manifest),
        cmocka_unit_test(R12_a_failed_sync_leaves_it_open_and_both_pictures_legal),
        cmocka_unit_test(R12_a_switch_that_surely_did_not_happen_leaves_no_manifest_behind),
        cmocka_unit_test(R12_a_switch_whose_last_sync_failed_is_open_until_the_next_edit),
        cmocka_unit_test(R13_a_crash_at_any_call_keeps_what_was_acknowledged),
        cmocka_unit_test(
            R13_a_crash_during_the_very_first_creation_is_no_store_and_can_be_repeated),
        cmocka_unit_test(R13_current_missing_beside_data_is_damage_and_beside_nothing_is_no_store),
        cmocka_unit_test(R13_a_current_that_names_no_manifest_is_damage_and_nothing_changes),
        cmocka_unit_test(a_flip_of_any_byte_of_a_closed_manifest_is_reported_or_harmless),
        cmocka_unit_test(a_manifest_cut_at_any_byte_is_the_store_after_some_edit),
        cmocka_unit_test(a_manifest_under_another_ones_name_is_refused),
        cmocka_unit_test(R22_edits_that_make_no_sense_together_name_manifest_and_offset),
        cmocka_unit_test(R22_a_first_edit_that_is_no_whole_picture_is_refused),
        cmocka_unit_test(R22_random_damage_with_repaired_checks_is_survived),
        cmocka_unit_test(version_check_files_names_a_missing_or_short_table),
        cmocka_unit_test(the_golden_manifest_is_written_and_read_the_same),
        cmocka_unit_test(the_golden_manifest_with_keyspaces_is_written_and_read_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
