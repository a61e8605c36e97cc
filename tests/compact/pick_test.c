/* SPDX-License-Identifier: MIT
 *
 * What is picked, in words: a tree is written as "LEVEL:RUN key..key …; …", a job as its inputs
 * and its place. Numbers: a table is 100 bytes unless it says "*N" hundred.
 */
#include "compact/pick.h"

#include <stdlib.h>

#include "support/test.h"

struct tree {
    struct test_op t;
    struct version *version;
    struct pick_options options;
    struct buf cursors[TAMIZ_LEVELS];
    struct job job;
    char text[1000];
};

static struct table_meta *meta_make(struct op *op, uint64_t number, unsigned level, unsigned run,
                                    const char *smallest, const char *largest, unsigned hundreds)
{
    const struct table_meta m = {.number = number,
                                 .file_id = number,
                                 .file_size = hundreds * 100,
                                 .level = level,
                                 .run = run,
                                 .entries = hundreds * 100,
                                 .keys = hundreds * 100,
                                 .seq_max = 50,
                                 .smallest = slice_of_text(smallest),
                                 .largest = slice_of_text(largest)};
    struct table_meta *made = table_meta_new(op, &alloc_libc, &m);
    assert_non_null(made);
    return made;
}

static void version_make(struct tree *tree, const char *words)
{
    struct table_meta *list[128];
    size_t n = 0;
    unsigned level = 0, run = 0;
    for (const char *at = words; *at;) {
        char smallest[16], largest[16];
        int used = 0;
        unsigned hundreds = 1;
        if (sscanf(at, " %u:%u%n", &level, &run, &used) == 2) {
            at += used;
        } else if (sscanf(at, " %15[a-z0-9]..%15[a-z0-9]%n", smallest, largest, &used) == 2) {
            at += used;
            if (sscanf(at, "*%u%n", &hundreds, &used) == 1)
                at += used;
            list[n] = meta_make(&tree->t.op, n + 1, level, run, smallest, largest, hundreds);
            n++;
        } else {
            at++;
        }
    }
    const struct version_edit edit = {.added = list, .added_count = n};
    assert_status(&tree->t.op, version_apply(&tree->t.op, &alloc_libc, NULL, &edit, &tree->version),
                  TAMIZ_OK);
    for (size_t i = 0; i < n; i++)
        table_meta_unref(&alloc_libc, list[i]);
}

static void tree_begin(struct tree *tree, tamiz_compaction policy, const char *words)
{
    test_op_init(&tree->t);
    tree->options = (struct pick_options){.policy = policy,
                                          .size_ratio = 4,
                                          .level0_runs = 3,
                                          .memtable_bytes = 100,
                                          .table_bytes = 100,
                                          .oldest_snapshot = UINT64_MAX};
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        tree->cursors[i] = buf_init(&alloc_libc);
    job_init(&tree->job, &alloc_libc);
    version_make(tree, words);
}

static void tree_end(struct tree *tree)
{
    version_unref(tree->version);
    job_free(&tree->job);
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        buf_free(&tree->cursors[i]);
}

static const char *job_words(struct tree *tree, tamiz_status st)
{
    if (st == TAMIZ_NOT_FOUND)
        return "nothing";
    assert_status(&tree->t.op, st, TAMIZ_OK);
    size_t at = 0;
    const struct job *j = &tree->job;
    for (size_t i = 0; i < job_count(j); i++) {
        const struct table_meta *m = job_input(j, i);
        at += (size_t)snprintf(tree->text + at, sizeof tree->text - at, "%.*s..%.*s ",
                               (int)m->smallest.size, (const char *)m->smallest.data,
                               (int)m->largest.size, (const char *)m->largest.data);
    }
    at += (size_t)snprintf(tree->text + at, sizeof tree->text - at, "-> %u:", j->output_level);
    at += (size_t)(j->new_run ? snprintf(tree->text + at, sizeof tree->text - at, "new")
                              : snprintf(tree->text + at, sizeof tree->text - at, "%u",
                                         (unsigned)j->output_run));
    (void)snprintf(tree->text + at, sizeof tree->text - at, "%s%s", j->move ? " move" : "",
                   j->bottom ? " bottom" : "");
    return tree->text;
}

static const char *pick(struct tree *tree)
{
    return job_words(tree, pick_auto(&tree->t.op, tree->version, &tree->options, NULL,
                                     tree->cursors, &tree->job));
}

static const char *pick_one(struct tree *tree, uint32_t level, size_t index)
{
    return job_words(tree, pick_table(&tree->t.op, tree->version, &tree->options, NULL, level,
                                      index, &tree->job));
}

static const char *pick_between(struct tree *tree, const char *from, const char *to)
{
    const struct slice end = to ? slice_of_text(to) : slice_of(NULL, 0);
    return job_words(tree, pick_range(&tree->t.op, tree->version, &tree->options, NULL,
                                      slice_of_text(from), end, !to, &tree->job));
}

/* One tree, what pick_auto says of it. */
static void assert_pick(tamiz_compaction policy, const char *words, const char *want)
{
    struct tree tree;
    tree_begin(&tree, policy, words);
    assert_string_equal(pick(&tree), want);
    tree_end(&tree);
}

/* The same when nobody writes. */
static void assert_rest(tamiz_compaction policy, const char *words, const char *want)
{
    struct tree tree;
    tree_begin(&tree, policy, words);
    tree.options.idle = true;
    assert_string_equal(pick(&tree), want);
    assert_int_equal(tree.job.idle, strcmp(want, "nothing") != 0);
    tree_end(&tree);
}

static void level_0_is_merged_when_it_has_its_runs(void **state)
{
    (void)state;
    assert_pick(TAMIZ_COMPACTION_LEVELED, "0:3 a..m; 0:2 c..z", "nothing");
    assert_pick(TAMIZ_COMPACTION_LEVELED, "0:3 a..m; 0:2 c..z; 0:1 b..d",
                "a..m c..z b..d -> 1:0 bottom");
    assert_pick(TAMIZ_COMPACTION_LEVELED, "0:4 a..m; 0:3 c..z; 0:2 b..d; 1:1 e..f; 2:1 e..f",
                "a..m c..z b..d e..f -> 1:1");
}

static void a_flush_that_overlaps_nothing_moves(void **state)
{
    (void)state;
    assert_pick(TAMIZ_COMPACTION_LEVELED, "0:4 s..t; 0:3 p..q; 0:2 m..n; 1:1 a..b",
                "m..n -> 1:1 move bottom");
    assert_pick(TAMIZ_COMPACTION_LAZY, "1:5 s..t; 1:4 p..q; 1:3 m..n; 1:2 j..k; 2:1 a..b",
                "j..k -> 2:1 move bottom");
}

static void a_table_moves_only_between_levels_written_alike(void **state)
{
    (void)state;
    struct tree tree;
    tree_begin(&tree, TAMIZ_COMPACTION_LEVELED, "0:4 s..t; 0:3 p..q; 0:2 m..n");
    tree.options.recipe[1] = 7;
    assert_string_equal(pick(&tree), "m..n -> 1:0 bottom");
    tree.options.recipe[0] = 7;
    assert_string_equal(pick(&tree), "m..n -> 1:0 move bottom");
    tree_end(&tree);
}

static void a_table_takes_the_older_ones_that_overlap_until_none_does(void **state)
{
    (void)state;
    struct tree tree; /* R04: f..j alone would sink the tombstone of d in c..g below its value */
    tree_begin(&tree, TAMIZ_COMPACTION_LEVELED, "0:4 f..j; 0:3 c..g; 0:2 a..d; 1:1 a..b e..k p..t");
    assert_string_equal(pick_one(&tree, 0, 0), "f..j c..g a..d a..b e..k -> 1:1 bottom");
    assert_string_equal(pick_one(&tree, 0, 1), "c..g a..d a..b e..k -> 1:1 bottom");
    assert_string_equal(pick_one(&tree, 0, 2), "a..d a..b -> 1:1 bottom");
    assert_string_equal(pick_one(&tree, 0, 3), "nothing");
    assert_string_equal(pick_one(&tree, 1, 2), "p..t -> 2:0 move bottom");
    tree_end(&tree);
}

static void leveled_picking_goes_round(void **state)
{
    (void)state;
    struct tree tree;
    tree_begin(&tree, TAMIZ_COMPACTION_LEVELED, "1:1 a..c*2 e..k*2 p..t*2; 2:1 a..b r..z");
    assert_string_equal(pick(&tree), "a..c a..b -> 2:1 bottom");
    assert_string_equal(pick(&tree), "e..k -> 2:1 move bottom");
    assert_string_equal(pick(&tree), "p..t r..z -> 2:1 bottom");
    assert_string_equal(pick(&tree), "a..c a..b -> 2:1 bottom");
    assert_true(tree.job.score == 2);
    tree_end(&tree);
}

static void tiered_merges_all_runs_into_a_new_one_below(void **state)
{
    (void)state;
    assert_pick(TAMIZ_COMPACTION_TIERED, "0:4 a..d; 0:3 b..e; 0:2 x..z; 1:1 a..z",
                "a..d b..e x..z -> 1:new");
    assert_pick(TAMIZ_COMPACTION_TIERED, "1:9 a..d; 1:8 b..e; 1:7 x..z", "nothing");
    assert_pick(TAMIZ_COMPACTION_TIERED, "1:9 a..d; 1:8 b..e; 1:7 d..z; 1:6 c..d",
                "a..d b..e d..z c..d -> 2:new bottom");
}

static void in_a_tiered_level_too_what_overlaps_nothing_moves(void **state)
{
    (void)state;
    assert_pick(TAMIZ_COMPACTION_TIERED, "0:4 s..t; 0:3 p..q; 0:2 m..n", "m..n -> 1:0 move bottom");
    assert_pick(TAMIZ_COMPACTION_LAZY, "0:4 s..t; 0:3 a..q; 0:2 b..n; 1:9 c..d u..w; 1:8 a..d",
                "s..t -> 1:9 move bottom");
    assert_pick(TAMIZ_COMPACTION_LAZY, "0:4 s..t; 0:3 a..q; 0:2 b..n; 1:9 c..d; 1:8 t..z",
                "s..t a..q b..n -> 1:new");
    assert_pick(TAMIZ_COMPACTION_LAZY, "0:4 s..t; 0:3 a..q; 0:2 b..n; 1:9 c..d; 2:8 s..z",
                "s..t -> 1:9 move");
}

/* Twice as much as the oldest run has, for all of that could hide it. */
static void a_lazy_level_goes_down_when_what_it_hides_could_be_too_much(void **state)
{
    (void)state;
    assert_pick(TAMIZ_COMPACTION_LAZY, "1:3 a..z*3; 1:2 a..z*4; 2:1 a..z*4", "nothing");
    assert_pick(TAMIZ_COMPACTION_LAZY, "1:3 a..z*4; 1:2 a..z*4; 2:1 a..z*4",
                "a..z a..z a..z -> 2:1 bottom");
    assert_pick(TAMIZ_COMPACTION_LAZY, "1:3 a..z*4; 1:2 a..z*3; 1:1 a..z*4", "nothing");
    assert_pick(TAMIZ_COMPACTION_LAZY, "1:3 a..z*4; 1:2 a..z*4; 1:1 a..z*4",
                "a..z a..z a..z -> 2:0 bottom");
    assert_pick(TAMIZ_COMPACTION_LAZY, "1:1 a..z*400", "nothing");
    assert_pick(TAMIZ_COMPACTION_TIERED, "1:3 a..z*8; 1:2 a..z*8; 2:1 a..z*4", "nothing");
}

static void the_deepest_level_of_all_merges_into_itself(void **state)
{
    (void)state;
    assert_pick(TAMIZ_COMPACTION_TIERED, "7:9 a..d; 7:8 b..e; 7:7 x..z; 7:6 c..d",
                "a..d b..e x..z c..d -> 7:9 bottom");
    assert_pick(TAMIZ_COMPACTION_LEVELED, "7:9 a..d*10000", "nothing");
}

static void lazy_is_tiered_above_and_one_run_at_the_bottom(void **state)
{
    (void)state;
    assert_pick(TAMIZ_COMPACTION_LAZY, "0:4 a..d; 0:3 b..e; 0:2 x..z; 1:1 a..z; 2:1 m..m",
                "a..d b..e x..z -> 1:new");
    assert_pick(TAMIZ_COMPACTION_LAZY, "0:4 a..d; 0:3 b..e; 0:2 c..z; 1:1 a..f g..z",
                "a..d b..e c..z -> 1:new");
    assert_pick(TAMIZ_COMPACTION_LAZY, "1:9 a..d; 1:8 b..e; 1:7 d..z; 1:6 c..d; 2:1 a..f",
                "a..d b..e d..z c..d a..f -> 2:1 bottom");
    assert_pick(TAMIZ_COMPACTION_LAZY, "1:9 a..d; 1:8 b..e; 1:7 d..z; 1:6 c..d",
                "a..d b..e d..z c..d -> 2:0 bottom");
    /* Limit of the last level: 3 * 100 * 4 * 4. */
    assert_pick(TAMIZ_COMPACTION_LAZY, "2:9 a..d*40 e..h*7", "nothing");
    assert_pick(TAMIZ_COMPACTION_LAZY, "2:9 a..d*40 e..h*8", "a..d -> 3:0 move bottom");
}

/* Twenty tables in each of four runs: eight of each go down, then eight, then four. The newer run
 * stays above, of the last level only what overlaps is rewritten, and a second piece can be merged
 * at the same time as the first. */
static void a_large_lazy_level_goes_down_in_pieces(void **state)
{
    static const size_t want[] = {4 * 8 + 2, 4 * 8 + 2, 4 * 4 + 1};
    char words[4000];
    size_t at = (size_t)snprintf(words, sizeof words, "1:10 a..z;");
    (void)state;
    for (unsigned run = 9; run > 5; run--) {
        at += (size_t)snprintf(words + at, sizeof words - at, "1:%u", run);
        for (unsigned i = 0; i < 20; i++)
            at += (size_t)snprintf(words + at, sizeof words - at, " k%02u0..k%02u8", i, i);
        at += (size_t)snprintf(words + at, sizeof words - at, ";");
    }
    (void)snprintf(words + at, sizeof words - at,
                   "2:1 k000..k035 k040..k079 k080..k119 k120..k155 "
                   "k160..k199");
    struct tree tree;
    tree_begin(&tree, TAMIZ_COMPACTION_LAZY, words);
    struct job first;
    job_init(&first, &alloc_libc);
    const struct job *running[] = {&first};
    for (size_t i = 0; i < 3; i++) {
        const char *got = pick(&tree);
        assert_null(strstr(got, "a..z"));
        assert_int_equal(tree.job.output_level, 2);
        assert_int_equal(tree.job.output_run, 1);
        assert_int_equal(job_count(&tree.job), want[i]);
    }
    struct pick_busy busy = {NULL, NULL, running, 1};
    assert_status(&tree.t.op,
                  pick_auto(&tree.t.op, tree.version, &tree.options, NULL, tree.cursors, &first),
                  TAMIZ_OK);
    assert_status(
        &tree.t.op,
        pick_auto(&tree.t.op, tree.version, &tree.options, &busy, tree.cursors, &tree.job),
        TAMIZ_OK);
    assert_true(slice_compare(buf_slice(&tree.job.smallest), buf_slice(&first.largest)) > 0);
    job_free(&first);
    tree_end(&tree);
}

static void several_runs_where_one_is_meant_are_united(void **state)
{
    (void)state;
    assert_pick(TAMIZ_COMPACTION_LEVELED, "2:9 a..c x..z; 2:8 b..d f..h; 3:1 a..z",
                "a..c b..d -> 2:8");
    assert_pick(TAMIZ_COMPACTION_LEVELED, "2:9 x..z; 2:8 b..d f..h", "x..z -> 2:8 move bottom");
    assert_pick(TAMIZ_COMPACTION_LAZY, "2:9 x..z; 2:8 b..d f..h", "x..z -> 2:8 move bottom");
    assert_pick(TAMIZ_COMPACTION_TIERED, "2:9 x..z; 2:8 b..d f..h", "nothing");
}

static void off_picks_nothing_by_itself(void **state)
{
    (void)state;
    struct tree tree;
    tree_begin(&tree, TAMIZ_COMPACTION_OFF, "0:4 a..d; 0:3 b..e; 0:2 c..z; 0:1 a..b");
    assert_string_equal(pick(&tree), "nothing");
    assert_true(pick_score(tree.version, &tree.options, 0) == 0);
    assert_int_equal(pick_debt(tree.version, &tree.options), 0);
    assert_string_equal(pick_one(&tree, 0, 3), "a..b -> 1:0 move bottom");
    tree_end(&tree);
}

static void make_grave(struct tree *tree, uint64_t number, uint64_t seq_max)
{
    for (uint32_t r = 0; r < tree->version->run_count; r++)
        for (uint32_t i = 0; i < tree->version->runs[r].count; i++) {
            struct table_meta *m = tree->version->runs[r].tables[i];
            if (m->number != number)
                continue;
            m->entries = 1999;
            m->tombstones = 1000;
            m->seq_max = seq_max;
        }
}

static void a_table_of_tombstones_is_rewritten_at_the_bottom_and_sinks_above_it(void **state)
{
    (void)state;
    struct tree tree;
    tree_begin(&tree, TAMIZ_COMPACTION_LEVELED, "0:5 e..f; 1:1 a..c e..k; 2:1 a..b r..z*50");
    tree.options.memtable_bytes *= 100;
    make_grave(&tree, 1, 50);
    assert_string_equal(pick(&tree), "nothing"); /* level 0, a fifth of what lies below */
    make_grave(&tree, 3, 50);
    assert_string_equal(pick(&tree), "e..k -> 1:1 bottom");
    assert_true(pick_score(tree.version, &tree.options, 1) == 1);
    tree.options.oldest_snapshot = 49;
    assert_string_equal(pick(&tree), "nothing");
    assert_true(pick_score(tree.version, &tree.options, 1) < 1);
    make_grave(&tree, 2, 49);
    assert_string_equal(pick(&tree), "a..c a..b -> 2:1 bottom");
    tree_end(&tree);
}

static void tombstones_for_a_quarter_of_the_store_do_not_wait_in_level_0(void **state)
{
    (void)state;
    struct tree tree;
    tree_begin(&tree, TAMIZ_COMPACTION_LEVELED, "0:5 a..z; 1:1 a..c e..k; 2:1 a..b r..z*37");
    tree.options.memtable_bytes *= 100;
    make_grave(&tree, 1, 50);
    assert_string_equal(pick(&tree), "a..z a..c e..k -> 1:1");
    assert_true(pick_score(tree.version, &tree.options, 0) == 1);
    tree.options.oldest_snapshot = 49;
    assert_string_equal(pick(&tree), "nothing");
    tree_end(&tree);
}

static void a_table_of_tombstones_in_the_deepest_tier_takes_what_is_older_there(void **state)
{
    (void)state;
    struct tree tree;
    tree_begin(&tree, TAMIZ_COMPACTION_TIERED, "1:9 a..z; 1:8 c..e f..h; 1:7 d..g");
    make_grave(&tree, 2, 50);
    assert_string_equal(pick(&tree), "c..e f..h d..g -> 1:8 bottom"); /* and not above 9 */
    tree_end(&tree);
}

static bool is_number(const void *ctx, uint64_t number)
{
    return number == *(const uint64_t *)ctx;
}

static void busy_tables_and_what_overlaps_them_are_left_alone(void **state)
{
    (void)state;
    struct tree tree;
    tree_begin(&tree, TAMIZ_COMPACTION_LEVELED, "1:1 a..c*2 e..k*2 p..t*2; 2:1 a..b r..z");
    uint64_t number = 4; /* a..b below */
    struct pick_busy busy = {is_number, &number, NULL, 0};
    assert_string_equal(job_words(&tree, pick_auto(&tree.t.op, tree.version, &tree.options, &busy,
                                                   tree.cursors, &tree.job)),
                        "e..k -> 2:1 move bottom");
    tree_end(&tree);
    tree_begin(&tree, TAMIZ_COMPACTION_LEVELED, "0:4 a..d; 0:3 b..e; 0:2 c..z; 0:1 a..b");
    assert_string_equal(job_words(&tree, pick_auto(&tree.t.op, tree.version, &tree.options, &busy,
                                                   tree.cursors, &tree.job)),
                        "nothing");
    assert_string_equal(job_words(&tree, pick_table(&tree.t.op, tree.version, &tree.options, &busy,
                                                    0, 0, &tree.job)),
                        "nothing");
    tree_end(&tree);
}

static void no_two_jobs_write_one_range_of_one_run(void **state)
{
    (void)state;
    struct tree tree, other;
    tree_begin(&tree, TAMIZ_COMPACTION_LEVELED, "1:1 a..c*2 e..k*2 p..t*2; 2:1 u..z");
    tree_begin(&other, TAMIZ_COMPACTION_LEVELED, "0:1 a..g; 2:1 f..f");
    assert_string_equal(pick_between(&other, "a", NULL), "a..g f..f -> 2:1 bottom");
    const struct job *running[] = {&other.job};
    const struct pick_busy busy = {NULL, NULL, running, 1};
    assert_string_equal(job_words(&tree, pick_auto(&tree.t.op, tree.version, &tree.options, &busy,
                                                   tree.cursors, &tree.job)),
                        "p..t -> 2:1 move bottom");
    other.job.output_level = 3;
    assert_string_equal(job_words(&tree, pick_auto(&tree.t.op, tree.version, &tree.options, &busy,
                                                   tree.cursors, &tree.job)),
                        "a..c -> 2:1 move bottom");
    tree_end(&tree);
    tree_end(&other);
}

static void no_two_jobs_make_the_first_run_of_a_level(void **state)
{
    (void)state;
    struct tree tree, other;
    tree_begin(&tree, TAMIZ_COMPACTION_LEVELED, "1:1 a..c*2 e..k*2 p..t*2");
    tree_begin(&other, TAMIZ_COMPACTION_LEVELED, "1:1 x..z");
    assert_string_equal(pick_one(&other, 1, 0), "x..z -> 2:0 move bottom");
    const struct job *running[] = {&other.job};
    const struct pick_busy busy = {NULL, NULL, running, 1};
    assert_string_equal(job_words(&tree, pick_auto(&tree.t.op, tree.version, &tree.options, &busy,
                                                   tree.cursors, &tree.job)),
                        "nothing");
    tree_end(&tree);
    tree_end(&other);
}

static void a_range_becomes_one_run_at_its_deepest_level(void **state)
{
    (void)state;
    struct tree tree;
    tree_begin(&tree, TAMIZ_COMPACTION_TIERED,
               "0:5 a..c; 0:4 m..p; 1:3 b..d k..n; 1:2 c..f; 2:1 a..b e..g z..z");
    assert_string_equal(pick_between(&tree, "", NULL),
                        "a..c m..p b..d k..n c..f a..b e..g z..z -> 2:1 bottom");
    assert_string_equal(pick_between(&tree, "a", "b"), "a..c b..d c..f a..b e..g -> 2:1 bottom");
    assert_string_equal(pick_between(&tree, "m", "n"), "m..p k..n -> 1:2 bottom");
    assert_string_equal(pick_between(&tree, "h", "i"), "nothing");
    assert_string_equal(pick_between(&tree, "z", NULL), "z..z -> 2:1 bottom");
    tree_end(&tree);
    tree_begin(&tree, TAMIZ_COMPACTION_LEVELED, "0:5 a..c");
    assert_string_equal(pick_between(&tree, "a", NULL), "a..c -> 1:0 bottom");
    tree_end(&tree);
}

static void scores_limits_and_debt_are_arithmetic(void **state)
{
    (void)state;
    struct tree tree;
    tree_begin(&tree, TAMIZ_COMPACTION_LEVELED, "0:4 a..d; 0:3 b..e; 1:1 a..c*6; 2:1 a..b*9");
    struct pick_options *o = &tree.options;
    assert_int_equal(pick_level_limit(o, 0), 300);
    assert_int_equal(pick_level_limit(o, 1), 300);
    assert_int_equal(pick_level_limit(o, 3), 4800);
    assert_true(pick_score(tree.version, o, 0) == 2.0 / 3);
    assert_true(pick_score(tree.version, o, 1) == 2);
    assert_true(pick_score(tree.version, o, 2) == 0.75);
    assert_int_equal(pick_debt(tree.version, o), 300); /* of level 1; level 2 has room for them */
    o->level0_runs = 1;                                /* 200 of level 0, 700 of 1, 1200 of 2 */
    assert_int_equal(pick_debt(tree.version, o), 200 + 700 + 1200);
    o->memtable_bytes = UINT64_MAX / 2;
    assert_true(pick_level_limit(o, 7) == UINT64_MAX);
    assert_int_equal(pick_debt(tree.version, o), 200);
    tree_end(&tree);
}

static void *short_resize(void *ctx, void *p, size_t old_size, size_t new_size)
{
    int *left = ctx;
    if (new_size > old_size && (*left)-- <= 0)
        return NULL;
    if (new_size)
        return realloc(p, new_size);
    free(p);
    return NULL;
}

static void memory_that_runs_out_is_said_and_nothing_leaks(void **state)
{
    (void)state;
    struct tree tree;
    tree_begin(&tree, TAMIZ_COMPACTION_LEVELED, "1:1 a..c*2 e..k*2; 2:1 a..b");
    const struct alloc *libc = tree.version->alloc;
    int calls = 0;
    for (tamiz_status st = TAMIZ_OUT_OF_MEMORY; st != TAMIZ_OK; calls++) {
        int left = calls;
        const struct alloc alloc = {{short_resize, &left}, NULL};
        struct job j;
        job_init(&j, &alloc);
        tree.version->alloc = &alloc;
        st = pick_auto(&tree.t.op, tree.version, &tree.options, NULL, tree.cursors, &j);
        assert_true(st == TAMIZ_OK || st == TAMIZ_OUT_OF_MEMORY);
        job_free(&j);
        op_forgive(&tree.t.op);
    }
    assert_true(calls > 3);
    tree.version->alloc = libc;
    tree_end(&tree);
}

/* ---- when nobody writes ---- */

static void at_rest_runs_are_merged_with_newer_ones_that_have_as_much(void **state)
{
    (void)state;
    assert_rest(TAMIZ_COMPACTION_LEVELED, "0:4 a..z; 0:3 a..z; 1:1 a..z*2",
                "a..z a..z a..z -> 2:0 bottom"); /* 400 would be too much for level 1 */
    assert_rest(TAMIZ_COMPACTION_LEVELED, "0:4 a..z; 0:3 a..z; 2:1 a..z*2",
                "a..z a..z a..z -> 2:1 bottom");
    assert_rest(TAMIZ_COMPACTION_LEVELED, "0:4 a..z; 0:3 a..z; 2:1 a..z*3", "a..z a..z -> 0:3");
    assert_rest(TAMIZ_COMPACTION_LEVELED, "0:3 a..z; 0:2 a..z", "a..z a..z -> 0:2 bottom");
    assert_rest(TAMIZ_COMPACTION_LEVELED, "0:3 a..z; 0:2 a..z*2", "nothing");
    assert_rest(TAMIZ_COMPACTION_LEVELED, "0:3 a..z; 1:2 a..z*2; 2:1 a..z*4", "nothing");
    assert_rest(TAMIZ_COMPACTION_TIERED, "1:4 a..z*3; 1:3 a..z*3; 2:2 a..z*6; 2:1 a..z*40",
                "a..z a..z a..z -> 2:2");
    assert_rest(TAMIZ_COMPACTION_TIERED, "1:4 a..z*4; 1:3 a..z*3; 2:2 a..z*7",
                "a..z a..z a..z -> 3:0 bottom");
    assert_rest(TAMIZ_COMPACTION_LAZY, "0:4 a..z; 0:3 a..z; 2:1 a..z*2",
                "a..z a..z a..z -> 2:1 bottom");
    assert_rest(TAMIZ_COMPACTION_OFF, "0:4 a..z; 0:3 a..z", "nothing");
}

static void at_rest_only_what_overlaps_is_merged_and_the_rest_moves(void **state)
{
    (void)state;
    assert_rest(TAMIZ_COMPACTION_LEVELED, "0:3 a..b p..q; 0:2 m..n; 1:1 c..d",
                "a..b -> 1:1 move bottom");
    assert_rest(TAMIZ_COMPACTION_LEVELED, "0:3 a..c x..y; 2:1 a..b m..n x..z*9",
                "a..c a..b -> 2:1 bottom");
    assert_rest(TAMIZ_COMPACTION_LEVELED, "0:3 x..y; 2:1 a..b m..n x..z*9", "nothing");
}

static void at_rest_no_merge_takes_more_than_128_tables(void **state)
{
    (void)state;
    assert_rest(TAMIZ_COMPACTION_TIERED, "0:3 a..z*60; 0:2 a..z*48; 3:1 a..z*20",
                "a..z a..z a..z -> 4:0 bottom");
    assert_rest(TAMIZ_COMPACTION_TIERED, "0:3 a..z*60; 0:2 a..z*50; 3:1 a..z*20",
                "a..z a..z -> 0:2");
}

/* As when reads have paid for so much only. */
static void assert_rest_within(uint64_t most, const char *words, const char *want)
{
    struct tree tree;
    tree_begin(&tree, TAMIZ_COMPACTION_LEVELED, words);
    tree.options.idle = true;
    tree.options.idle_most = most;
    assert_string_equal(pick(&tree), want);
    tree_end(&tree);
}

static void a_merge_that_reads_paid_for_takes_no_more_than_they_paid(void **state)
{
    (void)state;
    const char *const words = "0:4 a..z; 0:3 a..z; 1:1 a..z*2";
    assert_rest_within(400, words, "a..z a..z a..z -> 2:0 bottom");
    assert_rest_within(399, words, "a..z a..z -> 0:3");
    assert_rest_within(200, words, "a..z a..z -> 0:3");
    assert_rest_within(199, words, "nothing");
}

/* ---- a writer that comes and goes ---- */

struct rested {
    uint64_t bytes;
    unsigned rewritten; /* how often what was rewritten most of it was */
};

/* How many of the newest runs are merged at rest; 1: none. */
static size_t rest_takes(const struct rested *runs, size_t n)
{
    char words[1000];
    struct tree tree;
    size_t at = 0;
    for (size_t r = 0; r < n; r++)
        at += (size_t)snprintf(words + at, sizeof words - at, "0:%u a..z*%u; ", (unsigned)(99 - r),
                               (unsigned)runs[r].bytes);
    tree_begin(&tree, TAMIZ_COMPACTION_TIERED, words);
    tree.options.idle = true;
    tree.options.level0_runs = 1000; /* nothing is urgent, no level too small */
    tree.options.memtable_bytes = tree.options.table_bytes = 1000000;
    const size_t taken = strcmp(pick(&tree), "nothing") != 0 ? job_count(&tree.job) : 1;
    tree_end(&tree);
    return taken;
}

static struct rested merged_of(const struct rested *runs, size_t n)
{
    struct rested sum = {0};
    for (size_t r = 0; r < n; r++) {
        sum.bytes += runs[r].bytes;
        if (runs[r].rewritten + 1 > sum.rewritten)
            sum.rewritten = runs[r].rewritten + 1;
    }
    return sum;
}

/* One merge a rest at most, after which each run has more than all newer ones; and no byte is
 * rewritten more often than its run can have doubled, and once more. */
static void a_byte_is_rewritten_once_a_rest_and_whenever_its_run_doubles(void **state)
{
    (void)state;
    struct rested runs[40] = {{0}}; /* newest first */
    size_t n = 0;
    unsigned most = 0;
    struct test_random random = test_random_start(9);
    for (int rest = 0; rest < 2000; rest++) {
        memmove(runs + 1, runs, n++ * sizeof *runs);
        runs[0] = (struct rested){.bytes = 1 + test_random_below(&random, 9)};
        const size_t taken = rest_takes(runs, n);
        if (taken > 1) {
            runs[taken - 1] = merged_of(runs, taken);
            n -= taken - 1;
            memmove(runs, runs + taken - 1, n * sizeof *runs);
            assert_int_equal(rest_takes(runs, n), 1);
        }
        uint64_t newer = 0;
        for (size_t r = 0; r < n; newer += runs[r++].bytes) {
            assert_true(runs[r].bytes > newer);
            assert_true(UINT64_C(1) << runs[r].rewritten <= 2 * runs[r].bytes);
            most = runs[r].rewritten > most ? runs[r].rewritten : most;
        }
    }
    assert_true(most > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(level_0_is_merged_when_it_has_its_runs),
        cmocka_unit_test(a_flush_that_overlaps_nothing_moves),
        cmocka_unit_test(a_table_moves_only_between_levels_written_alike),
        cmocka_unit_test(a_table_takes_the_older_ones_that_overlap_until_none_does),
        cmocka_unit_test(leveled_picking_goes_round),
        cmocka_unit_test(tiered_merges_all_runs_into_a_new_one_below),
        cmocka_unit_test(in_a_tiered_level_too_what_overlaps_nothing_moves),
        cmocka_unit_test(a_lazy_level_goes_down_when_what_it_hides_could_be_too_much),
        cmocka_unit_test(the_deepest_level_of_all_merges_into_itself),
        cmocka_unit_test(lazy_is_tiered_above_and_one_run_at_the_bottom),
        cmocka_unit_test(a_large_lazy_level_goes_down_in_pieces),
        cmocka_unit_test(several_runs_where_one_is_meant_are_united),
        cmocka_unit_test(off_picks_nothing_by_itself),
        cmocka_unit_test(a_table_of_tombstones_is_rewritten_at_the_bottom_and_sinks_above_it),
        cmocka_unit_test(tombstones_for_a_quarter_of_the_store_do_not_wait_in_level_0),
        cmocka_unit_test(a_table_of_tombstones_in_the_deepest_tier_takes_what_is_older_there),
        cmocka_unit_test(busy_tables_and_what_overlaps_them_are_left_alone),
        cmocka_unit_test(no_two_jobs_write_one_range_of_one_run),
        cmocka_unit_test(no_two_jobs_make_the_first_run_of_a_level),
        cmocka_unit_test(a_range_becomes_one_run_at_its_deepest_level),
        cmocka_unit_test(scores_limits_and_debt_are_arithmetic),
        cmocka_unit_test(memory_that_runs_out_is_said_and_nothing_leaks),
        cmocka_unit_test(at_rest_runs_are_merged_with_newer_ones_that_have_as_much),
        cmocka_unit_test(at_rest_only_what_overlaps_is_merged_and_the_rest_moves),
        cmocka_unit_test(at_rest_no_merge_takes_more_than_128_tables),
        cmocka_unit_test(a_merge_that_reads_paid_for_takes_no_more_than_they_paid),
        cmocka_unit_test(a_byte_is_rewritten_once_a_rest_and_whenever_its_run_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
