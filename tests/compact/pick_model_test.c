/* SPDX-License-Identifier: MIT
 *
 * A store made of sets: random flushes, every picked job carried out on lists of (key, sequence),
 * several at once and finished in any order. What must hold for every policy, also where the policy
 * changes on the way (bug families of lossy picking and of resurrected tombstones):
 *
 *     of two versions of a key the newer stands in the newer run;
 *     the first run that knows a key tells the truth;
 *     no two tables of a run overlap (version_apply refuses);
 *     picking comes to an end, and then every level is within its limits.
 */
#include <stdlib.h>

#include "compact/pick.h"
#include "support/test.h"

enum { KEYS = 150, TABLES = 20000, RUNNING = 3, TABLE_ENTRIES = 12, GRAVE = 1000 };

struct entry {
    uint16_t key;
    bool tombstone;
    uint32_t seq;
};

struct world {
    struct test_op t;
    struct test_random random;
    struct pick_options options;
    struct version *version;
    struct buf cursors[TAMIZ_LEVELS];
    struct buf content[TABLES]; /* by file number: struct entry, in version order */
    uint64_t next_number, next_run;
    uint32_t next_seq;
    struct entry truth[KEYS]; /* the newest write of each key */
    struct job jobs[RUNNING];
    uint64_t job_runs[RUNNING]; /* handed out when the job begins */
    struct version *bases[RUNNING];
    bool runs[RUNNING];
    size_t merges;
};

static void key_bytes(uint16_t key, uint8_t out[2])
{
    out[0] = (uint8_t)(key >> 8);
    out[1] = (uint8_t)key;
}

static const struct entry *entries(const struct buf *b, size_t *n)
{
    *n = b->size / sizeof(struct entry);
    return (const struct entry *)(const void *)b->data;
}

/* One table of the list, appended to `made`. Tombstones count a thousandfold, so that small tables
 * have enough of them to matter. */
static void table_make(struct world *w, const struct entry *list, size_t n, uint32_t level,
                       uint64_t run, struct buf *made)
{
    uint8_t smallest[2], largest[2];
    struct table_meta m = {.number = w->next_number++, .level = level, .run = run};
    assert_true(m.number < TABLES);
    m.file_id = m.number;
    m.file_size = n * 10;
    for (size_t i = 0; i < n; i++) {
        m.tombstones += list[i].tombstone ? GRAVE : 0;
        m.entries += list[i].tombstone ? GRAVE : 1;
        m.keys += i == 0 || list[i].key != list[i - 1].key;
        m.seq_max = list[i].seq > m.seq_max ? list[i].seq : m.seq_max;
    }
    key_bytes(list[0].key, smallest);
    key_bytes(list[n - 1].key, largest);
    m.smallest = slice_of(smallest, 2);
    m.largest = slice_of(largest, 2);
    w->content[m.number] = buf_init(&alloc_libc);
    buf_append(&w->content[m.number], list, n * sizeof *list);
    struct table_meta *meta = table_meta_new(&w->t.op, &alloc_libc, &m);
    assert_non_null(meta);
    buf_append(made, &meta, sizeof meta);
}

/* Cuts a sorted list into tables, only between keys. */
static void tables_make(struct world *w, const struct buf *sorted, uint32_t level, uint64_t run,
                        struct buf *made)
{
    size_t n;
    const struct entry *list = entries(sorted, &n);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n; to++)
            if (to - from >= TABLE_ENTRIES && list[to].key != list[to - 1].key)
                break;
        table_make(w, list + from, to - from, level, run, made);
    }
}

static void install(struct world *w, const struct buf *removed, struct buf *made)
{
    struct version *next;
    struct table_meta **list = (struct table_meta **)(void *)made->data;
    const size_t n = made->size / sizeof *list;
    const struct version_edit edit = {(const uint64_t *)(const void *)removed->data,
                                      removed->size / sizeof(uint64_t), list, n};
    assert_status(&w->t.op, version_apply(&w->t.op, &alloc_libc, w->version, &edit, &next),
                  TAMIZ_OK);
    version_unref(w->version);
    w->version = next;
    for (size_t i = 0; i < n; i++)
        table_meta_unref(&alloc_libc, list[i]);
    buf_free(made);
}

static int entry_compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key)
                            : (x->seq < y->seq) - (x->seq > y->seq);
}

static void sort(struct buf *list)
{
    if (list->size)
        qsort(list->data, list->size / sizeof(struct entry), sizeof(struct entry), entry_compare);
}

/* Some keys from a stretch: everywhere, or close together. */
static void flush(struct world *w)
{
    struct buf list = buf_init(&alloc_libc), made = buf_init(&alloc_libc),
               none = buf_init(&alloc_libc);
    const size_t n = 1 + test_random_below(&w->random, 30);
    const uint64_t width = test_random_below(&w->random, 2) ? KEYS : 12;
    const uint64_t start = test_random_below(&w->random, KEYS - width + 1);
    const uint64_t deletes = 1 + test_random_below(&w->random, 9);
    for (size_t i = 0; i < n; i++) {
        const struct entry e = {(uint16_t)(start + test_random_below(&w->random, width)),
                                test_random_below(&w->random, 10) < deletes, w->next_seq++};
        w->truth[e.key] = e;
        buf_append(&list, &e, sizeof e);
    }
    sort(&list);
    tables_make(w, &list, 0, w->next_run++, &made);
    install(w, &none, &made);
    buf_free(&list);
}

/* What a merge may drop, half of the time: hidden versions, and tombstones at the bottom. */
static void drop(struct buf *list, bool bottom)
{
    size_t n, kept = 0;
    struct entry *e = (struct entry *)(void *)list->data;
    (void)entries(list, &n);
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        const bool newest = e[i].key != last;
        last = e[i].key;
        if (newest && !(bottom && e[i].tombstone))
            e[kept++] = e[i];
    }
    list->size = kept * sizeof *e;
}

static void job_carry_out(struct world *w, const struct job *j, uint64_t run)
{
    struct buf list = buf_init(&alloc_libc), made = buf_init(&alloc_libc),
               removed = buf_init(&alloc_libc);
    for (size_t i = 0; i < job_count(j); i++) {
        const struct table_meta *m = job_input(j, i);
        buf_append(&removed, &m->number, sizeof m->number);
        buf_slice_append(&list, buf_slice(&w->content[m->number]));
    }
    if (j->move) {
        assert_int_equal(job_count(j), 1);
        table_make(w, (const struct entry *)(void *)list.data, list.size / sizeof(struct entry),
                   j->output_level, run, &made);
    } else {
        sort(&list);
        if (w->options.oldest_snapshot == UINT64_MAX)
            drop(&list, j->bottom);
        tables_make(w, &list, j->output_level, run, &made);
    }
    install(w, &removed, &made);
    buf_free(&list);
    buf_free(&removed);
    w->merges++;
}

static void job_begin(struct world *w, size_t slot)
{
    const struct job *j = &w->jobs[slot];
    assert_true(j->new_run || j->output_run != 0 || w->version->level_runs[j->output_level] == 0);
    w->job_runs[slot] = j->new_run || !j->output_run ? w->next_run++ : j->output_run;
    w->bases[slot] = w->version;
    version_ref(w->version);
    w->runs[slot] = true;
}

static void job_end(struct world *w, size_t slot)
{
    job_carry_out(w, &w->jobs[slot], w->job_runs[slot]);
    version_unref(w->bases[slot]);
    w->runs[slot] = false;
}

static void check_key(const struct world *w, uint16_t key)
{
    uint32_t oldest_above = UINT32_MAX;
    struct entry found = {key, true, 0};
    for (uint32_t r = 0; r < w->version->run_count; r++)
        for (uint32_t i = 0; i < w->version->runs[r].count; i++) {
            size_t n;
            const struct entry *e = entries(&w->content[w->version->runs[r].tables[i]->number], &n);
            for (size_t k = 0; k < n; k++) {
                if (e[k].key != key)
                    continue;
                assert_true(e[k].seq < oldest_above);
                oldest_above = e[k].seq;
                found = found.seq == 0 ? e[k] : found;
            }
        }
    const struct entry *truth = &w->truth[key];
    assert_true(found.tombstone == truth->tombstone);
    assert_true(truth->tombstone || found.seq == truth->seq);
}

static void check(const struct world *w)
{
    for (uint16_t key = 0; key < KEYS; key++)
        check_key(w, key);
}

static bool is_busy(const void *ctx, uint64_t number)
{
    const struct world *w = ctx;
    for (size_t s = 0; s < RUNNING; s++)
        for (size_t i = 0; w->runs[s] && i < job_count(&w->jobs[s]); i++)
            if (job_input(&w->jobs[s], i)->number == number)
                return true;
    return false;
}

static struct pick_busy busy_now(const struct world *w, const struct job *running[RUNNING])
{
    struct pick_busy busy = {is_busy, w, running, 0};
    for (size_t s = 0; s < RUNNING; s++)
        if (w->runs[s])
            running[busy.running_count++] = &w->jobs[s];
    return busy;
}

static bool any_runs(const struct world *w)
{
    return w->runs[0] || w->runs[1] || w->runs[2];
}

/* Starts a job in a free slot, by the automatic picker or on one exact table. */
static bool start(struct world *w, size_t slot, bool exact)
{
    const struct job *running[RUNNING];
    const struct pick_busy busy = busy_now(w, running);
    const uint32_t level = (uint32_t)test_random_below(&w->random, TAMIZ_LEVELS);
    const uint32_t tables = w->version->level_tables[level];
    const size_t index = tables ? test_random_below(&w->random, tables) : 0;
    const tamiz_status st =
        exact ? pick_table(&w->t.op, w->version, &w->options, &busy, level, index, &w->jobs[slot])
              : pick_auto(&w->t.op, w->version, &w->options, &busy, w->cursors, &w->jobs[slot]);
    assert_true(st == TAMIZ_OK || st == TAMIZ_NOT_FOUND);
    if (st == TAMIZ_OK)
        job_begin(w, slot);
    return st == TAMIZ_OK;
}

static void one_event(struct world *w)
{
    const uint64_t what = test_random_below(&w->random, 12);
    const size_t slot = test_random_below(&w->random, RUNNING);
    if (what < 4)
        flush(w);
    else if (w->runs[slot])
        job_end(w, slot);
    else
        (void)start(w, slot, what == 4);
    check(w);
}

static void settle(struct world *w)
{
    for (size_t s = 0; s < RUNNING; s++)
        if (w->runs[s])
            job_end(w, s);
    size_t merges = 0;
    while (start(w, 0, false)) {
        job_end(w, 0);
        check(w);
        assert_true(++merges < 1000);
    }
    for (uint32_t level = 0; level < TAMIZ_LEVELS; level++)
        assert_true(pick_score(w->version, &w->options, level) < 1);
    assert_int_equal(pick_debt(w->version, &w->options), 0);
}

static void compact_some_range(struct world *w)
{
    uint8_t from[2], to[2];
    const uint64_t a = test_random_below(&w->random, KEYS), b = test_random_below(&w->random, KEYS);
    key_bytes((uint16_t)(a < b ? a : b), from);
    key_bytes((uint16_t)(a < b ? b : a), to);
    const tamiz_status st =
        pick_range(&w->t.op, w->version, &w->options, NULL, slice_of(from, 2), slice_of(to, 2),
                   test_random_below(&w->random, 4) == 0, &w->jobs[0]);
    assert_true(st == TAMIZ_OK || st == TAMIZ_NOT_FOUND);
    if (st != TAMIZ_OK)
        return;
    job_begin(w, 0);
    job_end(w, 0);
    check(w);
}

static void world_begin(struct world *w, tamiz_compaction policy, uint64_t seed)
{
    *w = (struct world){.random = {seed}, .next_number = 1, .next_run = 1, .next_seq = 1};
    test_op_init(&w->t);
    w->options = (struct pick_options){.policy = policy,
                                       .size_ratio = 2 + (uint32_t)(seed % 3),
                                       .level0_runs = 1 + (uint32_t)(seed % 4),
                                       .memtable_bytes = 120,
                                       .table_bytes = TABLE_ENTRIES * 10,
                                       .oldest_snapshot = seed % 2 ? UINT64_MAX : 0};
    for (uint16_t key = 0; key < KEYS; key++)
        w->truth[key] = (struct entry){key, true, 0};
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        w->cursors[i] = buf_init(&alloc_libc);
    for (int i = 0; i < RUNNING; i++)
        job_init(&w->jobs[i], &alloc_libc);
    const struct version_edit none = {NULL, 0, NULL, 0};
    assert_status(&w->t.op, version_apply(&w->t.op, &alloc_libc, NULL, &none, &w->version),
                  TAMIZ_OK);
}

static void world_end(struct world *w)
{
    assert_false(any_runs(w));
    version_unref(w->version);
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        buf_free(&w->cursors[i]);
    for (int i = 0; i < RUNNING; i++)
        job_free(&w->jobs[i]);
    for (uint64_t i = 1; i < w->next_number; i++)
        buf_free(&w->content[i]);
}

static void run_worlds(const tamiz_compaction *policies, size_t count, uint64_t seed_base)
{
    struct test_random random = test_random_start(seed_base);
    struct world *w = malloc(sizeof *w);
    for (int round = 0; round < 24; round++) {
        world_begin(w, policies[0], test_random_u64(&random));
        for (int phase = 0; phase < 12; phase++) {
            w->options.policy = policies[test_random_below(&w->random, count)];
            for (int i = 0; i < 20; i++) {
                w->options.idle = test_random_below(&w->random, 3) == 0;
                one_event(w);
            }
            settle(w);
            if (phase % 4 == 3)
                compact_some_range(w);
        }
        assert_true(w->merges > 10);
        world_end(w);
    }
    free(w);
}

static void leveled_never_turns_versions_round(void **state)
{
    (void)state;
    const tamiz_compaction policy = TAMIZ_COMPACTION_LEVELED;
    run_worlds(&policy, 1, 1);
}

static void tiered_never_turns_versions_round(void **state)
{
    (void)state;
    const tamiz_compaction policy = TAMIZ_COMPACTION_TIERED;
    run_worlds(&policy, 1, 2);
}

static void lazy_never_turns_versions_round(void **state)
{
    (void)state;
    const tamiz_compaction policy = TAMIZ_COMPACTION_LAZY;
    run_worlds(&policy, 1, 3);
}

static void nor_does_a_tree_whose_policy_changes(void **state)
{
    (void)state;
    const tamiz_compaction policies[] = {TAMIZ_COMPACTION_LEVELED, TAMIZ_COMPACTION_TIERED,
                                         TAMIZ_COMPACTION_LAZY};
    run_worlds(policies, 3, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leveled_never_turns_versions_round),
        cmocka_unit_test(tiered_never_turns_versions_round),
        cmocka_unit_test(lazy_never_turns_versions_round),
        cmocka_unit_test(nor_does_a_tree_whose_policy_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
