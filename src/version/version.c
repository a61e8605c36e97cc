/* SPDX-License-Identifier: MIT
 *
 * Versions: frozen lists of tables, one made from the last by an edit. The tables of all runs stand
 * in one array, sorted by level, then newest run, then key; a run is a stretch of it. An edit is
 * merged into that array in one pass, which compares keys only around tables that are new.
 */
#include "version/version.h"

#include <inttypes.h>
#include <stdlib.h>

#include "version/filename.h"

/* ---- what is known of one table ---- */

struct table_meta *table_meta_new(struct op *op, const struct alloc *alloc,
                                  const struct table_meta *from)
{
    const size_t keys = from->smallest.size + from->largest.size;
    struct table_meta *m = mem_new(alloc, sizeof *m + keys);
    if (!m) {
        op_fail_memory(op);
        return NULL;
    }
    uint8_t *bytes = (uint8_t *)(m + 1);
    *m = *from;
    atomic_init(&m->refs, 1);
    m->table = NULL;
    m->smallest = slice_of(bytes, from->smallest.size);
    m->largest = slice_of(bytes + from->smallest.size, from->largest.size);
    if (from->smallest.size)
        memcpy(bytes, from->smallest.data, from->smallest.size);
    if (from->largest.size)
        memcpy(bytes + from->smallest.size, from->largest.data, from->largest.size);
    return m;
}

void table_meta_ref(struct table_meta *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
}

void table_meta_unref(const struct alloc *alloc, struct table_meta *m)
{
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (m->table)
        table_free(m->table);
    mem_free(alloc, m, sizeof *m + m->smallest.size + m->largest.size);
}

/* Where a table stands in a version: level, then newest run, then key. */
static int place_compare(const struct table_meta *a, const struct table_meta *b)
{
    if (a->level != b->level)
        return (a->level > b->level) - (a->level < b->level);
    if (a->run != b->run)
        return (a->run < b->run) - (a->run > b->run);
    return slice_compare(a->smallest, b->smallest);
}

/* ---- an edit, sorted ---- */

struct change {
    uint64_t *removed;         /* ascending */
    uint64_t *numbers;         /* of the added, ascending */
    struct table_meta **added; /* by place */
    size_t removed_count, added_count;
    size_t removed_found;
};

static int number_order(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int place_order(const void *a, const void *b)
{
    struct table_meta *const *x = a, *const *y = b;
    return place_compare(*x, *y);
}

static bool is_among(const uint64_t *numbers, size_t n, uint64_t number)
{
    return n && bsearch(&number, numbers, n, sizeof number, number_order) != NULL;
}

static tamiz_status refuse_repeats(struct op *op, const uint64_t *numbers, size_t n,
                                   const char *what)
{
    for (size_t i = 1; i < n; i++) {
        if (numbers[i] == numbers[i - 1])
            return op_fail(op, TAMIZ_CORRUPTION,
                           "expected table %" PRIu64 " %s once, found it twice", numbers[i], what);
    }
    return TAMIZ_OK;
}

static tamiz_status check_added(struct op *op, const struct table_meta *t)
{
    char a[64], b[64];
    if (t->level >= TAMIZ_LEVELS)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "table %" PRIu64 ": expected a level below %d, found %" PRIu32, t->number,
                       TAMIZ_LEVELS, t->level);
    if (slice_compare(t->smallest, t->largest) > 0)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "table %" PRIu64 ": expected a largest key not below the smallest, %s, "
                       "found %s",
                       t->number, slice_print(t->smallest, a, sizeof a),
                       slice_print(t->largest, b, sizeof b));
    return TAMIZ_OK;
}

static void change_free(const struct alloc *alloc, struct change *c)
{
    mem_free(alloc, c->removed, c->removed_count * sizeof *c->removed);
    mem_free(alloc, c->numbers, c->added_count * sizeof *c->numbers);
    mem_free(alloc, c->added, c->added_count * sizeof *c->added);
}

/* Freed by the caller also on failure. */
static tamiz_status change_init(struct op *op, const struct alloc *alloc,
                                const struct version_edit *edit, struct change *c)
{
    tamiz_status st = TAMIZ_OK;
    *c = (struct change){.removed_count = edit->removed_count, .added_count = edit->added_count};
    c->removed = mem_new_array(alloc, c->removed_count, sizeof *c->removed);
    c->numbers = mem_new_array(alloc, c->added_count, sizeof *c->numbers);
    c->added = mem_new_array(alloc, c->added_count, sizeof *c->added);
    if (!c->removed || !c->numbers || !c->added)
        return op_fail_memory(op);
    for (size_t i = 0; i < c->removed_count; i++)
        c->removed[i] = edit->removed[i];
    for (size_t i = 0; i < c->added_count; i++) {
        TRY(check_added(op, edit->added[i]));
        c->added[i] = edit->added[i];
        c->numbers[i] = edit->added[i]->number;
    }
    qsort(c->removed, c->removed_count, sizeof *c->removed, number_order);
    qsort(c->numbers, c->added_count, sizeof *c->numbers, number_order);
    qsort(c->added, c->added_count, sizeof *c->added, place_order);
    TRY(refuse_repeats(op, c->removed, c->removed_count, "removed"));
    TRY(refuse_repeats(op, c->numbers, c->added_count, "added"));
done:
    return st;
}

/* ---- versions ---- */

void version_ref(struct version *v)
{
    atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
}

void version_unref(struct version *v)
{
    if (!v || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < v->table_count; i++)
        table_meta_unref(v->alloc, v->tables[i]);
    mem_free(v->alloc, v->tables, v->room * sizeof *v->tables);
    mem_free(v->alloc, v->largest8, v->room * sizeof *v->largest8);
    mem_free(v->alloc, v->smallest8, v->room * sizeof *v->smallest8);
    mem_free(v->alloc, v->handles, v->room * sizeof *v->handles);
    mem_free(v->alloc, v->runs, v->run_count * sizeof *v->runs);
    mem_free(v->alloc, v, sizeof *v);
}

static struct version *version_new(struct op *op, const struct alloc *alloc, size_t room)
{
    struct version *v = room > UINT32_MAX ? NULL : mem_new_array(alloc, 1, sizeof *v);
    if (!v) {
        op_fail_memory(op);
        return NULL;
    }
    atomic_init(&v->refs, 1);
    v->alloc = alloc;
    v->room = (uint32_t)room;
    v->tables = mem_new_array(alloc, room, sizeof *v->tables);
    v->largest8 = mem_new_array(alloc, room, sizeof *v->largest8);
    v->smallest8 = mem_new_array(alloc, room, sizeof *v->smallest8);
    v->handles = mem_new_array(alloc, room, sizeof *v->handles);
    if (!v->tables || !v->largest8 || !v->smallest8 || !v->handles) {
        op_fail_memory(op);
        version_unref(v);
        return NULL;
    }
    return v;
}

static bool same_run(const struct table_meta *a, const struct table_meta *b)
{
    return a->level == b->level && a->run == b->run;
}

/* The next table in order. `unlike_base`: it or its neighbour is new, so that the two have to be
 * compared. */
static tamiz_status version_add(struct op *op, struct version *v, struct table_meta *t,
                                bool unlike_base)
{
    const struct table_meta *last = v->table_count ? v->tables[v->table_count - 1] : NULL;
    char a[64], b[64];
    if (unlike_base && last && same_run(last, t) && slice_compare(last->largest, t->smallest) >= 0)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "table %" PRIu64 " of level %" PRIu32 ", run %" PRIu64
                       ": expected a smallest key above %s, the largest of table %" PRIu64
                       ", found %s",
                       t->number, t->level, t->run, slice_print(last->largest, a, sizeof a),
                       last->number, slice_print(t->smallest, b, sizeof b));
    table_meta_ref(t);
    v->tables[v->table_count++] = t;
    v->ranged |= t->ranges > 0;
    return TAMIZ_OK;
}

/* What `base` keeps and what is new, merged by place. */
static tamiz_status merge_tables(struct op *op, struct version *v, const struct version *base,
                                 struct change *c)
{
    const uint32_t base_count = base ? base->table_count : 0;
    size_t a = 0;
    tamiz_status st = TAMIZ_OK;
    for (uint32_t i = 0; i <= base_count; i++) {
        struct table_meta *kept = i < base_count ? base->tables[i] : NULL;
        if (kept && is_among(c->removed, c->removed_count, kept->number)) {
            c->removed_found++;
            continue;
        }
        if (kept && is_among(c->numbers, c->added_count, kept->number))
            return op_fail(op, TAMIZ_CORRUPTION,
                           "expected a new number for an added table, found table %" PRIu64
                           " there already",
                           kept->number);
        bool after_new = false;
        for (; a < c->added_count && (!kept || place_compare(c->added[a], kept) < 0); a++) {
            TRY(version_add(op, v, c->added[a], true));
            after_new = true;
        }
        if (kept)
            TRY(version_add(op, v, kept, after_new));
    }
done:
    return st;
}

static tamiz_status refuse_unknown(struct op *op, const struct version *base,
                                   const struct change *c)
{
    for (size_t i = 0; i < c->removed_count; i++) {
        if (!base || !version_table(base, c->removed[i]))
            return op_fail(op, TAMIZ_CORRUPTION,
                           "expected to remove a table that is there, found no table %" PRIu64,
                           c->removed[i]);
    }
    return TAMIZ_OK;
}

/* Cuts the array of tables into runs, and counts. */
static tamiz_status cut_runs(struct op *op, struct version *v)
{
    uint32_t runs = 0;
    for (uint32_t i = 0; i < v->table_count; i++)
        runs += i == 0 || !same_run(v->tables[i - 1], v->tables[i]);
    v->runs = mem_new_array(v->alloc, runs, sizeof *v->runs);
    if (!v->runs)
        return op_fail_memory(op);
    struct run *run = NULL;
    for (uint32_t i = 0; i < v->table_count; i++) {
        const struct table_meta *t = v->tables[i];
        if (i == 0 || !same_run(v->tables[i - 1], t)) {
            run = &v->runs[v->run_count++];
            *run = (struct run){
                .level = t->level,
                .id = t->run,
                .tables = v->tables + i,
                .largest8 = v->largest8 + i,
                .smallest8 = v->smallest8 + i,
                .handles = v->handles + i,
            };
            v->level_runs[t->level]++;
        }
        run->count++;
        run->bytes += t->file_size;
        v->level_tables[t->level]++;
        v->level_bytes[t->level] += t->file_size;
    }
    return TAMIZ_OK;
}

/* What all keys begin with: what the bounds of all runs do. */
static struct slice common_prefix(const struct version *v)
{
    struct slice prefix = v->run_count ? v->tables[0]->smallest : slice_of(NULL, 0);
    for (uint32_t r = 0; r < v->run_count; r++) {
        const struct run *run = &v->runs[r];
        prefix.size = slice_common_prefix(prefix, run->tables[0]->smallest);
        prefix.size = slice_common_prefix(prefix, run->tables[run->count - 1]->largest);
    }
    return prefix;
}

/* Keys with a long common beginning are the rule, so that the words begin behind it: else they
 * would all be equal and decide nothing. */
static void fill_words(struct version *v)
{
    v->prefix = common_prefix(v);
    const unsigned rest = v->prefix.size < 8 ? 8 * (8 - (unsigned)v->prefix.size) : 0;
    for (uint32_t r = 0; r < v->run_count; r++) {
        v->runs[r].prefix = v->prefix;
        v->runs[r].prefix8 = slice_prefix8(v->prefix, 0);
        v->runs[r].prefix8_mask = rest < 64 ? UINT64_MAX << rest : 0;
    }
    for (uint32_t i = 0; i < v->table_count; i++) {
        v->largest8[i] = slice_prefix8(v->tables[i]->largest, v->prefix.size);
        v->smallest8[i] = slice_prefix8(v->tables[i]->smallest, v->prefix.size);
        v->handles[i] = v->tables[i]->table;
    }
}

tamiz_status version_apply(struct op *op, const struct alloc *alloc, const struct version *base,
                           const struct version_edit *edit, struct version **result)
{
    struct change c;
    struct version *v = NULL;
    tamiz_status st;
    *result = NULL;
    TRY(change_init(op, alloc, edit, &c));
    v = version_new(op, alloc, (base ? base->table_count : 0) + c.added_count);
    if (!v) {
        st = TAMIZ_OUT_OF_MEMORY;
        goto done;
    }
    TRY(merge_tables(op, v, base, &c));
    if (c.removed_found != c.removed_count)
        TRY(refuse_unknown(op, base, &c));
    TRY(cut_runs(op, v));
    fill_words(v);
    *result = v;
    v = NULL;
done:
    version_unref(v);
    change_free(alloc, &c);
    return st;
}

/* ---- finding ---- */

/* `half` where a < b, else 0, without a jump: which half a key is in nobody can foretell. */
static inline uint32_t half_if_below(uint64_t a, uint64_t b, uint32_t half)
{
    return half & (0 - (uint32_t)(a < b));
}

/* First index in [from, count) whose word is not below `word`. */
static uint32_t first_not_below(const uint64_t *words, uint32_t from, uint32_t count, uint64_t word)
{
    const uint64_t *at = words + from;
    uint32_t left = count - from;
    while (left > 1) {
        const uint32_t half = left / 2;
        at += half_if_below(at[half - 1], word, half);
        left -= half;
    }
    return (uint32_t)(at - words) + (left && *at < word);
}

/* `low`: the first table whose word is not below `word`. */
static uint32_t settle_ties(const struct run *run, uint32_t low, struct slice key, uint64_t word)
{
    /* Words alike decide nothing: there the keys themselves are searched. */
    if (low == run->count || run->largest8[low] != word)
        return low;
    uint32_t high =
        word == UINT64_MAX ? run->count : first_not_below(run->largest8, low, run->count, word + 1);
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (slice_compare(run->tables[middle]->largest, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t run_lower_bound(const struct run *run, struct slice key, uint64_t word)
{
    return settle_ties(run, first_not_below(run->largest8, 0, run->count, word), key, word);
}

/* `low`: as above. */
static inline uint32_t place_from(const struct run *run, uint32_t low, struct slice key,
                                  uint64_t word)
{
    if (low < run->count && run->largest8[low] != word && run->smallest8[low] != word)
        return run->smallest8[low] < word ? low : run->count;
    low = settle_ties(run, low, key, word);
    return low < run->count && slice_compare(run->tables[low]->smallest, key) <= 0 ? low
                                                                                   : run->count;
}

uint32_t run_place(const struct run *run, struct slice key, uint64_t word)
{
    return place_from(run, first_not_below(run->largest8, 0, run->count, word), key, word);
}

void run_words(const struct run *run, const struct slice *keys, size_t n, uint64_t *words)
{
    for (size_t i = 0; i < n; i++)
        words[i] = run_word(run, keys[i]);
}

/* One halving of all, then the next: no key's comparison waits for another's. */
void run_places(const struct run *run, const struct slice *keys, const uint64_t *words, size_t n,
                uint32_t *places)
{
    uint32_t left = run->count;
    for (size_t i = 0; i < n; i++)
        places[i] = 0;
    while (left > 1) {
        const uint32_t half = left / 2;
        for (size_t i = 0; i < n; i++)
            places[i] += half_if_below(run->largest8[places[i] + half - 1], words[i], half);
        left -= half;
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t low = places[i] + (left && run->largest8[places[i]] < words[i]);
        places[i] = place_from(run, low, keys[i], words[i]);
    }
}

struct table_meta *run_find(const struct run *run, struct slice key, uint64_t word)
{
    const uint32_t i = run_place(run, key, word);
    return i < run->count ? run->tables[i] : NULL;
}

struct table_meta *version_table(const struct version *v, uint64_t number)
{
    for (uint32_t i = 0; i < v->table_count; i++) {
        if (v->tables[i]->number == number)
            return v->tables[i];
    }
    return NULL;
}
