/* SPDX-License-Identifier: MIT */
#include "db/sieve.h"

#include "base/hash_short.h"

size_t sieve_room(const struct version *v)
{
    if (v->run_count > SIEVE_PAIRS)
        return 0;
    return v->run_count * SIEVE_KEYS > SIEVE_PAIRS ? SIEVE_PAIRS / v->run_count : SIEVE_KEYS;
}

void sieve_hash(struct sieve *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        s->hashes[i] = hash_key_short(s->keys[i]);
}

uint64_t sieve_memtable(const struct sieve *s, const struct view *view, uint32_t i)
{
    return memtable_sift(view->memtables[i]->memtable, s->hashes, s->count) & sieve_all(s);
}

/* In the place of a line that can't be asked: all its bits are set. */
static const _Alignas(64) uint8_t no_line[FILTER_LINE_BYTES] = {
#define FF8 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff
    FF8, FF8, FF8, FF8, FF8, FF8, FF8, FF8};

/* The line of each key that is met, if it has one. */
static void name_lines(const struct sieve *s, const struct run *run, const uint32_t *places,
                       struct filter_line *lines, struct sieve_run *said)
{
    uint64_t met = 0, asked = 0, expected_fp = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const bool is_met = places[i] != run->count;
        const struct table *t = is_met ? run->handles[places[i]] : NULL;
        met |= (uint64_t)is_met << i;
        if (t && table_has_lines(t)) {
            lines[i] = filter_line_of(&table_face(t)->filter, filter_lines_mix(s->hashes[i]));
            asked |= UINT64_C(1) << i;
            expected_fp += table_face(t)->expected_fp_1e9;
        } else {
            lines[i] = (struct filter_line){no_line, 0, 1};
        }
    }
    *said = (struct sieve_run){.met = met, .asked = asked, .expected_fp = expected_fp};
}

void sieve_tables(struct sieve *s, const struct version *v, bool use_filters)
{
    const uint32_t n = s->count;
    if (v->run_count)
        run_words(&v->runs[0], s->keys, n, s->words);
    for (uint32_t r = 0; r < v->run_count; r++) {
        run_places(&v->runs[r], s->keys, s->words, n, s->places + r * n);
        name_lines(s, &v->runs[r], s->places + r * n, s->lines + r * n, &s->runs[r]);
        if (!use_filters)
            s->runs[r].asked = 0;
    }
    for (uint32_t r = 0; r < v->run_count; r++)
        s->runs[r].maybe =
            s->runs[r].met & (filter_lines_ask(s->lines + r * n, n) | ~s->runs[r].asked);
}

uint64_t sieve_denied(const struct sieve *s, const struct version *v, uint64_t keys)
{
    for (uint32_t r = 0; r < v->run_count; r++)
        keys &= ~s->runs[r].maybe;
    return keys;
}

/* The sum over the filters that `asked` of the keys were asked of. */
static uint64_t expected_fp(const struct sieve *s, const struct version *v, uint32_t r,
                            uint64_t asked)
{
    const uint64_t left_out = s->runs[r].asked & ~asked;
    uint64_t sum = s->runs[r].expected_fp;
    for (uint64_t bits = left_out; bits; bits &= bits - 1)
        sum -= table_face(sieve_table(s, v, r, (uint32_t)__builtin_ctzll(bits)))->expected_fp_1e9;
    return sum;
}

void sieve_count(struct op *op, const struct sieve *s, const struct version *v, uint64_t denied)
{
    for (uint32_t r = 0; r < v->run_count; r++) {
        const uint64_t asked = s->runs[r].asked & denied;
        struct level_counters *at = &op->count->level[v->runs[r].level];
        if (!asked)
            continue;
        counter_add(&at->steps[TAMIZ_STEP_FILTER_NEGATIVE], (uint64_t)__builtin_popcountll(asked));
        counter_add(&at->expected_fp_1e9, expected_fp(s, v, r, asked));
    }
}
