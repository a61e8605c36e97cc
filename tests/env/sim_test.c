/* SPDX-License-Identifier: MIT
 *
 * What the simulated machine forgets in a crash, and that it forgets nothing else.
 */
#include "env/sim_kit.h"

static void a_power_cut_forgets_what_was_not_synced(void **state)
{
    (void)state;
    make("a", "synced", true);
    make("b", "not", false);
    sync_root();
    make("c", "no entry", true);
    struct file *f = open_file("a", TAMIZ_OPEN_WRITE);
    write_at(f, 6, " and more");
    OK(file_close(&t.op, f));
    assert_string_equal(content("a"), "synced and more");
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_string_equal(content("a"), "synced");
    assert_string_equal(content("b"), "");
    assert_string_equal(content("c"), "-");
}

static void a_killed_process_loses_nothing_but_is_not_synced_by_it(void **state)
{
    (void)state;
    make("a", "text", false);
    const uint64_t boot = env_boot_id(env);
    crash(TAMIZ_SIM_KEEP, NULL, 0);
    assert_string_equal(content("a"), "text");
    assert_true(env_boot_id(env) == boot);
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_string_equal(content("a"), "-");
    assert_true(env_boot_id(env) != boot);
}

static void names_change_with_the_directorys_sync_alone(void **state)
{
    (void)state;
    make("old", "1", true);
    make("gone", "2", true);
    make("current", "before", true);
    make("next", "after", true);
    sync_root();
    OK(env_rename(&t.op, env, "old", "new"));
    OK(env_remove(&t.op, env, "gone"));
    OK(env_rename(&t.op, env, "next", "current"));
    OK(env_link(&t.op, env, "new", "link"));
    tamiz_env_sim *second = tamiz_env_sim_copy(sim);
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_string_equal(content("old"), "1");
    assert_string_equal(content("new"), "-");
    assert_string_equal(content("gone"), "2");
    assert_string_equal(content("current"), "before");
    assert_string_equal(content("next"), "after");
    assert_string_equal(content("link"), "-");

    tamiz_env_sim_free(sim);
    sim = second;
    env = tamiz_env_sim_env(sim);
    sync_root();
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_string_equal(content("old"), "-");
    assert_string_equal(content("new"), "1");
    assert_string_equal(content("gone"), "-");
    assert_string_equal(content("current"), "after");
    assert_string_equal(content("next"), "-");
    assert_string_equal(content("link"), "1");
}

static void a_new_directory_lasts_once_its_parent_is_synced(void **state)
{
    (void)state;
    tamiz_env_sim *s = sim;
    assert_int_equal(env->ops->make_directory(s, "d"), 0);
    make("d/f", "text", true);
    OK(env_sync_directory(&t.op, env, "d"));
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_false(exists("d"));
    OK(env_make_directory(&t.op, env, "d")); /* syncs the parent */
    make("d/f", "text", true);
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_true(exists("d"));
    assert_string_equal(content("d/f"), "-");
    make("d/f", "text", true);
    OK(env_sync_directory(&t.op, env, "d"));
    OK(env_make_directory(&t.op, env, "e"));
    OK(env_rename(&t.op, env, "d/f", "e/g"));
    OK(env_sync_directory(&t.op, env, "e")); /* one half of a rename brings the other */
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_string_equal(content("d/f"), "-");
    assert_string_equal(content("e/g"), "text");
}

static void replacing_a_file_survives_at_every_call(void **state)
{
    (void)state;
    const tamiz_sim_crash modes[] = {TAMIZ_SIM_KEEP, TAMIZ_SIM_DROP, TAMIZ_SIM_TEAR,
                                     TAMIZ_SIM_ZERO, TAMIZ_SIM_JUNK, TAMIZ_SIM_REORDER};
    make("CURRENT", "old", true);
    sync_root();
    tamiz_env_sim *start = sim;
    size_t old = 0, new = 0, crashes = 0;
    bool finished = false;
    for (uint64_t call = 1; !finished; call++) {
        sim = tamiz_env_sim_copy(start);
        env = tamiz_env_sim_env(sim);
        tamiz_env_sim_stop_at(sim, call);
        finished = env_replace_file(&t.op, env, "/", "CURRENT.tmp", "CURRENT", IO_META,
                                    slice_of_text("fresh")) == TAMIZ_OK;
        op_forgive(&t.op);
        for (uint64_t i = 0; i < 5 + 8; i++) {
            tamiz_env_sim *stopped = sim;
            sim = tamiz_env_sim_copy(stopped);
            env = tamiz_env_sim_env(sim);
            crash(modes[i < 5 ? i : 5], NULL, i < 5 ? 3 : i);
            const bool is_new = strcmp(content("CURRENT"), "fresh") == 0;
            assert_true(is_new || strcmp(content("CURRENT"), "old") == 0);
            assert_true(is_new || !finished);
            new += is_new;
            old += !is_new;
            crashes++;
            tamiz_env_sim_free(sim);
            sim = stopped;
        }
        tamiz_env_sim_free(sim);
    }
    sim = start;
    assert_int_equal(crashes, 13 * 8); /* remove, create, write, sync, close, rename, sync, none */
    assert_true(old > 50 && new > 15);
}

static void tearing_takes_only_unsynced_bytes_of_the_newest_file(void **state)
{
    (void)state;
    make("1.log", "first", false);
    struct file *f = create("2.log");
    write_at(f, 0, "synced");
    OK(file_sync(&t.op, f));
    write_at(f, 6, "tail");
    make("x.sst", "table", false);
    OK(file_close(&t.op, f));
    tamiz_env_sim *start = sim;
    for (uint64_t n = 0; n < 9; n++) {
        sim = tamiz_env_sim_copy(start);
        env = tamiz_env_sim_env(sim);
        crash(TAMIZ_SIM_TEAR, "*.log", n);
        assert_string_equal(content("1.log"), "first");
        assert_string_equal(content("x.sst"), "table");
        assert_int_equal(strlen(content("2.log")), n < 4 ? 10 - n : 6);
        assert_memory_equal(content("2.log"), "synced", 6);
        tamiz_env_sim_free(sim);
    }
    sim = start;
}

static void zeros_and_junk_take_only_unsynced_bytes(void **state)
{
    (void)state;
    struct file *f = create("2.log");
    char b[11] = {0};
    write_at(f, 0, "synced");
    OK(file_sync(&t.op, f));
    write_at(f, 6, "tail");
    OK(file_close(&t.op, f));
    tamiz_env_sim *start = sim;
    for (int i = 0; i < 2; i++) {
        sim = tamiz_env_sim_copy(start);
        env = tamiz_env_sim_env(sim);
        crash(i ? TAMIZ_SIM_JUNK : TAMIZ_SIM_ZERO, "*", i ? 100 : 3);
        f = open_file("2.log", TAMIZ_OPEN_READ);
        OK(file_read(&t.op, f, IO_DATA, 0, b, 10));
        OK(file_close(&t.op, f));
        assert_memory_equal(b, "synced", 6);
        if (i == 0)
            assert_memory_equal(b + 6, "t\0\0\0", 4);
        else
            assert_memory_not_equal(b + 6, "tail", 4);
        tamiz_env_sim_free(sim);
    }
    sim = start;
}

/* Three sectors, each of one letter; a second and a third write over them. */
static void reordering_leaves_each_sector_at_some_version(void **state)
{
    (void)state;
    enum { SECTORS = 3, SIZE = SECTORS * 512 };
    static char bytes[3][SIZE];
    bool seen[27] = {false}, cut = false;
    for (int i = 0; i < 3; i++)
        memset(bytes[i], 'a' + i, SIZE);
    struct file *f = create("f");
    OK(file_write(&t.op, f, IO_DATA, 0, bytes[0], SIZE));
    OK(file_sync(&t.op, f));
    sync_root();
    OK(file_write(&t.op, f, IO_DATA, 0, bytes[1], SIZE));
    OK(file_write(&t.op, f, IO_DATA, 0, bytes[2], SIZE));
    OK(file_write(&t.op, f, IO_DATA, SIZE, "z", 1));
    OK(file_close(&t.op, f));
    tamiz_env_sim *start = sim;
    for (uint64_t seed = 0; seed < 600; seed++) {
        char b[2][SIZE + 1];
        size_t got[2];
        for (int again = 0; again < 2; again++) {
            sim = tamiz_env_sim_copy(start);
            env = tamiz_env_sim_env(sim);
            crash(TAMIZ_SIM_REORDER, NULL, seed);
            f = open_file("f", TAMIZ_OPEN_READ);
            OK(file_read_some(&t.op, f, IO_DATA, 0, b[again], SIZE + 1, &got[again]));
            OK(file_close(&t.op, f));
            tamiz_env_sim_free(sim);
        }
        assert_int_equal(got[0], got[1]);
        assert_memory_equal(b[0], b[1], got[0]);
        assert_true(got[0] == SIZE ||
                    (got[0] == SIZE + 1 && (b[0][SIZE] == 0 || b[0][SIZE] == 'z')));
        cut |= got[0] == SIZE;
        int code = 0;
        for (int s = 0; s < SECTORS; s++) {
            const char letter = b[0][s * 512];
            assert_true(letter >= 'a' && letter <= 'c');
            for (int i = 0; i < 512; i++)
                assert_int_equal(b[0][s * 512 + i], letter);
            code = code * 3 + (letter - 'a');
        }
        seen[code] = true;
    }
    sim = start;
    for (int i = 0; i < 27; i++)
        assert_true(seen[i]);
    assert_true(cut);
}

static void reordering_lets_each_name_survive_on_its_own(void **state)
{
    (void)state;
    bool seen[16] = {false};
    make("a", "", true);
    make("b", "", true);
    sync_root();
    OK(env_remove(&t.op, env, "a"));
    OK(env_rename(&t.op, env, "b", "c"));
    make("d", "", true);
    OK(env_make_directory(&t.op, env, "dir")); /* syncs: all so far is on the disk */
    OK(env_remove(&t.op, env, "c"));
    make("a", "", true);
    OK(env_rename(&t.op, env, "d", "e"));
    OK(env_rename(&t.op, env, "dir", "dir1"));
    OK(env_rename(&t.op, env, "dir1", "dir2"));
    tamiz_env_sim *start = sim;
    for (uint64_t seed = 0; seed < 400; seed++) {
        sim = tamiz_env_sim_copy(start);
        env = tamiz_env_sim_env(sim);
        crash(TAMIZ_SIM_REORDER, NULL, seed);
        assert_true(exists("d") != exists("e"));
        assert_false(exists("b"));
        assert_int_equal(exists("dir") + exists("dir1") + exists("dir2"), 1);
        seen[exists("c") + 2 * exists("a") + 4 * exists("e") + 8 * exists("dir2")] = true;
        tamiz_env_sim_free(sim);
    }
    sim = start;
    for (int i = 0; i < 16; i++)
        assert_true(seen[i]);
}

static void truncation_is_a_change_like_any_other(void **state)
{
    (void)state;
    bool seen_long = false, seen_short = false;
    struct file *f = create("f");
    write_at(f, 0, "0123456789");
    OK(file_sync(&t.op, f));
    sync_root();
    OK(file_truncate(&t.op, f, 4));
    OK(file_close(&t.op, f));
    assert_string_equal(content("f"), "0123");
    tamiz_env_sim *start = sim;
    for (uint64_t seed = 0; seed < 50; seed++) {
        sim = tamiz_env_sim_copy(start);
        env = tamiz_env_sim_env(sim);
        crash(TAMIZ_SIM_REORDER, NULL, seed);
        seen_long |= strcmp(content("f"), "0123456789") == 0;
        seen_short |= strcmp(content("f"), "0123") == 0;
        tamiz_env_sim_free(sim);
    }
    sim = start;
    env = tamiz_env_sim_env(sim);
    assert_true(seen_long && seen_short);
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_string_equal(content("f"), "0123456789");
}

/* ---- laws, at random ---- */

/* One random call out of few files; its result. Equal seeds make equal calls on any env. */
static int64_t random_call(struct test_random *r, const tamiz_env *on, const char *root)
{
    static const char *const names[] = {"a", "b", "d", "d/a", "d/b", "e"};
    char from[160], to[160], b[3000];
    void *file;
    tamiz_file_info info;
    (void)snprintf(from, sizeof from, "%s/%s", root, names[test_random_below(r, 6)]);
    (void)snprintf(to, sizeof to, "%s/%s", root, names[test_random_below(r, 6)]);
    const uint64_t what = test_random_below(r, 12), offset = test_random_below(r, 2000);
    const size_t size = (size_t)test_random_below(r, 1500);
    memset(b, 'a' + (int)(offset % 26), sizeof b);
    const tamiz_env_ops *ops = on->ops;
    int64_t result;
    switch (what) {
    case 0: return ops->rename(on->ctx, from, to);
    case 1: return ops->link(on->ctx, from, to);
    case 2: return ops->remove(on->ctx, from);
    case 3: return ops->make_directory(on->ctx, from);
    case 4: return ops->remove_directory(on->ctx, from);
    case 5: return ops->sync_directory(on->ctx, from);
    case 6:
        result = ops->path_info(on->ctx, from, &info);
        return result ? result : (int64_t)(info.size + info.is_directory);
    default: break;
    }
    const int flags = TAMIZ_OPEN_READ | TAMIZ_OPEN_WRITE | (what < 10 ? TAMIZ_OPEN_CREATE : 0);
    result = ops->open(on->ctx, from, flags, &file);
    if (result)
        return result;
    if (what % 2)
        result = ops->write(on->ctx, file, offset, b, size);
    else
        result = ops->truncate(on->ctx, file, offset);
    if (!result && size % 3 == 0)
        result = ops->sync(on->ctx, file);
    if (!result) {
        result = ops->read(on->ctx, file, 0, b, sizeof b);
        for (int64_t i = 0, n = result; i < n; i++)
            result = (result * 31 + b[i]) % 1000000007;
    }
    const int closed = ops->close(on->ctx, file);
    return closed ? closed : result;
}

static void the_simulated_machine_answers_like_the_real_one(void **state)
{
    (void)state;
    enum { CALLS = 4000 };
    struct test_random seed = test_random_start(3);
    char root[64];
    test_directory_make(root, sizeof root);
    assert_int_equal(env->ops->make_directory(env->ctx, "r"), 0);
    size_t good = 0;
    for (int i = 0; i < CALLS; i++) {
        const uint64_t start = test_random_u64(&seed);
        struct test_random here = {start}, there = {start};
        const int64_t simulated = random_call(&here, env, "r");
        const int64_t real = random_call(&there, tamiz_env_posix(), root);
        if (simulated != real)
            fail_msg("call %d: simulated %lld, real %lld", i, (long long)simulated,
                     (long long)real);
        good += real >= 0;
    }
    assert_true(good > CALLS / 8);
    test_directory_remove(root);
}

/* What is below a directory: a sum of names, contents and sizes. */
struct survey {
    const char *directory;
    uint64_t digest, bytes, files;
};

static void survey_entry(void *ctx, const char *name)
{
    struct survey *v = ctx;
    tamiz_file_info info;
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", v->directory, name);
    assert_int_equal(env->ops->path_info(env->ctx, path, &info), 0);
    uint64_t mark = info.inode * 31 + info.size;
    for (const char *p = path; *p; p++)
        mark = mark * 131 + (unsigned char)*p;
    if (info.is_directory) {
        struct survey below = {path, 0, 0, 0};
        assert_int_equal(env->ops->list(env->ctx, path, survey_entry, &below), 0);
        mark = mark * 131 + below.digest;
        v->bytes += below.bytes;
        v->files += below.files;
    } else {
        for (const char *p = content(path); *p; p++)
            mark = mark * 131 + (unsigned char)*p;
        v->bytes += info.size;
        v->files++;
    }
    v->digest += mark;
}

static struct survey survey(void)
{
    struct survey v = {"", 0, 0, 0};
    assert_int_equal(env->ops->list(env->ctx, "/", survey_entry, &v), 0);
    return v;
}

static void a_second_power_cut_loses_nothing_more(void **state)
{
    (void)state;
    enum { ROUNDS = 200 };
    struct test_random seed = test_random_start(4);
    uint64_t files = 0;
    for (int round = 0; round < ROUNDS; round++) {
        (void)env->ops->make_directory(env->ctx, "r");
        for (int i = 0; i < 60; i++)
            (void)random_call(&seed, env, "r");
        const struct survey before = survey();
        tamiz_env_sim *original = sim;
        sim = tamiz_env_sim_copy(original);
        env = tamiz_env_sim_env(sim);
        assert_true(survey().digest == before.digest);
        tamiz_env_sim_free(original);
        crash((tamiz_sim_crash)(1 + test_random_below(&seed, 5)), NULL,
              test_random_below(&seed, 3000));
        const struct survey first = survey();
        assert_true(tamiz_env_sim_disk_used(sim) <= first.bytes); /* links count once */
        crash(round % 2 ? TAMIZ_SIM_REORDER : TAMIZ_SIM_DROP, NULL, 1);
        assert_true(survey().digest == first.digest);
        files += first.files;
    }
    assert_true(files > ROUNDS);
}

/* With all below. `ctx` is the directory's path. */
static void sync_entry(void *ctx, const char *name)
{
    const char *directory = ctx;
    char path[128];
    void *f;
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    if (env->ops->open(env->ctx, path, TAMIZ_OPEN_WRITE, &f) == 0) {
        assert_int_equal(env->ops->sync(env->ctx, f), 0);
        assert_int_equal(env->ops->close(env->ctx, f), 0);
    } else {
        assert_int_equal(env->ops->list(env->ctx, path, sync_entry, path), 0);
        assert_int_equal(env->ops->sync_directory(env->ctx, path), 0);
    }
}

static void everything_synced_survives_every_power_cut(void **state)
{
    (void)state;
    struct test_random seed = test_random_start(5);
    for (int round = 0; round < 50; round++) {
        (void)env->ops->make_directory(env->ctx, "r");
        for (int i = 0; i < 60; i++)
            (void)random_call(&seed, env, "r");
        char top[] = "";
        sync_entry(top, "r");
        sync_root();
        const struct survey before = survey();
        crash((tamiz_sim_crash)(1 + round % 5), NULL, (uint64_t)round + 1);
        assert_true(survey().digest == before.digest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_power_cut_forgets_what_was_not_synced),
        TEST(a_killed_process_loses_nothing_but_is_not_synced_by_it),
        TEST(names_change_with_the_directorys_sync_alone),
        TEST(a_new_directory_lasts_once_its_parent_is_synced),
        TEST(replacing_a_file_survives_at_every_call),
        TEST(tearing_takes_only_unsynced_bytes_of_the_newest_file),
        TEST(zeros_and_junk_take_only_unsynced_bytes),
        TEST(reordering_leaves_each_sector_at_some_version),
        TEST(reordering_lets_each_name_survive_on_its_own),
        TEST(truncation_is_a_change_like_any_other),
        TEST(the_simulated_machine_answers_like_the_real_one),
        TEST(a_second_power_cut_loses_nothing_more),
        TEST(everything_synced_survives_every_power_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
