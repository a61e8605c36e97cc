/* SPDX-License-Identifier: MIT
 *
 * What every env must do, written once and run over all of them, through the wrapper that the
 * store uses.
 * LABEL: threads
 */
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "env/env.h"
#include "tamiz/env_sim.h"

struct world {
    const char *name;
    const tamiz_env *env;
    tamiz_env *owned;
    tamiz_env_sim *sim;
    char root[64];
    struct test_op t;
};

static int posix_setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    test_op_init(&w->t);
    w->name = "posix";
    w->env = tamiz_env_posix();
    test_directory_make(w->root, sizeof w->root);
    *state = w;
    return 0;
}

static int posix_teardown(void **state)
{
    struct world *w = *state;
    test_directory_remove(w->root);
    free(w);
    return 0;
}

static int memory_setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    test_op_init(&w->t);
    w->name = "memory";
    w->env = w->owned = tamiz_env_memory_new();
    (void)snprintf(w->root, sizeof w->root, "root");
    assert_status(&w->t.op, env_make_directory(&w->t.op, w->env, w->root), TAMIZ_OK);
    *state = w;
    return 0;
}

static int memory_teardown(void **state)
{
    struct world *w = *state;
    tamiz_env_memory_free(w->owned);
    free(w);
    return 0;
}

static int sim_setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    test_op_init(&w->t);
    w->name = "sim";
    w->sim = tamiz_env_sim_new(1);
    w->env = tamiz_env_sim_env(w->sim);
    (void)snprintf(w->root, sizeof w->root, "/root");
    assert_status(&w->t.op, env_make_directory(&w->t.op, w->env, w->root), TAMIZ_OK);
    *state = w;
    return 0;
}

static int sim_teardown(void **state)
{
    struct world *w = *state;
    assert_int_equal(tamiz_env_sim_files_open(w->sim), 0);
    tamiz_env_sim_free(w->sim);
    free(w);
    return 0;
}

/* A path below the world's root; a few at a time. */
static const char *at(const struct world *w, const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", w->root, name);
    return path;
}

#define OK(call) assert_status(&w->t.op, (call), TAMIZ_OK)

/* The call fails with this errno; the record is then empty again. */
#define REFUSED(call, error)                                                                       \
    do {                                                                                           \
        assert_status(&w->t.op, (call), TAMIZ_IO_ERROR);                                           \
        assert_int_equal(w->t.op.os_error, (error));                                               \
        op_forgive(&w->t.op);                                                                      \
    } while (0)

static void make_file(struct world *w, const char *name, const char *text)
{
    struct file *f;
    OK(file_open(&w->t.op, w->env, at(w, name), TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &f));
    OK(file_write(&w->t.op, f, IO_META, 0, text, strlen(text)));
    OK(file_close(&w->t.op, f));
}

static void assert_content(struct world *w, const char *name, const char *text)
{
    struct buf b = buf_init(&alloc_libc);
    OK(env_read_file(&w->t.op, w->env, at(w, name), IO_META, 1 << 20, &b));
    assert_int_equal(b.size, strlen(text));
    if (b.size)
        assert_memory_equal(b.data, text, b.size);
    buf_free(&b);
}

static bool exists(struct world *w, const char *name)
{
    bool there;
    tamiz_file_info info;
    OK(env_path_info(&w->t.op, w->env, at(w, name), &there, &info));
    return there;
}

static void creating_refuses_what_is_there(void **state)
{
    struct world *w = *state;
    struct file *f = NULL;
    make_file(w, "a", "first");
    REFUSED(file_open(&w->t.op, w->env, at(w, "a"), TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &f),
            EEXIST);
    assert_null(f);
    assert_content(w, "a", "first");
}

static void opening_what_is_missing_says_enoent_and_the_path(void **state)
{
    struct world *w = *state;
    struct file *f;
    assert_status(&w->t.op, file_open(&w->t.op, w->env, at(w, "none"), TAMIZ_OPEN_READ, &f),
                  TAMIZ_IO_ERROR);
    assert_null(f);
    assert_int_equal(w->t.op.os_error, ENOENT);
    assert_non_null(strstr(w->t.op.text, "/none"));
    op_forgive(&w->t.op);
    REFUSED(file_open(&w->t.op, w->env, at(w, "no/where"), TAMIZ_OPEN_READ, &f), ENOENT);
    REFUSED(file_open(&w->t.op, w->env, w->root, TAMIZ_OPEN_READ, &f), EISDIR);
    make_file(w, "file", "");
    REFUSED(file_open(&w->t.op, w->env, at(w, "file/x"), TAMIZ_OPEN_READ, &f), ENOTDIR);
}

static void reads_beyond_the_end_are_short_or_corruption(void **state)
{
    struct world *w = *state;
    struct file *f;
    char b[32];
    size_t got;
    make_file(w, "a", "0123456789");
    OK(file_open(&w->t.op, w->env, at(w, "a"), TAMIZ_OPEN_READ, &f));
    OK(file_read_some(&w->t.op, f, IO_DATA, 7, b, 10, &got));
    assert_int_equal(got, 3);
    assert_memory_equal(b, "789", 3);
    OK(file_read_some(&w->t.op, f, IO_DATA, 10, b, 10, &got));
    assert_int_equal(got, 0);
    OK(file_read_some(&w->t.op, f, IO_DATA, UINT64_MAX - 3, b, 10, &got));
    assert_int_equal(got, 0);
    OK(file_read(&w->t.op, f, IO_DATA, 0, b, 10));
    assert_status(&w->t.op, file_read(&w->t.op, f, IO_DATA, 1, b, 10), TAMIZ_CORRUPTION);
    op_forgive(&w->t.op);
    assert_status(&w->t.op, file_read(&w->t.op, f, IO_DATA, UINT64_MAX - 3, b, 10),
                  TAMIZ_CORRUPTION);
    op_forgive(&w->t.op);
    OK(file_close(&w->t.op, f));
}

static void every_call_is_counted_by_purpose(void **state)
{
    struct world *w = *state;
    struct file *f;
    char b[8];
    size_t got;
    const struct io_counters *io = w->t.count.io;
    make_file(w, "a", "");
    OK(file_open(&w->t.op, w->env, at(w, "a"), TAMIZ_OPEN_READ | TAMIZ_OPEN_WRITE, &f));
    const uint64_t syncs = counter_get(&w->t.count.syncs);
    OK(file_write(&w->t.op, f, IO_LOG, 0, "12345678", 8));
    OK(file_write(&w->t.op, f, IO_LOG, 8, "", 0));
    OK(file_sync(&w->t.op, f));
    OK(file_read(&w->t.op, f, IO_FILTER, 0, b, 8));
    OK(file_read_some(&w->t.op, f, IO_FILTER, 6, b, 5, &got));
    OK(file_close(&w->t.op, f));
    assert_int_equal(counter_get(&io[IO_LOG].writes), 1);
    assert_int_equal(counter_get(&io[IO_LOG].write_bytes), 8);
    assert_int_equal(counter_get(&w->t.count.syncs), syncs + 1);
    assert_int_equal(counter_get(&io[IO_FILTER].reads), 2);
    assert_int_equal(counter_get(&io[IO_FILTER].read_bytes), 13);
    assert_int_equal(counter_get(&io[IO_DATA].reads), 0);
}

static void a_write_beyond_the_end_leaves_zeros_between(void **state)
{
    struct world *w = *state;
    struct file *f;
    uint64_t size;
    uint8_t b[1000];
    make_file(w, "a", "xy");
    OK(file_open(&w->t.op, w->env, at(w, "a"), TAMIZ_OPEN_READ | TAMIZ_OPEN_WRITE, &f));
    OK(file_allocate(&w->t.op, f, 100000));
    OK(file_size(&w->t.op, f, &size));
    assert_int_equal(size, 2);
    OK(file_write(&w->t.op, f, IO_DATA, 999, "z", 1));
    OK(file_size(&w->t.op, f, &size));
    assert_int_equal(size, 1000);
    OK(file_read(&w->t.op, f, IO_DATA, 0, b, 1000));
    assert_true(b[0] == 'x' && b[1] == 'y' && b[999] == 'z');
    for (int i = 2; i < 999; i++)
        assert_int_equal(b[i], 0);
    OK(file_close(&w->t.op, f));
}

static void truncating_cuts_and_growing_again_gives_zeros(void **state)
{
    struct world *w = *state;
    struct file *f;
    make_file(w, "a", "abcdef");
    OK(file_open(&w->t.op, w->env, at(w, "a"), TAMIZ_OPEN_WRITE, &f));
    OK(file_truncate(&w->t.op, f, 2));
    OK(file_sync(&w->t.op, f));
    assert_content(w, "a", "ab");
    OK(file_truncate(&w->t.op, f, 4));
    OK(file_close(&w->t.op, f));
    struct buf b = buf_init(&alloc_libc);
    OK(env_read_file(&w->t.op, w->env, at(w, "a"), IO_META, 4, &b));
    assert_int_equal(b.size, 4);
    assert_memory_equal(b.data, "ab\0\0", 4);
    assert_status(&w->t.op, env_read_file(&w->t.op, w->env, at(w, "a"), IO_META, 3, &b),
                  TAMIZ_CORRUPTION);
    assert_int_equal(b.size, 0);
    op_forgive(&w->t.op);
    buf_free(&b);
}

static void a_removed_file_stays_readable_while_open(void **state)
{
    struct world *w = *state;
    struct file *f;
    char b[4];
    make_file(w, "a", "kept");
    OK(file_open(&w->t.op, w->env, at(w, "a"), TAMIZ_OPEN_READ, &f));
    OK(env_remove(&w->t.op, w->env, at(w, "a")));
    assert_false(exists(w, "a"));
    make_file(w, "a", "new!");
    OK(file_read(&w->t.op, f, IO_DATA, 0, b, 4));
    assert_memory_equal(b, "kept", 4);
    OK(file_close(&w->t.op, f));
    assert_content(w, "a", "new!");
    OK(env_remove(&w->t.op, w->env, at(w, "a")));
    REFUSED(env_remove(&w->t.op, w->env, at(w, "a")), ENOENT);
}

static void renaming_replaces_and_keeps_who_it_is(void **state)
{
    struct world *w = *state;
    tamiz_file_info before, after;
    bool there;
    make_file(w, "a", "aa");
    make_file(w, "b", "bbb");
    OK(env_path_info(&w->t.op, w->env, at(w, "a"), &there, &before));
    OK(env_rename(&w->t.op, w->env, at(w, "a"), at(w, "b")));
    OK(env_path_info(&w->t.op, w->env, at(w, "b"), &there, &after));
    assert_true(there && before.inode == after.inode && before.device == after.device);
    assert_int_equal(after.size, 2);
    assert_false(exists(w, "a"));
    assert_content(w, "b", "aa");
    REFUSED(env_rename(&w->t.op, w->env, at(w, "a"), at(w, "c")), ENOENT);
    OK(env_rename(&w->t.op, w->env, at(w, "b"), at(w, "b")));
    assert_content(w, "b", "aa");
}

static void renaming_directories_obeys_the_tree(void **state)
{
    struct world *w = *state;
    OK(env_make_directory(&w->t.op, w->env, at(w, "d")));
    OK(env_make_directory(&w->t.op, w->env, at(w, "d/e")));
    OK(env_make_directory(&w->t.op, w->env, at(w, "x")));
    make_file(w, "d/e/f", "deep");
    make_file(w, "file", "flat");
    REFUSED(env_rename(&w->t.op, w->env, at(w, "d"), at(w, "d/e/g")), EINVAL);
    REFUSED(env_rename(&w->t.op, w->env, at(w, "d"), at(w, "file")), ENOTDIR);
    REFUSED(env_rename(&w->t.op, w->env, at(w, "file"), at(w, "d")), EISDIR);
    OK(env_rename(&w->t.op, w->env, at(w, "d"), at(w, "x")));
    assert_content(w, "x/e/f", "deep");
    assert_content(w, "x/e/../e/./f", "deep");
    assert_false(exists(w, "d"));
}

static void a_hard_link_is_the_same_file(void **state)
{
    struct world *w = *state;
    struct file *f;
    bool there;
    tamiz_file_info a, b;
    make_file(w, "a", "one");
    OK(env_link(&w->t.op, w->env, at(w, "a"), at(w, "b")));
    REFUSED(env_link(&w->t.op, w->env, at(w, "a"), at(w, "b")), EEXIST);
    REFUSED(env_link(&w->t.op, w->env, at(w, "none"), at(w, "c")), ENOENT);
    OK(env_path_info(&w->t.op, w->env, at(w, "a"), &there, &a));
    OK(env_path_info(&w->t.op, w->env, at(w, "b"), &there, &b));
    assert_int_equal(a.inode, b.inode);
    OK(file_open(&w->t.op, w->env, at(w, "a"), TAMIZ_OPEN_WRITE, &f));
    OK(file_write(&w->t.op, f, IO_DATA, 0, "two", 3));
    OK(file_close(&w->t.op, f));
    OK(env_rename(&w->t.op, w->env, at(w, "a"), at(w, "b"))); /* the same file: nothing happens */
    assert_content(w, "a", "two");
    OK(env_remove(&w->t.op, w->env, at(w, "a")));
    assert_content(w, "b", "two");
}

static void directories_are_made_once_and_removed_empty(void **state)
{
    struct world *w = *state;
    tamiz_file_info info;
    bool there;
    OK(env_make_directory(&w->t.op, w->env, at(w, "d")));
    REFUSED(env_make_directory(&w->t.op, w->env, at(w, "d")), EEXIST);
    REFUSED(env_make_directory(&w->t.op, w->env, at(w, "no/d")), ENOENT);
    OK(env_path_info(&w->t.op, w->env, at(w, "d"), &there, &info));
    assert_true(there && info.is_directory);
    make_file(w, "d/f", "");
    REFUSED(env_remove_directory(&w->t.op, w->env, at(w, "d")), ENOTEMPTY);
    REFUSED(env_remove_directory(&w->t.op, w->env, at(w, "d/f")), ENOTDIR);
    REFUSED(env_remove(&w->t.op, w->env, at(w, "d")), EISDIR);
    OK(env_remove(&w->t.op, w->env, at(w, "d/f")));
    OK(env_sync_directory(&w->t.op, w->env, at(w, "d")));
    OK(env_remove_directory(&w->t.op, w->env, at(w, "d")));
    assert_false(exists(w, "d"));
    REFUSED(env_sync_directory(&w->t.op, w->env, at(w, "d")), ENOENT);
}

static void note_name(void *ctx, const char *name)
{
    uint64_t *seen = ctx;
    assert_true(name[0] >= 'a' && name[0] <= 'z' && name[1] == 0);
    assert_false(*seen >> (name[0] - 'a') & 1);
    *seen |= UINT64_C(1) << (name[0] - 'a');
}

static void listing_names_each_entry_once(void **state)
{
    struct world *w = *state;
    uint64_t seen = 0;
    OK(env_list(&w->t.op, w->env, w->root, note_name, &seen));
    assert_int_equal(seen, 0);
    make_file(w, "c", "");
    make_file(w, "a", "");
    OK(env_make_directory(&w->t.op, w->env, at(w, "z")));
    make_file(w, "z/m", "");
    OK(env_list(&w->t.op, w->env, w->root, note_name, &seen));
    assert_int_equal(seen, 1 | 4 | 1 << 25);
    REFUSED(env_list(&w->t.op, w->env, at(w, "a"), note_name, &seen), ENOTDIR);
    REFUSED(env_list(&w->t.op, w->env, at(w, "n"), note_name, &seen), ENOENT);
}

static void a_lock_excludes_through_every_name_of_the_path(void **state)
{
    struct world *w = *state;
    void *lock, *second;
    const char *const aliases[] = {"d/LOCK", "d//LOCK", "d/./LOCK", "d/../d/LOCK"};
    OK(env_make_directory(&w->t.op, w->env, at(w, "d")));
    OK(env_lock(&w->t.op, w->env, at(w, "d/LOCK"), &lock));
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        assert_status(&w->t.op, env_lock(&w->t.op, w->env, at(w, aliases[i]), &second), TAMIZ_BUSY);
        assert_null(second);
        assert_non_null(strstr(w->t.op.text, "LOCK"));
        assert_non_null(strstr(w->t.op.text, "this process"));
        op_forgive(&w->t.op);
    }
    OK(env_lock(&w->t.op, w->env, at(w, "other"), &second));
    OK(env_unlock(&w->t.op, w->env, second));
    OK(env_unlock(&w->t.op, w->env, lock));
    OK(env_lock(&w->t.op, w->env, at(w, "d/LOCK"), &lock));
    OK(env_unlock(&w->t.op, w->env, lock));
}

static void a_lock_on_a_removed_file_is_not_a_lock_on_the_new_one(void **state)
{
    struct world *w = *state;
    void *lock, *second;
    OK(env_lock(&w->t.op, w->env, at(w, "LOCK"), &lock));
    OK(env_remove(&w->t.op, w->env, at(w, "LOCK")));
    OK(env_lock(&w->t.op, w->env, at(w, "LOCK"), &second));
    OK(env_unlock(&w->t.op, w->env, lock));
    assert_status(&w->t.op, env_lock(&w->t.op, w->env, at(w, "LOCK"), &lock), TAMIZ_BUSY);
    op_forgive(&w->t.op);
    OK(env_unlock(&w->t.op, w->env, second));
}

static void replacing_a_file_is_whole_and_leaves_no_temporary(void **state)
{
    struct world *w = *state;
    make_file(w, "CURRENT", "old");
    make_file(w, "CURRENT.tmp", "left over");
    OK(env_replace_file(&w->t.op, w->env, w->root, at(w, "CURRENT.tmp"), at(w, "CURRENT"), IO_META,
                        slice_of_text("newer")));
    assert_content(w, "CURRENT", "newer");
    assert_false(exists(w, "CURRENT.tmp"));
    REFUSED(env_replace_file(&w->t.op, w->env, w->root, at(w, "no/CURRENT.tmp"), at(w, "CURRENT"),
                             IO_META, slice_of_text("x")),
            ENOENT);
    assert_content(w, "CURRENT", "newer");
}

enum { MANY_READS = 150 };

struct told {
    const struct file_request *requests;
    int times[MANY_READS];
};

static void take_told(void *ctx, size_t i)
{
    struct told *told = ctx;
    assert_true(i < MANY_READS && told->requests[i].status != TAMIZ_BUSY); /* it stands by now */
    told->times[i]++;
}

static void many_reads_answer_each_request_on_its_own(void **state)
{
    enum { N = MANY_READS, SIZE = 100000 };
    struct world *w = *state;
    struct test_random random = test_random_start(1);
    struct file *f[3];
    static uint8_t content[SIZE], buffers[N][5000];
    static struct file_request r[N];
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)test_random_u64(&random);
    for (int i = 0; i < 3; i++) {
        const char *name = i == 0 ? "a" : "b";
        if (i < 2) {
            OK(file_open(&w->t.op, w->env, at(w, name), TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE,
                         &f[i]));
            OK(file_write(&w->t.op, f[i], IO_DATA, 0, content + i, SIZE - 1));
            OK(file_close(&w->t.op, f[i]));
        }
    }
    OK(file_open(&w->t.op, w->env, at(w, "a"), TAMIZ_OPEN_READ, &f[0]));
    OK(file_open(&w->t.op, w->env, at(w, "b"), TAMIZ_OPEN_READ, &f[1]));
    OK(file_open(&w->t.op, w->env, at(w, "a"), TAMIZ_OPEN_READ | TAMIZ_OPEN_DIRECT, &f[2]));
    for (size_t i = 0; i < N; i++)
        r[i] = (struct file_request){f[i % 3], test_random_below(&random, SIZE + 1000), buffers[i],
                                     1 + test_random_below(&random, sizeof buffers[i]), TAMIZ_BUSY};
    r[N / 2].offset = SIZE - r[N / 2].size; /* one too many */
    struct told told = {.requests = r};
    file_read_each(&w->t.op, IO_DATA, r, N, take_told, &told);
    assert_int_equal(w->t.op.status, TAMIZ_OK);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(told.times[i], 1);
    assert_int_equal(counter_get(&w->t.count.io[IO_DATA].reads), N);
    size_t good = 0;
    for (size_t i = 0; i < N; i++) {
        const bool fits = r[i].offset + r[i].size <= SIZE - 1;
        assert_int_equal(r[i].status, fits ? TAMIZ_OK : TAMIZ_CORRUPTION);
        if (fits)
            assert_memory_equal(buffers[i], content + r[i].offset + (i % 3 == 1), r[i].size);
        good += fits;
    }
    assert_true(good > N / 2 && good < N);
    for (int i = 0; i < 3; i++)
        OK(file_close(&w->t.op, f[i]));
}

static void direct_files_are_read_at_any_alignment(void **state)
{
    enum { SIZE = 50001 };
    struct world *w = *state;
    struct test_random random = test_random_start(2);
    struct file *f;
    static uint8_t content[SIZE], b[SIZE];
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)test_random_u64(&random);
    OK(file_open(&w->t.op, w->env, at(w, "a"), TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &f));
    OK(file_write(&w->t.op, f, IO_DATA, 0, content, SIZE));
    OK(file_close(&w->t.op, f));
    OK(file_open(&w->t.op, w->env, at(w, "a"), TAMIZ_OPEN_READ | TAMIZ_OPEN_DIRECT, &f));
    print_message("%s: %s\n", w->name, file_is_direct(f) ? "direct" : "buffered");
    for (int i = 0; i < 300; i++) {
        const uint64_t offset = test_random_below(&random, SIZE);
        const size_t size = 1 + test_random_below(&random, i % 2 ? 5000 : SIZE);
        const size_t want = size < SIZE - offset ? size : (size_t)(SIZE - offset);
        const uint64_t bytes = counter_get(&w->t.count.io[IO_DATA].read_bytes);
        size_t got;
        memset(b, 0xee, sizeof b);
        OK(file_read_some(&w->t.op, f, IO_DATA, offset, b, size, &got));
        assert_int_equal(got, want);
        assert_memory_equal(b, content + offset, want);
        const uint64_t units = (offset + size + 4095) / 4096 - offset / 4096;
        assert_int_equal(counter_get(&w->t.count.io[IO_DATA].read_bytes) - bytes,
                         file_is_direct(f) ? units * 4096 : size);
    }
    OK(file_close(&w->t.op, f));
}

static void clocks_and_randomness_move(void **state)
{
    struct world *w = *state;
    uint64_t a, b;
    const uint64_t wall = env_wall_us(w->env);
    const uint64_t before = env_monotonic_ns(w->env);
    env_sleep_us(w->env, 1500);
    assert_true(env_monotonic_ns(w->env) - before >= 1500000);
    assert_true(wall > UINT64_C(1500000000000000));
    OK(env_random_u64(&w->t.op, w->env, &a));
    OK(env_random_u64(&w->t.op, w->env, &b));
    assert_true(a && b && a != b);
    assert_true(env_boot_id(w->env) == env_boot_id(w->env));
}

#define LAW(f, world)                                                                              \
    {                                                                                              \
#world ": " #f, f, world##_setup, world##_teardown, NULL                                   \
    }
#define LAWS(world)                                                                                \
    LAW(creating_refuses_what_is_there, world),                                                    \
        LAW(opening_what_is_missing_says_enoent_and_the_path, world),                              \
        LAW(reads_beyond_the_end_are_short_or_corruption, world),                                  \
        LAW(every_call_is_counted_by_purpose, world),                                              \
        LAW(a_write_beyond_the_end_leaves_zeros_between, world),                                   \
        LAW(truncating_cuts_and_growing_again_gives_zeros, world),                                 \
        LAW(a_removed_file_stays_readable_while_open, world),                                      \
        LAW(renaming_replaces_and_keeps_who_it_is, world),                                         \
        LAW(renaming_directories_obeys_the_tree, world), LAW(a_hard_link_is_the_same_file, world), \
        LAW(directories_are_made_once_and_removed_empty, world),                                   \
        LAW(listing_names_each_entry_once, world),                                                 \
        LAW(a_lock_excludes_through_every_name_of_the_path, world),                                \
        LAW(a_lock_on_a_removed_file_is_not_a_lock_on_the_new_one, world),                         \
        LAW(replacing_a_file_is_whole_and_leaves_no_temporary, world),                             \
        LAW(many_reads_answer_each_request_on_its_own, world),                                     \
        LAW(direct_files_are_read_at_any_alignment, world), LAW(clocks_and_randomness_move, world)

int main(void)
{
    const struct CMUnitTest tests[] = {LAWS(posix), LAWS(memory), LAWS(sim)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
