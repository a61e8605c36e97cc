/* SPDX-License-Identifier: MIT
 *
 * The manifest: what was acknowledged is there after a crash at any call, and damage is told.
 */
#include "version/manifest.h"

#include <stdlib.h>

#include "log/fail_env.h"
#include "log/log_image.h"
#include "support/test.h"
#include "version/metas.h"
#include "version/power.h"

/* ---- a store that is nothing but its manifest ---- */

struct store {
    struct test_op t;
    tamiz_env *memory;
    struct power power; /* over memory */
    struct manifest m;
    struct manifest_state state;
    uint64_t tables; /* added so far */
};

static const tamiz_env *store_env(const struct store *s)
{
    return &s->power.fail.env;
}

static void store_start(struct store *s)
{
    *s = (struct store){.memory = tamiz_env_memory_new()};
    test_op_init(&s->t);
    assert_non_null(s->memory);
    assert_status(&s->t.op, env_make_directory(&s->t.op, s->memory, "d"), TAMIZ_OK);
    power_init(&s->power, s->memory, "d");
    assert_status(&s->t.op, manifest_recover(&s->t.op, store_env(s), &alloc_libc, "d", &s->state),
                  TAMIZ_NOT_FOUND);
    assert_status(&s->t.op, manifest_init(&s->t.op, store_env(s), &alloc_libc, "d", &s->m),
                  TAMIZ_OK);
}

static void store_free(struct store *s)
{
    manifest_close(&s->t.op, &s->m);
    version_unref(s->state.version);
    power_free(&s->power);
    tamiz_env_memory_free(s->memory);
}

/* One table in, at level 0; every third time the two before it out. As a store would: the picture
 * after is made, written, and taken over where that went well. */
static tamiz_status store_edit(struct store *s)
{
    struct op *op = &s->t.op;
    uint64_t removed[2] = {0};
    size_t removed_count = 0;
    struct manifest_state after = s->state;
    struct version *next = NULL;
    op_forgive(op);
    if (s->tables % 3 == 2) {
        removed[0] = s->state.version->tables[0]->number;
        removed[1] = s->state.version->tables[1]->number;
        removed_count = 2;
    }
    struct table_meta *meta = meta_make(after.next_file++, 0, after.next_run++, "a", "z");
    const struct manifest_edit edit = {
        .has_next_file = true,
        .has_log_number = true,
        .has_last_seq = true,
        .has_next_run = true,
        .next_file = after.next_file,
        .log_number = after.log_number = s->tables + 1,
        .last_seq = after.last_seq = after.last_seq + 100,
        .next_run = after.next_run,
        .tables = {removed, removed_count, &meta, 1},
    };
    assert_status(op, version_apply(op, &alloc_libc, s->state.version, &edit.tables, &next),
                  TAMIZ_OK);
    after.version = next;
    const tamiz_status st = manifest_write(op, &s->m, &edit, &after);
    if (st == TAMIZ_OK) {
        next = s->state.version;
        s->state = after;
        s->tables++;
    }
    version_unref(next);
    table_meta_unref(&alloc_libc, meta);
    return st;
}

static void store_edits(struct store *s, int n)
{
    for (int i = 0; i < n; i++)
        assert_status(&s->t.op, store_edit(s), TAMIZ_OK);
}

/* What `env` holds, as far as it can be had. Freed by version_unref(state->version). */
static tamiz_status recover(const tamiz_env *env, struct manifest_state *state,
                            char words[OP_TEXT_MAX])
{
    struct test_op t;
    test_op_init(&t);
    const tamiz_status st = manifest_recover(&t.op, env, &alloc_libc, "d", state);
    if (st < 0)
        assert_true(t.op.status == st && state->version == NULL && state->next_file == 0);
    if (words)
        memcpy(words, t.op.text, OP_TEXT_MAX);
    return st;
}

static tamiz_status recover_words(const tamiz_env *env, const char *words)
{
    struct manifest_state state;
    char text[OP_TEXT_MAX];
    const tamiz_status st = recover(env, &state, text);
    version_unref(state.version);
    if (!strstr(text, words))
        fail_msg("\"%s\" lacks \"%s\"", text, words);
    return st;
}

/* Recovered state and what the store thinks it is. */
static void check_same(const struct manifest_state *got, const struct manifest_state *want)
{
    assert_true(versions_equal(got->version, want->version));
    assert_true(got->log_number == want->log_number && got->last_seq == want->last_seq);
    assert_true(got->next_run == want->next_run && got->next_file >= want->next_file);
    assert_int_equal(got->manifest_number, want->manifest_number);
}

static void check_recovers(const struct store *s, const tamiz_env *env)
{
    struct manifest_state got;
    assert_int_equal(recover(env, &got, NULL), TAMIZ_OK);
    check_same(&got, &s->state);
    version_unref(got.version);
}

/* ---- files by hand ---- */

static void put_file(tamiz_env *env, const char *path, const void *bytes, size_t size)
{
    (void)env->ops->remove(env->ctx, path);
    const struct buf b = {&alloc_libc, (uint8_t *)(uintptr_t)bytes, size, size, false};
    power_put(env, path, &b);
}

static void put_text(tamiz_env *env, const char *path, const char *text)
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
        check_recovers(&s, s.memory);
    }
    assert_int_equal(count_files(s.memory, FILE_MANIFEST), 1);
    manifest_close(&s.t.op, &s.m);
    check_recovers(&s, s.memory);
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
    assert_status(&s.t.op, manifest_init(&s.t.op, store_env(&s), &alloc_libc, "d", &s.m), TAMIZ_OK);
    store_edits(&s, 5);
    assert_true(s.m.number > first);
    check_recovers(&s, s.memory);
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
    put_text(s.memory, "d/000900.sst", "an orphan");
    put_text(s.memory, "d/MANIFEST-000901", "");
    assert_int_equal(recover(s.memory, &got, NULL), TAMIZ_OK);
    assert_int_equal(got.next_file, 902);
    version_unref(got.version);
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
    check_recovers(&s, s.memory);
    store_free(&s);
}

/* ---- R12: a failed append ---- */

static void R12_after_a_failed_append_the_next_edit_goes_to_a_new_manifest(void **state)
{
    (void)state;
    static const int errors[] = {-ENOSPC, -EIO};
    for (int nth = 1; nth <= 12; nth++) {
        for (size_t part = 0; part <= 100; part += 20) {
            struct store s;
            store_start(&s);
            store_edits(&s, 1);
            int failed = 0;
            fail_at(&s.power.fail, FAIL_WRITE, nth, errors[nth % 2]);
            s.power.fail.short_write = part;
            for (int i = 0; i < 12; i++) {
                const bool was = s.m.unsettled;
                const tamiz_status st = store_edit(&s);
                failed += st < 0;
                if (st < 0)
                    assert_true(s.m.unsettled || was || !s.m.open || !s.m.log.broken);
                else
                    assert_false(s.m.unsettled);
            }
            assert_int_equal(failed, s.power.fail.fired);
            tamiz_env *image = power_cut(&s.power, NULL);
            check_recovers(&s, image);
            tamiz_env_memory_free(image);
            store_free(&s);
        }
    }
}

static void R12_a_failed_sync_leaves_it_open_and_both_pictures_legal(void **state)
{
    (void)state;
    struct test_random random = test_random_start(12);
    struct store s;
    store_start(&s);
    store_edits(&s, 4);
    fail_at(&s.power.fail, FAIL_SYNC, 1, -EIO);
    assert_status(&s.t.op, store_edit(&s), TAMIZ_IO_ERROR);
    assert_true(s.m.unsettled);
    const uint64_t known = s.state.log_number;
    int before = 0, after = 0;
    for (int i = 0; i < 40; i++) {
        struct manifest_state got;
        tamiz_env *image = power_cut(&s.power, &random);
        assert_int_equal(recover(image, &got, NULL), TAMIZ_OK);
        assert_true(got.log_number == known || got.log_number == known + 1);
        before += got.log_number == known;
        after += got.log_number == known + 1;
        version_unref(got.version);
        tamiz_env_memory_free(image);
    }
    assert_true(before && after);
    fail_at(&s.power.fail, FAIL_ANY, 0, 0);
    store_edits(&s, 1);
    assert_false(s.m.unsettled);
    for (int i = 0; i < 20; i++) {
        tamiz_env *image = power_cut(&s.power, &random);
        check_recovers(&s, image);
        tamiz_env_memory_free(image);
    }
    store_free(&s);
}

static void R12_a_switch_that_surely_did_not_happen_leaves_no_manifest_behind(void **state)
{
    (void)state;
    /* Every call of a switch but the last sync of the directory, which comes after the rename. */
    for (int nth = 1;; nth++) {
        struct store s;
        store_start(&s);
        store_edits(&s, 2);
        s.m.log.broken = true; /* so that the next edit makes a new manifest */
        fail_at(&s.power.fail, FAIL_OPEN | FAIL_WRITE | FAIL_SYNC | FAIL_RENAME, nth, -ENOSPC);
        const tamiz_status st = store_edit(&s);
        const bool done = st == TAMIZ_OK;
        fail_at(&s.power.fail, FAIL_ANY, 0, 0);
        if (!done) {
            assert_status(&s.t.op, st, TAMIZ_NO_SPACE);
            assert_int_equal(count_files(s.memory, FILE_MANIFEST), 1);
            assert_int_equal(count_files(s.memory, FILE_CURRENT_NEW), 0);
            check_recovers(&s, s.memory);
            store_edits(&s, 1);
            check_recovers(&s, s.memory);
        }
        store_free(&s);
        if (done) {
            assert_true(nth > 7);
            break;
        }
    }
}

static void R12_a_switch_whose_last_sync_failed_is_open_until_the_next_edit(void **state)
{
    (void)state;
    struct test_random random = test_random_start(121);
    struct store s;
    store_start(&s);
    store_edits(&s, 2);
    s.m.log.broken = true;
    fail_at(&s.power.fail, FAIL_SYNC_DIRECTORY, 2, -EIO);
    assert_status(&s.t.op, store_edit(&s), TAMIZ_IO_ERROR);
    fail_at(&s.power.fail, FAIL_ANY, 0, 0);
    /* The rename is done and may not last: both manifests stay, and neither takes an edit. */
    assert_true(s.m.unsettled && !s.m.open);
    assert_int_equal(count_files(s.memory, FILE_MANIFEST), 2);
    const uint64_t known = s.state.log_number;
    for (int i = 0; i < 20; i++) {
        struct manifest_state got;
        tamiz_env *image = power_cut(&s.power, &random);
        assert_int_equal(recover(image, &got, NULL), TAMIZ_OK);
        assert_true(got.log_number == known || got.log_number == known + 1);
        version_unref(got.version);
        tamiz_env_memory_free(image);
    }
    /* The store's own counter went back with the picture that failed; the number is taken all the
     * same. */
    store_edits(&s, 1);
    assert_false(s.m.unsettled);
    check_recovers(&s, s.memory);
    store_free(&s);
}

/* ---- R13: the switch ---- */

/* Three sessions of edits on one directory; every call from the nth on fails. Returns whether all
 * went through. `known`: edits that were acknowledged. */
static bool run_sessions(struct store *s, int nth, bool after)
{
    bool fine = true;
    fail_at(&s->power.fail, FAIL_ANY & ~(unsigned)FAIL_READ, nth, -EIO);
    s->power.fail.sticky = true;
    s->power.fail.after = after;
    for (int session = 0; session < 3 && fine; session++) {
        for (int i = 0; i < 4 && fine; i++)
            fine = store_edit(s) == TAMIZ_OK;
        if (session == 2)
            break;
        manifest_close(&s->t.op, &s->m);
        op_forgive(&s->t.op);
        assert_status(&s->t.op, manifest_init(&s->t.op, store_env(s), &alloc_libc, "d", &s->m),
                      TAMIZ_OK);
    }
    s->power.fail.nth = 0;
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
            assert_true(versions_equal(got.version, s->state.version));
    }
    version_unref(got.version);
}

static void R13_a_crash_at_any_call_keeps_what_was_acknowledged(void **state)
{
    (void)state;
    struct test_random random = test_random_start(13);
    bool done = false;
    int calls = 0;
    for (int nth = 1; !done; nth++) {
        for (int after = 0; after < 2; after++) {
            struct store s;
            store_start(&s);
            done = run_sessions(&s, nth, after);
            check_acknowledged(s.memory, &s); /* the process dies, the machine goes on */
            for (int r = 0; r < 12; r++) {
                tamiz_env *image = power_cut(&s.power, r ? &random : NULL);
                check_acknowledged(image, &s);
                tamiz_env_memory_free(image);
            }
            store_free(&s);
        }
        calls = nth;
    }
    assert_true(calls > 50);
}

static void R13_a_crash_during_the_very_first_creation_is_no_store_and_can_be_repeated(void **state)
{
    (void)state;
    struct test_random random = test_random_start(131);
    bool done = false;
    for (int nth = 1; !done; nth++) {
        struct store s;
        store_start(&s);
        fail_at(&s.power.fail, FAIL_ANY & ~(unsigned)FAIL_READ, nth, -EIO);
        s.power.fail.sticky = true;
        done = store_edit(&s) == TAMIZ_OK;
        s.power.fail.nth = 0;
        for (int r = 0; r < 10; r++) {
            tamiz_env *image = power_cut(&s.power, r ? &random : NULL);
            struct manifest_state got;
            struct manifest m;
            const tamiz_status st = recover(image, &got, NULL);
            assert_true(st == TAMIZ_OK || (st == TAMIZ_NOT_FOUND && !done));
            /* Whatever is left over, a store can be made or gone on with. */
            op_forgive(&s.t.op);
            assert_status(&s.t.op, manifest_init(&s.t.op, image, &alloc_libc, "d", &m), TAMIZ_OK);
            const struct manifest_edit edit = {.has_last_seq = true,
                                               .last_seq = got.last_seq = got.last_seq + 1};
            assert_status(&s.t.op, manifest_write(&s.t.op, &m, &edit, &got), TAMIZ_OK);
            manifest_close(&s.t.op, &m);
            version_unref(got.version);
            assert_int_equal(recover(image, &got, NULL), TAMIZ_OK);
            version_unref(got.version);
            tamiz_env_memory_free(image);
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
    assert_status(op, log_create(op, s->memory, &alloc_libc, path, IO_LOG, &header, 0, &w),
                  TAMIZ_OK);
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
    assert_status(op, env_remove(op, s.memory, "d/CURRENT"), TAMIZ_OK);
    /* A manifest alone holds no data; neither does a log without records. */
    put_log(&s, "d/000030.log", 0);
    put_text(s.memory, "d/000031.log", "torn head");
    put_text(s.memory, "d/CURRENT.new", "MANIFEST-0000");
    assert_int_equal(recover_words(s.memory, ""), TAMIZ_NOT_FOUND);
    put_log(&s, "d/000032.log", 1);
    assert_int_equal(recover_words(s.memory, "000032.log, which has records"), TAMIZ_CORRUPTION);
    assert_status(op, env_remove(op, s.memory, "d/000032.log"), TAMIZ_OK);
    put_text(s.memory, "d/000033.sst", "table");
    assert_int_equal(recover_words(s.memory, "d/CURRENT: expected"), TAMIZ_CORRUPTION);
    store_free(&s);
    store_start(&s);
    assert_status(&s.t.op, env_remove_directory(&s.t.op, s.memory, "d"), TAMIZ_OK);
    assert_int_equal(recover_words(s.memory, ""), TAMIZ_NOT_FOUND);
    assert_status(&s.t.op, env_make_directory(&s.t.op, s.memory, "d"), TAMIZ_OK);
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
        put_text(s.memory, "d/CURRENT", cases[i].content);
        /* Through an env that refuses every change. */
        fail_at(&s.power.fail,
                FAIL_WRITE | FAIL_SYNC | FAIL_TRUNCATE | FAIL_RENAME | FAIL_REMOVE |
                    FAIL_SYNC_DIRECTORY,
                1, -EIO);
        assert_int_equal(recover_words(store_env(&s), cases[i].words), TAMIZ_CORRUPTION);
        assert_int_equal(s.power.fail.seen, 0);
    }
    fail_at(&s.power.fail, FAIL_ANY, 0, 0);
    put_file(s.memory, "d/CURRENT", "MANIFEST-000001\0\n", 17);
    assert_int_equal(recover_words(s.memory, "d/CURRENT"), TAMIZ_CORRUPTION);
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
    return get_file(s->memory, path);
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
        put_file(s.memory, path, bytes.data, bytes.size);
        const tamiz_status st = recover(s.memory, &got, NULL);
        if (i >= bytes.size - LOG_RECORD_HEADER_SIZE) {
            assert_int_equal(st, TAMIZ_OK);
            check_same(&got, &s.state);
        } else {
            assert_int_equal(st, TAMIZ_CORRUPTION);
        }
        version_unref(got.version);
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
        put_file(s.memory, path, bytes.data, size);
        const tamiz_status st = recover(s.memory, &got, NULL);
        if (last == 0 && st == TAMIZ_CORRUPTION)
            continue; /* not even the first picture is whole */
        assert_int_equal(st, TAMIZ_OK);
        assert_true(got.log_number == last || got.log_number == last + 1);
        last = got.log_number;
        version_unref(got.version);
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
    put_file(s.memory, "d/MANIFEST-000077", bytes.data, bytes.size);
    put_text(s.memory, "d/CURRENT", "MANIFEST-000077\n");
    assert_int_equal(recover_words(s.memory, "expected number 77"), TAMIZ_CORRUPTION);
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
                                          .tables = {NULL, 0, m, 2}};
    store_start(&s);
    struct op *op = &s.t.op;
    assert_status(
        op, log_create(op, s.memory, &alloc_libc, "d/MANIFEST-000003", IO_META, &header, 0, &w),
        TAMIZ_OK);
    put_text(s.memory, "d/CURRENT", "MANIFEST-000003\n");
    append_raw(&s, &w, &picture);
    append_raw(&s, &w, edit);
    assert_status(op, log_close(op, &w), TAMIZ_OK);
    const tamiz_status st = recover_words(s.memory, words);
    if (st < 0)
        assert_int_equal(recover_words(s.memory, "d/MANIFEST-000003: record at offset 152: "), st);
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
    const struct manifest_keyspace named = {3, slice_of_text("words"), false};
    const struct {
        struct manifest_edit edit;
        tamiz_status want;
        const char *words;
    } cases[] = {
        {{.tables = {NULL, 0, &fine, 1}}, TAMIZ_OK, ""},
        {{.tables = {NULL, 0, &again, 1}}, TAMIZ_CORRUPTION, "found table 2 there already"},
        {{.tables = {NULL, 0, pair, 2}}, TAMIZ_CORRUPTION, "table 6 added once, found it twice"},
        {{.tables = {unknown, 1, NULL, 0}}, TAMIZ_CORRUPTION, "found no table 3"},
        {{.tables = {twice, 2, NULL, 0}}, TAMIZ_CORRUPTION, "table 1 removed once"},
        {{.tables = {NULL, 0, &over, 1}}, TAMIZ_CORRUPTION, "the largest of table 1, found m"},
        {{.tables = {NULL, 0, &other, 1}}, TAMIZ_NOT_SUPPORTED, "keyspace 3"},
        {{.keyspaces = &named, .keyspace_count = 1}, TAMIZ_NOT_SUPPORTED, "keyspace 3"},
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
            op, log_create(op, s.memory, &alloc_libc, "d/MANIFEST-000003", IO_META, &header, 0, &w),
            TAMIZ_OK);
        append_raw(&s, &w, &part);
        assert_status(op, log_close(op, &w), TAMIZ_OK);
        put_text(s.memory, "d/CURRENT", "MANIFEST-000003\n");
        assert_int_equal(
            recover_words(s.memory, "offset 64: expected a whole picture as the first edit"),
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
        put_file(s.memory, path, copy.data, copy.size);
        refused += recover(s.memory, &got, NULL) < 0;
        version_unref(got.version);
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
        const struct table_meta *t = s.state.version->tables[i];
        assert_status(op, version_check_files(op, s.state.version, s.memory, "d"),
                      TAMIZ_CORRUPTION);
        op_forgive(op);
        filename_format(FILE_TABLE, t->number, name);
        (void)snprintf(path, sizeof path, "d/%s", name);
        put_file(s.memory, path, zeros, t->file_size - 1);
        assert_status(op, version_check_files(op, s.state.version, s.memory, "d"),
                      TAMIZ_CORRUPTION);
        assert_non_null(strstr(op->text, name));
        op_forgive(op);
        put_file(s.memory, path, zeros, t->file_size);
    }
    assert_status(op, version_check_files(op, s.state.version, s.memory, "d"), TAMIZ_OK);
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
                                          .tables = {NULL, 0, m, 2}};
    const struct manifest_edit edit = {.has_last_seq = true,
                                       .has_next_keyspace = true,
                                       .last_seq = 100000,
                                       .next_keyspace = 1,
                                       .tables = {removed, 1, m + 2, 1}};
    store_start(&s);
    struct op *op = &s.t.op;
    assert_status(
        op, log_create(op, s.memory, &alloc_libc, "d/MANIFEST-000003", IO_META, &header, 0, &w),
        TAMIZ_OK);
    append_raw(&s, &w, &picture);
    assert_status(op, log_sync(op, &w), TAMIZ_OK);
    append_raw(&s, &w, &edit);
    assert_status(op, log_seal(op, &w), TAMIZ_OK);
    assert_status(op, log_close(op, &w), TAMIZ_OK);
    struct buf bytes = get_file(s.memory, "d/MANIFEST-000003");
    if (getenv("TAMIZ_GOLDEN_WRITE")) {
        FILE *f = fopen(golden_path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(bytes.data, 1, bytes.size, f), bytes.size);
        assert_int_equal(fclose(f), 0);
    }
    struct buf golden = get_file(tamiz_env_posix(), golden_path);
    assert_int_equal(golden.size, bytes.size);
    assert_memory_equal(golden.data, bytes.data, bytes.size);
    put_file(s.memory, "d/MANIFEST-000003", golden.data, golden.size);
    put_text(s.memory, "d/CURRENT", "MANIFEST-000003\n");
    assert_int_equal(recover(s.memory, &got, NULL), TAMIZ_OK);
    assert_true(got.version->table_count == 2 && metas_equal(got.version->tables[0], m[1]) &&
                metas_equal(got.version->tables[1], m[2]));
    assert_true(got.next_file == 301 && got.log_number == 2 && got.last_seq == 100000 &&
                got.next_run == 4 && got.next_keyspace == 1 && got.manifest_number == 3);
    version_unref(got.version);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
