/* SPDX-License-Identifier: MIT
 *
 * The promise, as tests: the numbers that the store tells of its filters are true. A store on the
 * real file system, with O_DIRECT, holds the 663,473 words of Debian's largest English list; it is
 * asked for them, and for the words of a Spanish list that are not among them. Each figure is
 * compared with somebody who can't be talked into it: the kernel's own count of bytes read, the
 * words themselves, the binomial distribution, and the same reads once more with the filters left
 * unasked.
 *
 * Where the lists are missing, made-up words take their place; where the kernel does not count or
 * refuses O_DIRECT, the tests that need it are skipped, with the reason.
 *
 *     honesty_test [NAME ...]          all tests, or those named
 *     CTEST: kernel members rate avoided cached
 */
#define _GNU_SOURCE /* O_DIRECT */
#include "support/test.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tamiz/tamiz.h"

#define WORDS_PATH  "/usr/share/dict/american-english-insane"
#define PROBES_PATH "/usr/share/dict/spanish"

enum { MADE_UP_WORDS = 663473, MADE_UP_PROBES = 86014 };

/* ---- words: what is stored, and what is asked for and not there */

struct words {
    char *text;         /* one block, NUL where lines ended */
    const char **items; /* ascending or shuffled            */
    size_t count;
};

static void *must_alloc(size_t size)
{
    void *p = malloc(size ? size : 1);
    assert_non_null(p);
    return p;
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    long size;
    if (!file)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0) {
        rewind(file);
        text = must_alloc((size_t)size + 1);
        text[fread(text, 1, (size_t)size, file)] = 0;
    }
    (void)fclose(file);
    return text;
}

static char *made_up_text(size_t count, const char *alphabet, uint64_t seed)
{
    struct test_random r = {seed};
    char *text = must_alloc(count * 14 + 1), *out = text;
    for (size_t i = 0; i < count; i++) {
        for (size_t letters = 11 + test_random_below(&r, 2); letters; letters--)
            *out++ = alphabet[test_random_below(&r, strlen(alphabet))];
        *out++ = '\n';
    }
    *out = 0;
    return text;
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool words_have(const struct words *sorted, const char *word)
{
    return bsearch(&word, sorted->items, sorted->count, sizeof *sorted->items, compare_words);
}

/* Distinct lines in ascending order; `without`: those that it has are left out. */
static void words_load(struct words *w, const char *path, char *fallback,
                       const struct words *without)
{
    char *line, *rest = NULL;
    w->count = 0;
    w->text = read_text(path);
    if (!w->text) {
        print_message("honesty: %s is not here: made-up words instead\n", path);
        w->text = fallback;
    } else {
        free(fallback);
    }
    w->items = must_alloc((strlen(w->text) / 2 + 1) * sizeof *w->items);
    for (line = strtok_r(w->text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (!without || !words_have(without, line))
            w->items[w->count++] = line;
    qsort(w->items, w->count, sizeof *w->items, compare_words);
    size_t kept = 0;
    for (size_t i = 0; i < w->count; i++)
        if (kept == 0 || strcmp(w->items[kept - 1], w->items[i]) != 0)
            w->items[kept++] = w->items[i];
    w->count = kept;
}

static void words_shuffle(struct words *w, uint64_t seed)
{
    struct test_random r = {seed};
    for (size_t i = w->count; i > 1; i--) {
        const size_t k = test_random_below(&r, i);
        const char *swap = w->items[i - 1];
        w->items[i - 1] = w->items[k];
        w->items[k] = swap;
    }
}

static void words_free(struct words *w)
{
    free(w->text);
    free(w->items);
}

/* ---- the kernel's count */

/* false: it does not tell. */
static bool kernel_read_bytes(uint64_t *bytes)
{
    char line[80];
    bool found = false;
    FILE *file = fopen("/proc/self/io", "r");
    if (!file)
        return false;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "read_bytes: ", 12) == 0) {
            *bytes = strtoull(line + 12, NULL, 10);
            found = true;
        }
    (void)fclose(file);
    return found;
}

/* NULL: a direct read in `directory` reaches the device and the kernel counts it. Else why not. */
static const char *why_not_direct(const char *directory)
{
    char path[128];
    void *block = NULL;
    uint64_t before = 0, after = 0;
    const char *reason = NULL;
    (void)snprintf(path, sizeof path, "%s/direct", directory);
    if (!kernel_read_bytes(&before))
        return "/proc/self/io can't be read";
    assert_int_equal(posix_memalign(&block, 4096, 4096), 0);
    memset(block, 1, 4096);
    const int fd = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
    if (fd < 0)
        reason = "the file system refuses O_DIRECT";
    else if (pwrite(fd, block, 4096, 0) != 4096 || pread(fd, block, 4096, 0) != 4096)
        reason = "a direct read or write of 4096 bytes fails";
    else if (kernel_read_bytes(&after) && after - before != 4096)
        reason = "the kernel does not count a direct read";
    if (fd >= 0)
        (void)close(fd);
    (void)unlink(path);
    free(block);
    return reason;
}

/* ---- the store of words, made once for all tests */

struct world {
    struct words words;  /* shuffled               */
    struct words absent; /* shuffled, not in words */
    char directory[64];
    const char *not_direct; /* NULL: device reads can be believed */
    bool loaded;            /* the store "words" is there         */
};
static struct world world;

static const char *store_path(const char *name)
{
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", world.directory, name);
    return path;
}

static tamiz *store_open(const char *name, const char *filter, const char *cache)
{
    char text[160];
    tamiz *db;
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    (void)snprintf(text, sizeof text,
                   "filter=%s cache=%s direct_io=true memtable=4MiB table=4MiB block=4KiB "
                   "compression=none compaction=tiered size_ratio=4 level0_runs=3 threads=0",
                   filter, cache);
    assert_public(tamiz_options_set(&options, text), TAMIZ_OK);
    assert_public(tamiz_open(store_path(name), &options, &db), TAMIZ_OK);
    return db;
}

/* The key is the word; its value is its number in the shuffled order. */
static void store_load(tamiz *db)
{
    bool more = true;
    for (uint64_t i = 0; i < world.words.count; i++) {
        const char *word = world.words.items[i];
        assert_public(tamiz_put(db, word, strlen(word), &i, sizeof i, NULL), TAMIZ_OK);
    }
    assert_public(tamiz_flush(db), TAMIZ_OK);
    while (more)
        assert_public(tamiz_step(db, 1000000, &more), TAMIZ_OK);
}

/* The store that most tests share: blocked:10, loaded by the first who wants it. */
static tamiz *words_open(const char *cache)
{
    if (!world.loaded) {
        tamiz *db = store_open("words", "blocked:10", "1MiB");
        store_load(db);
        assert_public(tamiz_close(db), TAMIZ_OK);
        world.loaded = true;
    }
    return store_open("words", "blocked:10", cache);
}

static tamiz_stats stats_of(tamiz *db)
{
    tamiz_stats stats = TAMIZ_STATS_INIT;
    assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
    return stats;
}

/* Bytes from the device for whatever purpose. */
static uint64_t all_read_bytes(const tamiz_stats *s)
{
    return s->data.read_bytes + s->index.read_bytes + s->filter.read_bytes + s->meta.read_bytes +
           s->log.read_bytes + s->compaction.read_bytes;
}

static void ask_for_absent(tamiz *db, bool use_filters)
{
    uint64_t value;
    size_t size;
    tamiz_read_options options = TAMIZ_READ_OPTIONS_INIT;
    options.use_filters = use_filters;
    for (size_t i = 0; i < world.absent.count; i++) {
        const char *word = world.absent.items[i];
        assert_public(tamiz_get_into(db, word, strlen(word), &value, sizeof value, &size, &options),
                      TAMIZ_NOT_FOUND);
    }
}

static void ask_for_all_words(tamiz *db)
{
    for (uint64_t i = 0; i < world.words.count; i++) {
        const char *word = world.words.items[i];
        uint64_t value = UINT64_MAX;
        size_t size = 0;
        const tamiz_status st =
            tamiz_get_into(db, word, strlen(word), &value, sizeof value, &size, NULL);
        if (st != TAMIZ_OK || size != sizeof value || value != i)
            fail_msg("\"%s\", number %llu: %s, value %llu", word, (unsigned long long)i,
                     tamiz_status_name(st), (unsigned long long)value);
    }
}

static void skip_unless_direct(void)
{
    if (!world.not_direct)
        return;
    print_message("honesty: skipped, %s\n", world.not_direct);
    skip();
}

/* ---- the tests */

static void the_kernel_counts_the_bytes_that_the_store_counts(void **state)
{
    uint64_t kernel_before = 0, kernel_after = 0;
    (void)state;
    skip_unless_direct();
    assert_public(tamiz_close(words_open("1MiB")), TAMIZ_OK);
    assert_true(kernel_read_bytes(&kernel_before));
    tamiz *db = words_open("1MiB");
    ask_for_absent(db, true);
    ask_for_absent(db, false);
    ask_for_absent(db, true);
    const tamiz_stats stats = stats_of(db);
    assert_true(kernel_read_bytes(&kernel_after));
    const double kernel = (double)(kernel_after - kernel_before);
    const double store = (double)all_read_bytes(&stats);
    print_message("honesty: the kernel read %.0f bytes, the store says %.0f (%.3f %% off)\n",
                  kernel, store, 100 * (store / kernel - 1));
    assert_true(kernel > 10e6);
    assert_true(fabs(store - kernel) <= 0.02 * kernel);
    assert_public(tamiz_close(db), TAMIZ_OK);
}

static void the_rate_is_the_one_that_the_filters_promise(void **state)
{
    static const char *const filters[] = {"blocked:10", "bloom:10", "bloom:4", "blocked:6"};
    (void)state;
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        tamiz *db = i == 0 ? words_open("64MiB") : store_open("rate", filters[i], "64MiB");
        if (i > 0)
            store_load(db);
        const tamiz_stats before = stats_of(db);
        ask_for_absent(db, true);
        const tamiz_stats after = stats_of(db);
        const double wrong =
            (double)(after.total.filter_false_positives - before.total.filter_false_positives);
        const double right = (double)(after.total.filter_negatives - before.total.filter_negatives);
        const double expected = after.total.filter_expected_false_positives -
                                before.total.filter_expected_false_positives;
        const double rate = expected / (wrong + right);
        const double sigma = sqrt(expected * (1 - rate));
        print_message("honesty: %s: %.0f probes, %.0f false positives, theory %.1f, %.2f sigma\n",
                      filters[i], wrong + right, wrong, expected, (wrong - expected) / sigma);
        assert_true(right + wrong >= (double)world.absent.count);
        assert_int_equal(after.total.filter_true_positives, before.total.filter_true_positives);
        assert_int_equal(after.total.filter_unavailable, 0);
        assert_true(fabs(wrong - expected) <= 5 * sigma);
        assert_public(tamiz_close(db), TAMIZ_OK);
        if (i > 0)
            assert_public(tamiz_destroy(store_path("rate")), TAMIZ_OK);
    }
}

/* Every family that this build knows. */
static void no_filter_hides_a_word(void **state)
{
    static const char *const filters[] = {"bloom:10",  "blocked:10", "split:10", "ribbon:7",
                                          "bumped:7",  "fuse8",      "fuse4",    "xor8",
                                          "cuckoo:12", "bloom:1",    "none"};
    (void)state;
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        tamiz_filter_policy policy;
        if (tamiz_filter_policy_parse(filters[i], &policy) != TAMIZ_OK) {
            print_message("honesty: left out, %s\n", tamiz_error_detail());
            continue;
        }
        tamiz *db = store_open("members", filters[i], "32MiB");
        store_load(db);
        ask_for_all_words(db);
        const tamiz_stats stats = stats_of(db);
        assert_int_equal(stats.gets_found, world.words.count);
        assert_int_equal(stats.total.filter_unavailable == 0, strcmp(filters[i], "none") != 0);
        assert_public(tamiz_close(db), TAMIZ_OK);
        assert_public(tamiz_destroy(store_path("members")), TAMIZ_OK);
    }
}

/* Device reads of data for all absent words, on a store that was just opened. */
static tamiz_stats cold_pass(const char *cache, bool use_filters)
{
    tamiz *db = words_open(cache);
    ask_for_absent(db, use_filters);
    const tamiz_stats stats = stats_of(db);
    assert_public(tamiz_close(db), TAMIZ_OK);
    return stats;
}

static void filters_leave_a_hundredth_of_the_device_reads(void **state)
{
    (void)state;
    skip_unless_direct();
    const tamiz_stats with = cold_pass("1MiB", true);
    const tamiz_stats without = cold_pass("1MiB", false);
    print_message("honesty: 1 MiB of cache: %llu device reads with filters, %llu without; the "
                  "store's estimate of those avoided: %llu +- %llu\n",
                  (unsigned long long)with.total.device_reads,
                  (unsigned long long)without.total.device_reads,
                  (unsigned long long)with.total.device_reads_avoided,
                  (unsigned long long)with.total.device_reads_avoided_error);
    assert_true(without.total.device_reads > world.absent.count / 2);
    assert_true((double)with.total.device_reads <= 0.015 * (double)without.total.device_reads);
    assert_int_equal(without.total.filter_negatives, 0);
}

/* With everything in the cache, a negative saves a look into memory and no device read: who adds
 * up negatives and calls them reads is far off. */
static void probes_avoided_are_not_called_reads_avoided(void **state)
{
    (void)state;
    skip_unless_direct();
    const tamiz_stats with = cold_pass("512MiB", true);
    const tamiz_stats without = cold_pass("512MiB", false);
    const double truth = (double)without.total.device_reads - (double)with.total.device_reads;
    const double negatives = (double)with.total.filter_negatives;
    const double estimate = (double)with.total.device_reads_avoided;
    const double error = (double)with.total.device_reads_avoided_error;
    print_message("honesty: 512 MiB of cache: %.0f negatives, %.0f device reads truly avoided, "
                  "the store's estimate %.0f +- %.0f\n",
                  negatives, truth, estimate, error);
    assert_true(negatives > 3 * truth);
    assert_true(estimate < negatives / 2);
    assert_true(fabs(estimate - truth) <= 5 * error + 0.25 * truth);
}

/* ---- setting up */

static int world_make(void **state)
{
    (void)state;
    words_load(&world.words, WORDS_PATH,
               made_up_text(MADE_UP_WORDS, "abcdefghijklmnopqrstuvwxyz", 1), NULL);
    words_load(&world.absent, PROBES_PATH,
               made_up_text(MADE_UP_PROBES, "abcdefghijklmnopqrstuvwxyz", 2), &world.words);
    print_message("honesty: %zu words, %zu absent ones\n", world.words.count, world.absent.count);
    words_shuffle(&world.words, 11);
    words_shuffle(&world.absent, 13);
    test_directory_make(world.directory, sizeof world.directory);
    world.not_direct = why_not_direct(world.directory);
    world.loaded = false;
    return 0;
}

static int world_free(void **state)
{
    (void)state;
    test_directory_remove(world.directory);
    words_free(&world.words);
    words_free(&world.absent);
    return 0;
}

static const struct {
    const char *name;
    struct CMUnitTest test;
} tests[] = {
    {"kernel", cmocka_unit_test(the_kernel_counts_the_bytes_that_the_store_counts)},
    {"members", cmocka_unit_test(no_filter_hides_a_word)},
    {"rate", cmocka_unit_test(the_rate_is_the_one_that_the_filters_promise)},
    {"avoided", cmocka_unit_test(filters_leave_a_hundredth_of_the_device_reads)},
    {"cached", cmocka_unit_test(probes_avoided_are_not_called_reads_avoided)},
};
enum { TESTS = sizeof tests / sizeof tests[0] };

int main(int argc, char **argv)
{
    int failures = 0, ran = 0;
    for (size_t i = 0; i < TESTS; i++) {
        bool wanted = argc == 1;
        for (int k = 1; k < argc; k++)
            wanted = wanted || strcmp(argv[k], tests[i].name) == 0;
        if (!wanted)
            continue;
        const struct CMUnitTest one[] = {tests[i].test};
        failures += cmocka_run_group_tests_name(tests[i].name, one, world_make, world_free);
        ran++;
    }
    return ran ? failures : 2;
}
