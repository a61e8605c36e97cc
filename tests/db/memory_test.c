/* SPDX-License-Identifier: MIT
 *
 * What the statistics say the store takes of memory, beside what the kernel says the process has
 * more than before it was opened. Sanitizers keep memory of their own, so there and where there is
 * no /proc it is left out.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "support/store.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

enum { KEYS = 600000, KEY = 16, VALUE = 100 };

/* 0: not known here. */
static uint64_t resident_bytes(void)
{
    char line[256];
    uint64_t kib = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    while (f && kib == 0 && fgets(line, sizeof line, f))
        if (strncmp(line, "Rss:", 4) == 0)
            kib = strtoull(line + 4, NULL, 10);
    if (f)
        (void)fclose(f);
    return kib * 1024;
}

/* ---- in a process of its own, which what came before has left nothing in ---- */

static void must(bool right, const char *what)
{
    if (right)
        return;
    print_error("%s: %s\n", what, tamiz_error_detail());
    _exit(1);
}

static void key_make(char key[KEY + 1], unsigned i)
{
    (void)snprintf(key, KEY + 1, "%016llu", (unsigned long long)i * 2654435761u % 1000000007u);
}

static tamiz *open_store(const char *path, const char *options)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz *db;
    must(tamiz_options_set(&o, options) == TAMIZ_OK, options);
    must(tamiz_open(path, &o, &db) == TAMIZ_OK, path);
    return db;
}

static void fill(tamiz *db)
{
    char key[KEY + 1], value[VALUE];
    memset(value, 'v', sizeof value);
    for (unsigned i = 0; i < KEYS; i++) {
        key_make(key, i);
        must(tamiz_put(db, key, KEY, value, VALUE, NULL) == TAMIZ_OK, "put");
    }
}

static void scan(tamiz *db)
{
    tamiz_iter *it;
    unsigned n = 0;
    must(tamiz_iter_open(db, NULL, &it) == TAMIZ_OK, "iterator");
    for (tamiz_iter_seek_first(it); tamiz_iter_valid(it); tamiz_iter_next(it))
        n++;
    tamiz_iter_close(it);
    must(n == KEYS, "scan");
}

static void read_all(tamiz *db)
{
    char key[KEY + 1], value[VALUE];
    size_t size;
    for (unsigned i = 0; i < KEYS; i++) {
        key_make(key, i);
        must(tamiz_get_into(db, key, KEY, value, VALUE, &size, NULL) == TAMIZ_OK, "get");
    }
}

/* Within 5 % of each other. `before`: resident while there was no store. */
static void compare(tamiz *db, uint64_t before, const char *when)
{
    tamiz_stats stats = TAMIZ_STATS_INIT;
    must(tamiz_stats_get(db, &stats) == TAMIZ_OK, "statistics");
    const double has = (double)(resident_bytes() - before), says = (double)stats.memory_bytes;
    print_message("%s: %.1f MB by the statistics, %.1f resident more than before\n", when,
                  says / 1e6, has / 1e6);
    must(has < says * 1.05 && says < has * 1.05, "the two");
    must(stats.cache_bytes + stats.memtable_bytes + stats.table_memory_bytes <= stats.memory_bytes,
         "the sum of the parts");
}

static void in_the_memtable(const char *path)
{
    const uint64_t before = resident_bytes();
    tamiz *db = open_store(path, "memtable=256MiB");
    fill(db);
    compare(db, before, "all in the memtable");
    must(tamiz_flush(db) == TAMIZ_OK, "flush");
    must(tamiz_close(db) == TAMIZ_OK, "close");
}

static void in_the_cache(const char *path)
{
    const uint64_t before = resident_bytes();
    tamiz *db = open_store(path, "cache=1GiB");
    scan(db);
    read_all(db);
    compare(db, before, "all in the cache");
    must(tamiz_close(db) == TAMIZ_OK, "close");
}

/* Blocks come and go: what the heap keeps free between them counts as well. */
static void on_the_disk(const char *path)
{
    const uint64_t before = resident_bytes();
    tamiz *db = open_store(path, "cache=40MiB");
    read_all(db);
    scan(db);
    read_all(db);
    compare(db, before, "most on the disk");
    must(tamiz_close(db) == TAMIZ_OK, "close");
}

static void in_a_process(void (*what)(const char *path), const char *path)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        what(path);
        _exit(0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

static void statistics_tell_what_a_store_takes_of_memory(void **state)
{
    (void)state;
    char path[] = "/tmp/tamiz-memory-XXXXXX";
    if (SANITIZED || resident_bytes() == 0 || !mkdtemp(path))
        skip();
    in_a_process(in_the_memtable, path);
    in_a_process(in_the_cache, path);
    in_a_process(on_the_disk, path);
    assert_public(tamiz_destroy(path), TAMIZ_OK);
}

/* Everywhere, in small: what is taken is counted, what is freed no more, buffers for the user not
 * at all. */
static void an_allocator_counts_what_is_in_use(void **state)
{
    (void)state;
    struct alloc_count count = {0};
    const struct alloc a = {{NULL, NULL}, &count};
    void *p = mem_new(&a, 1000), *q = mem_new_array(&a, 300, 10), *r = mem_new_aligned(&a, 999, 64);
    assert_true(alloc_bytes(&count) >= 5000 && alloc_bytes(&count) < 5200);
    p = mem_resize(&a, p, 1000, 200000);
    assert_true(alloc_bytes(&count) >= 204000 && alloc_bytes(&count) < 210000);
    void *handed = mem_handout(&a, 5000);
    mem_free(&a, p, 200000);
    mem_free(&a, q, 3000);
    mem_free_aligned(&a, r, 999, 64);
    assert_int_equal(alloc_bytes(&count), 0);
    tamiz_free(handed);
    assert_int_equal(alloc_bytes(&count), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allocator_counts_what_is_in_use),
        cmocka_unit_test(statistics_tell_what_a_store_takes_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
