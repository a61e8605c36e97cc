/* SPDX-License-Identifier: MIT
 *
 * Repair: what can be read is there afterwards, deletes stay deleted, nothing is thrown away, and a
 * crash at any moment of it loses nothing.
 */
#include "cases/kit.h"

#include "log/batch.h"
#include "log/log.h"
#include "support/alloc_fail.h"
#include "table/format.h"
#include "table/repair.h"

enum { MEMBERS = 400 };

static int model[MEMBERS]; /* value, 0: absent */
static size_t finds;
static char last_find[500];

static void take_find(void *ctx, const char *text)
{
    (void)ctx;
    finds++;
    (void)snprintf(last_find, sizeof last_find, "%s", text);
}

static tamiz_status repair(tamiz_report *report)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    o.env = env;
    o.table = 4096;
    *report = (tamiz_report)TAMIZ_REPORT_INIT;
    report->find = take_find;
    finds = 0;
    return tamiz_repair("store", &o, report);
}

/* Several levels, overwritten and deleted keys in all of them, something in the log. */
static void make_store(void)
{
    struct test_random r = {5};
    memset(model, 0, sizeof model);
    open_with(SMALL "size_ratio=2 table=4KiB");
    for (int i = 1; i < 4000; i++) {
        const int key = (int)test_random_below(&r, MEMBERS);
        model[key] = test_random_below(&r, 3) ? i : 0;
        if (model[key])
            put(k(key), v(i, 40));
        else
            del(k(key));
    }
    put_synced(k(0), v(9999, 40));
    model[0] = 9999;
    close_it();
    assert_true(count_files(FILE_TABLE) > 3);
}

/* How many keys differ from the model. */
static int differing(void)
{
    int n = 0;
    open_with(SMALL);
    for (int i = 0; i < MEMBERS; i++) {
        void *value = NULL;
        size_t size = 0;
        const tamiz_status st = tamiz_get(db, k(i), 9, &value, &size, NULL);
        assert_true(st == TAMIZ_OK || st == TAMIZ_NOT_FOUND);
        n += (st == TAMIZ_OK) != (model[i] != 0) ||
             (st == TAMIZ_OK && (size != 40 || memcmp(value, v(model[i], 40), 40) != 0));
        tamiz_free(value);
    }
    tamiz_report report = TAMIZ_REPORT_INIT;
    OK(tamiz_verify(db, &report));
    put("after", "1");
    compact();
    close_it();
    return n;
}

static size_t count_lost(const char *suffix)
{
    return test_count_files(env, "store/lost", suffix);
}

static void add_name(void *ctx, const char *name)
{
    buf_printf(ctx, "%s\n", name);
}

static void a_store_without_damage_is_not_touched(void **state)
{
    (void)state;
    struct buf before = buf_init(&alloc_libc), after = buf_init(&alloc_libc);
    tamiz_report report;
    make_store();
    assert_int_equal(env->ops->list(env->ctx, "store", add_name, &before), 0);
    const uint64_t changes = tamiz_env_sim_calls(sim, TAMIZ_SIM_WRITE);
    OK(repair(&report));
    assert_int_equal(report.damaged, 0);
    assert_true(report.files > 3 && report.blocks > 10);
    assert_int_equal(tamiz_env_sim_calls(sim, TAMIZ_SIM_WRITE), changes);
    assert_int_equal(env->ops->list(env->ctx, "store", add_name, &after), 0);
    assert_int_equal(before.size, after.size);
    buf_free(&before);
    buf_free(&after);
    assert_int_equal(differing(), 0);
}

/* A table of a later version, or with one block that is packed in a way that is not known yet. */
static void make_newer(const char *path, bool one_block)
{
    struct test_op t;
    struct buf bytes = file_get(path);
    const uint64_t file_id = load_u64(bytes.data + 16);
    struct table_footer footer;
    struct index *index;
    test_op_init(&t);
    if (one_block) {
        const struct slice end =
            slice_of(bytes.data + bytes.size - TABLE_FOOTER_SIZE, TABLE_FOOTER_SIZE);
        assert_status(&t.op, table_footer_decode(&t.op, end, bytes.size, path, &footer), TAMIZ_OK);
        const struct slice stored =
            slice_of(bytes.data + footer.index.offset, (size_t)footer.index.size);
        assert_status(&t.op,
                      index_open(&t.op, stored, table_data_end(&footer), path, &alloc_libc, &index),
                      TAMIZ_OK);
        const struct extent e = index_extent(index, 0);
        bytes.data[e.offset + e.size] = 200;
        repair_block(bytes.data, bytes.size, e, file_id);
        index_free(index);
    } else {
        store_u32(bytes.data + 8, TABLE_FORMAT_VERSION + 1);
        store_u64(bytes.data + 32, checksum(file_id, 0, slice_of(bytes.data, 32)));
    }
    file_set(path, bytes.data, bytes.size);
    buf_free(&bytes);
}

static void what_is_newer_is_left_to_who_can_read_it(void **state)
{
    (void)state;
    for (int how = 0; how < 2; how++) {
        tamiz_report report;
        start_over();
        make_store();
        const size_t tables = count_files(FILE_TABLE);
        make_newer(path_of(FILE_TABLE, true), how);
        const uint64_t changes = tamiz_env_sim_calls(sim, TAMIZ_SIM_WRITE);
        assert_int_equal(repair(&report), TAMIZ_NOT_SUPPORTED);
        assert_int_equal(tamiz_env_sim_calls(sim, TAMIZ_SIM_WRITE), changes);
        assert_int_equal(count_files(FILE_TABLE), tables);
        open_with(SMALL);
        report = (tamiz_report)TAMIZ_REPORT_INIT;
        assert_int_equal(tamiz_verify(db, &report), TAMIZ_NOT_SUPPORTED);
        close_it();
    }
}

/* A log that ends with the sequence of an ingestion, and the next one that begins behind it: only
 * where another keyspace still needs the older one are both there. */
static void a_log_that_ends_with_an_ingestion_is_not_damage(void **state)
{
    (void)state;
    const char *const paths[] = {"ingested"};
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz_table_writer *w;
    tamiz_report report;
    tamiz *other;
    o.env = env;
    OK(tamiz_table_writer_open(paths[0], &o, &w));
    OK(tamiz_table_writer_put(w, "x", 1, "1", 1));
    OK(tamiz_table_writer_finish(w, NULL, NULL));
    open_with(SMALL);
    OK(tamiz_keyspace_open(db, "other", NULL, &other));
    test_put(other, "needs the log", "1");
    put("a", "1");
    OK(tamiz_ingest(db, paths, 1));
    OK(tamiz_flush(db));
    put("b", "1");
    close_it();
    assert_true(count_files(FILE_LOG) > 1);
    OK(repair(&report));
    assert_int_equal(report.damaged, 0);
}

static void without_a_manifest_newer_values_win_and_deletes_stay(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        tamiz_report report;
        start_over();
        make_store();
        const size_t tables = count_files(FILE_TABLE);
        char path[80];
        (void)snprintf(path, sizeof path, "%s", path_of(FILE_MANIFEST, false));
        struct buf bytes = file_get(path);
        if (how == 0)
            assert_int_equal(env->ops->remove(env->ctx, "store/CURRENT"), 0);
        else if (how == 1)
            assert_int_equal(env->ops->remove(env->ctx, path), 0);
        else if (how == 2)
            file_set("store/CURRENT", "nonsense", 8);
        else {
            bytes.data[bytes.size / 3] ^= 1;
            file_set(path, bytes.data, bytes.size);
        }
        buf_free(&bytes);
        assert_int_equal(try_open("threads=0"), TAMIZ_CORRUPTION);
        OK(repair(&report));
        assert_true(report.damaged >= 1);
        assert_true(finds >= 1);
        assert_int_equal(count_lost(".sst"), tables);
        assert_int_equal(differing(), 0);
        OK(repair(&report)); /* and now all is well */
        assert_int_equal(report.damaged, 0);
    }
}

static void damage_of_one_table_takes_no_other_with_it(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        tamiz_report report;
        char path[80];
        start_over();
        make_store();
        open_with(SMALL "compaction=off table=4KiB");
        compact(); /* one run: no older version of a lost key can show */
        close_it();
        (void)snprintf(path, sizeof path, "%s", path_of(FILE_TABLE, how & 1));
        struct buf bytes = file_get(path);
        if (how < 2)
            bytes.data[TABLE_HEADER_SIZE + 100] ^= 1; /* its first block */
        else if (how == 2)
            bytes.data[bytes.size - 20] ^= 1; /* its footer: nothing of it can be read */
        if (how < 3)
            file_set(path, bytes.data, bytes.size);
        else
            assert_int_equal(env->ops->remove(env->ctx, path), 0);
        buf_free(&bytes);
        OK(repair(&report));
        assert_int_equal(report.damaged, 1);
        assert_non_null(strstr(last_find, strrchr(path, '/') + 1));
        assert_true(report.lost_bytes > 0 || how == 3);
        const int lost = differing();
        print_message("how %d: %d of %d keys lost\n", how, lost, MEMBERS);
        assert_true(lost > 0 && lost < (how < 2 ? 20 : MEMBERS / 2));
        assert_true(count_lost(".sst") >= 1);
    }
}

static void a_log_is_read_up_to_its_damage(void **state)
{
    (void)state;
    tamiz_report report;
    open_with("threads=0");
    for (int i = 0; i < 100; i++)
        put_synced(k(i), v(i, 40));
    crash(TAMIZ_SIM_DROP, NULL, 0);
    char path[80];
    (void)snprintf(path, sizeof path, "%s", path_of(FILE_LOG, false));
    struct buf bytes = file_get(path);
    bytes.data[5000] ^= 1;
    file_set(path, bytes.data, bytes.size);
    buf_free(&bytes);
    assert_int_equal(try_open("threads=0"), TAMIZ_CORRUPTION);
    OK(repair(&report));
    assert_int_equal(report.damaged, 1);
    assert_non_null(strstr(last_find, ".log"));
    assert_int_equal(count_lost(".log"), 1);
    open_with("threads=0");
    const size_t there = scan_count(NULL);
    assert_true(there > 30 && there < 100);
    for (int i = 0; i < (int)there; i++)
        expect(k(i), v(i, 40));
    put(k(0), "new");
    expect(k(0), "new");
}

static uint64_t stop_call;
static tamiz_env_sim *stopped;

/* Three logs with a synced write each, none of them in a table; the path of the second. */
static void make_three_logs(char path[80])
{
    open_with(SMALL);
    fault(TAMIZ_SIM_CREATE, "*.sst", 1, EIO, true);
    for (int i = 0; i < 3; i++) {
        put_synced(k(i), "1");
        if (i == 1)
            (void)snprintf(path, 80, "%s", path_of(FILE_LOG, false));
        if (i < 2)
            assert_true(tamiz_flush(db) < 0);
    }
    crash(TAMIZ_SIM_KEEP, NULL, 0);
    tamiz_env_sim_clear(sim);
    assert_int_equal(count_files(FILE_LOG), 3);
}

/* A manifest that knows less than the log expects. */
static void lose_edits(void)
{
    open_with(SMALL "compaction=off");
    put_synced(k(0), "1");
    flush();
    char path[80];
    (void)snprintf(path, sizeof path, "%s", path_of(FILE_MANIFEST, false));
    struct buf bytes = file_get(path);
    put_synced(k(1), "1");
    flush();
    put_synced(k(2), "1");
    crash(TAMIZ_SIM_KEEP, NULL, 0);
    file_set(path, bytes.data, bytes.size);
    buf_free(&bytes);
}

/* What keeps a store from opening is seen by a repair, missing writes too. */
static void writes_that_are_missing_are_found_and_the_rest_opens(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        tamiz_report report;
        char path[80];
        start_over();
        if (how == 2) {
            lose_edits();
        } else {
            make_three_logs(path);
            struct buf bytes = file_get(path);
            if (how == 0)
                assert_int_equal(env->ops->remove(env->ctx, path), 0);
            else
                file_set(path, bytes.data, LOG_HEADER_SIZE);
            buf_free(&bytes);
        }
        assert_int_equal(try_open("threads=0"), TAMIZ_CORRUPTION);
        OK(repair(&report));
        assert_int_equal(report.damaged, 1);
        assert_non_null(strstr(last_find, "writes are missing"));
        open_with(SMALL);
        expect(k(0), "1");
        expect(k(1), NULL);
        expect(k(2), "1");
        close_it();
    }
}

/* ---- crafted logs ---- */

/* A record of one put of keyspace `id`. */
static void append_put(struct test_op *t, struct log_writer *w, uint64_t first, uint64_t count,
                       uint64_t id)
{
    struct buf body = buf_init(&alloc_libc);
    batch_head(&body, first, count);
    for (uint64_t i = 0; i < count; i++) {
        buf_u8(&body, KIND_PUT);
        buf_varint(&body, id);
        buf_varint(&body, 1);
        buf_u8(&body, 'x');
        buf_varint(&body, 1);
        buf_u8(&body, (uint8_t)('0' + i));
    }
    const struct slice piece = buf_slice(&body);
    assert_status(&t->op, log_append(&t->op, w, &piece, 1), TAMIZ_OK);
    buf_free(&body);
}

enum crafted { GOES_ON, OVERLAPS, UNKNOWN_KEYSPACE, NO_BATCH, GAP_SYNCED, GAP_UNSYNCED, CRAFTED };

/* A store that ends at sequence 2, and one more log that says something of what comes then. */
static void craft(enum crafted what)
{
    struct test_op t;
    struct log_writer w;
    const bool gap = what == GAP_SYNCED || what == GAP_UNSYNCED;
    struct log_header header = {
        .kind = LOG_WAL, .file_id = 4711, .number = 900, .first = gap ? 7 : 3};
    start_over();
    open_with("threads=0");
    put_synced("a", "1");
    put_synced("b", "1");
    close_it();
    test_op_init(&t);
    assert_status(&t.op,
                  log_create(&t.op, env, &alloc_libc, "store/000900.log", IO_LOG, &header, 0, &w),
                  TAMIZ_OK);
    append_put(&t, &w, gap ? 7 : 3, 1, 0);
    if (what == NO_BATCH) {
        const struct slice junk = slice_of_text("no batch at all");
        assert_status(&t.op, log_append(&t.op, &w, &junk, 1), TAMIZ_OK);
    }
    if (what == GAP_SYNCED)
        assert_status(&t.op, log_sync(&t.op, &w), TAMIZ_OK);
    if (what != NO_BATCH)
        append_put(&t, &w,
                   gap                ? 8
                   : what == OVERLAPS ? 3
                                      : 4,
                   2, what == UNKNOWN_KEYSPACE ? 77 : 0);
    assert_status(&t.op, log_sync(&t.op, &w), TAMIZ_OK);
    assert_status(&t.op, log_close(&t.op, &w), TAMIZ_OK);
}

/* What opening calls damage a repair finds, and what it takes as it is a repair leaves alone. */
static void opening_and_repair_judge_a_log_alike(void **state)
{
    (void)state;
    static const char *const words[CRAFTED] = {
        [OVERLAPS] = "begins at sequence 3, expected 4",
        [UNKNOWN_KEYSPACE] = "keyspace 77, which was never made",
        [NO_BATCH] = "000900.log",
        [GAP_SYNCED] = "begins at sequence 7",
    };
    for (enum crafted what = 0; what < CRAFTED; what++) {
        tamiz_report report;
        craft(what);
        tamiz_env_sim *before = remember();
        const tamiz_status opened = try_open("threads=0");
        assert_int_equal(opened, words[what] ? TAMIZ_CORRUPTION : TAMIZ_OK);
        if (words[what])
            assert_non_null(strstr(tamiz_error_detail(), words[what]));
        else
            expect("x", what == GOES_ON ? "1" : NULL);
        restore(before);
        tamiz_env_sim_free(before);
        OK(repair(&report));
        assert_int_equal(report.damaged, words[what] != NULL);
        if (words[what])
            assert_non_null(strstr(last_find, words[what]));
        open_with("threads=0");
        expect("a", "1");
        expect("b", "1");
        close_it();
        OK(repair(&report));
        assert_int_equal(report.damaged, 0);
    }
}

static void stop_here(void *ctx, uint64_t number, tamiz_sim_call kind, const char *name)
{
    (void)ctx, (void)kind, (void)name;
    if (number == stop_call)
        stopped = tamiz_env_sim_copy(sim);
}

static void a_crash_at_any_call_of_a_repair_loses_nothing(void **state)
{
    (void)state;
    tamiz_report report;
    make_store();
    assert_int_equal(env->ops->remove(env->ctx, "store/CURRENT"), 0);
    tamiz_env_sim *image = remember();
    bool reached = true;
    uint64_t crashes = 0;
    for (stop_call = 1; reached; stop_call += test_long() ? 1 : 3) {
        restore(image);
        stopped = NULL;
        tamiz_env_sim_on_call(sim, stop_here, NULL);
        OK(repair(&report));
        tamiz_env_sim_on_call(sim, NULL, NULL);
        tamiz_env_sim *at_stop = stopped;
        reached = at_stop != NULL;
        for (uint64_t seed = 0; reached && seed < 2; seed++, crashes++) {
            restore(at_stop);
            crash(seed ? TAMIZ_SIM_REORDER : TAMIZ_SIM_KEEP, NULL, stop_call);
            OK(repair(&report));
            assert_int_equal(differing(), 0);
        }
        tamiz_env_sim_free(at_stop);
    }
    print_message("%llu crashes\n", (unsigned long long)crashes);
    assert_true(crashes > 50);
    tamiz_env_sim_free(image);
}

static void a_repair_that_fails_leaves_the_store_as_it_was(void **state)
{
    (void)state;
    tamiz_report report;
    make_store();
    assert_int_equal(env->ops->remove(env->ctx, "store/CURRENT"), 0);
    tamiz_env_sim *image = remember();
    bool fired = true;
    for (uint64_t nth = 1; fired; nth += test_long() ? 1 : 5) {
        restore(image);
        fault(TAMIZ_SIM_CHANGE, NULL, nth, ENOSPC, true);
        const tamiz_status st = repair(&report);
        fired = tamiz_env_sim_faults_acted(sim) > 0;
        assert_true(st == TAMIZ_OK || fired);
        tamiz_env_sim_clear(sim);
        OK(repair(&report));
        assert_int_equal(differing(), 0);
    }
    tamiz_env_sim_free(image);
}

/* Each n-th request refused, once and from then on, in a repair without a manifest. */
static void a_repair_without_memory_loses_and_leaks_nothing(void **state)
{
    (void)state;
    size_t refused = 0;
    open_with(SMALL "size_ratio=2 table=4KiB");
    for (int i = 0; i < 300; i++)
        put(k(i), v(i, 40));
    close_it();
    assert_int_equal(env->ops->remove(env->ctx, "store/CURRENT"), 0);
    tamiz_env_sim *before = remember();
    for (int sticky = 0; sticky < 2; sticky++) {
        bool acted = true;
        for (uint64_t nth = 1; acted; nth++) {
            struct alloc_fail memory;
            tamiz_options o = TAMIZ_OPTIONS_INIT;
            tamiz_report report = TAMIZ_REPORT_INIT;
            restore(before);
            alloc_fail_init(&memory);
            alloc_fail_at(&memory, nth, sticky);
            o.env = env;
            o.table = 4096;
            o.allocator = memory.alloc.hook;
            const tamiz_status st = tamiz_repair("store", &o, &report);
            acted = memory.failed > 0;
            refused += acted;
            assert_true(st == TAMIZ_OUT_OF_MEMORY || st == TAMIZ_OK);
            assert_true(acted || st == TAMIZ_OK);
            assert_int_equal(tamiz_env_sim_files_open(sim), 0);
            assert_true(memory.blocks == 0 && memory.bytes == 0 && memory.wrong == 0);
            alloc_fail_done(&memory);
            OK(repair(&report));
            open_with(SMALL);
            assert_int_equal(scan_count(NULL), 300);
            close_it();
        }
    }
    tamiz_env_sim_free(before);
    print_message("%zu refusals\n", refused);
    assert_true(refused > 20);
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    tamiz_report report;
    assert_true(repair(&report) != TAMIZ_OK);
    open_with("threads=0");
    assert_int_equal(repair(&report), TAMIZ_BUSY);
    put("a", "1");
    close_it();
    report.struct_size = 3;
    assert_int_equal(tamiz_repair("store", NULL, &report), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_repair("", NULL, NULL), TAMIZ_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_store_without_damage_is_not_touched),
        CASE(what_is_newer_is_left_to_who_can_read_it),
        CASE(a_log_that_ends_with_an_ingestion_is_not_damage),
        CASE(without_a_manifest_newer_values_win_and_deletes_stay),
        CASE(damage_of_one_table_takes_no_other_with_it),
        CASE(a_log_is_read_up_to_its_damage),
        CASE(writes_that_are_missing_are_found_and_the_rest_opens),
        CASE(opening_and_repair_judge_a_log_alike),
        CASE(a_crash_at_any_call_of_a_repair_loses_nothing),
        CASE(a_repair_that_fails_leaves_the_store_as_it_was),
        CASE(a_repair_without_memory_loses_and_leaks_nothing),
        CASE(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
