/* SPDX-License-Identifier: MIT */
#include "compact/monkey.h"

#include <math.h>
#include <string.h>

#include "compact/coverage.h"
#include "filter/filter.h"

enum { SAMPLE_KEYS = 1 << 20, BISECTIONS = 100, BITS_MOST = 24 };
#define BITS_LEAST 0.75 /* fewer are no filter worth asking */

double monkey_bits(const struct monkey_run *run, double rate)
{
    return run->cost * log2(1 / rate);
}

/* At the common factor 2^`log_factor`. */
static double rate_of(const struct monkey_run *run, double log_factor)
{
    const double log_rate = log_factor + log2(run->cost * run->keys / run->weight);
    const double least = -run->bits_most / run->cost;
    return exp2(log_rate > 0 ? 0 : log_rate < least ? least : log_rate);
}

/* The larger the factor, the fewer bits: it is found by halving. */
void monkey_rates(const struct monkey_run *runs, size_t n, double bits, double *rates)
{
    double from = -400, to = 400;
    for (int step = 0; step < BISECTIONS; step++) {
        const double middle = (from + to) / 2;
        double taken = 0;
        for (size_t i = 0; i < n; i++)
            if (runs[i].keys > 0)
                taken += runs[i].keys * monkey_bits(&runs[i], rate_of(&runs[i], middle));
        if (taken > bits)
            from = middle;
        else
            to = middle;
    }
    for (size_t i = 0; i < n; i++)
        rates[i] = runs[i].keys > 0 ? rate_of(&runs[i], to) : 1;
}

/* ---- families ---- */

static bool plan_of(const tamiz_filter_policy *policy, double *bits, double *rate)
{
    struct counters nowhere = {0};
    struct op op;
    struct filter_plan plan;
    const struct filter_family *family;
    op_init(&op, &alloc_libc, &nowhere);
    if (filter_plan_make(&op, policy, SAMPLE_KEYS, &plan, &family) != TAMIZ_OK || !family)
        return false;
    *bits = (double)plan.payload_bytes * 8 / SAMPLE_KEYS;
    *rate = plan.expected_fpr;
    return true;
}

double monkey_average(const tamiz_filter_policy *policy)
{
    double bits, rate;
    return plan_of(policy, &bits, &rate) ? bits : 0;
}

double monkey_cost(const tamiz_filter_policy *policy)
{
    tamiz_filter_policy narrow = *policy, wide = *policy;
    double narrow_bits, narrow_rate, wide_bits, wide_rate;
    narrow.fpr = wide.fpr = 0;
    narrow.bits_per_key = 6;
    wide.bits_per_key = 14;
    if (!plan_of(&narrow, &narrow_bits, &narrow_rate) || !plan_of(&wide, &wide_bits, &wide_rate) ||
        wide_bits < narrow_bits + 1 || wide_rate >= narrow_rate)
        return 0;
    return (wide_bits - narrow_bits) / log2(narrow_rate / wide_rate);
}

/* ---- a tree ---- */

/* The runs of a version, and at [run_count] one that is new. */
struct tree {
    const struct version *version;
    struct coverage coverage;
    struct monkey_run *runs;
    size_t count;
};

static tamiz_status tree_init(struct op *op, struct tree *t, const struct version *v, double cost)
{
    *t = (struct tree){.version = v, .count = v->run_count + 1};
    t->runs = mem_new_array(op->alloc, t->count, sizeof *t->runs);
    if (!t->runs)
        return op_fail_memory(op);
    for (size_t i = 0; i < t->count; i++)
        t->runs[i] = (struct monkey_run){.cost = cost, .bits_most = BITS_MOST};
    return coverage_init(op, &t->coverage, v);
}

static void tree_free(struct op *op, struct tree *t)
{
    mem_free(op->alloc, t->runs, t->count * sizeof *t->runs);
    coverage_free(&t->coverage, op->alloc);
}

/* A table is there, or with `times` -1 no longer. */
static void tree_count(struct tree *t, size_t run, const struct table_meta *table, double times)
{
    t->runs[run].keys += times * (double)table->keys;
    t->runs[run].weight += times * coverage_of(&t->coverage, table->smallest, table->largest);
}

static size_t run_of(const struct version *v, uint32_t level, uint64_t id)
{
    uint32_t r = 0;
    while (r < v->run_count && (v->runs[r].id != id || v->runs[r].level != level))
        r++;
    return r;
}

/* The tree as it will be: what job `j` takes is at its output, or, without a job, `keys` more from
 * anywhere are. Returns where. */
static size_t tree_after(struct tree *t, const struct job *j, double keys)
{
    const struct version *v = t->version;
    for (uint32_t r = 0; r < v->run_count; r++)
        for (uint32_t i = 0; i < v->runs[r].count; i++)
            tree_count(t, r, v->runs[r].tables[i], 1);
    if (!j) {
        t->runs[v->run_count].keys = keys;
        t->runs[v->run_count].weight = 1;
        return v->run_count;
    }
    const size_t place = j->new_run ? v->run_count : run_of(v, j->output_level, j->output_run);
    for (size_t i = 0; i < job_count(j); i++) {
        const struct table_meta *table = job_input(j, i);
        tree_count(t, run_of(v, table->level, table->run), table, -1);
        t->runs[place].keys += (double)table->keys;
    }
    t->runs[place].weight +=
        coverage_of(&t->coverage, buf_slice(&j->smallest), buf_slice(&j->largest));
    return place;
}

/* The family's own arithmetic, where halving the rate costs more than it does in the middle. */
static double rate_at(const tamiz_filter_policy *policy, double bits)
{
    tamiz_filter_policy p = *policy;
    double took, rate;
    p.fpr = 0;
    p.bits_per_key = bits;
    return bits >= BITS_LEAST && plan_of(&p, &took, &rate) ? rate : 1;
}

/* Whether fewer reads are wasted than with the average for everybody. */
static bool is_better(const struct tree *t, const double *rates, const tamiz_filter_policy *policy,
                      double average)
{
    double spread = 0, even = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (t->runs[i].keys <= 0)
            continue;
        spread += t->runs[i].weight * rate_at(policy, monkey_bits(&t->runs[i], rates[i]));
        even += t->runs[i].weight * rate_at(policy, average);
    }
    return spread < even;
}

/* All of the tree's bits, shared out; what the run at `place` gets. */
static void tree_spread(struct tree *t, size_t place, double average, double *rates,
                        tamiz_filter_policy *policy)
{
    double all = 0;
    for (size_t i = 0; i < t->count; i++) {
        t->runs[i].keys = fmax(t->runs[i].keys, 0);
        all += t->runs[i].keys;
    }
    for (size_t i = 0; i < t->count; i++) /* no run is asked less often than for its own keys */
        t->runs[i].weight = fmax(t->runs[i].weight, t->runs[i].keys / fmax(all, 1));
    monkey_rates(t->runs, t->count, all * average, rates);
    if (!is_better(t, rates, policy, average))
        return;
    const double bits = monkey_bits(&t->runs[place], rates[place]);
    policy->fpr = 0;
    policy->bits_per_key = bits;
    if (bits < BITS_LEAST)
        *policy = (tamiz_filter_policy){.kind = "none"};
}

tamiz_status monkey_policy(struct op *op, const struct version *v, const struct job *j,
                           uint64_t keys, const tamiz_filter_policy *policy,
                           tamiz_filter_policy *spread)
{
    const double cost = monkey_cost(policy), average = monkey_average(policy);
    struct tree t = {0};
    double *rates = NULL;
    tamiz_status st = TAMIZ_OK;
    *spread = *policy;
    if (cost <= 0 || average <= 0)
        return TAMIZ_OK;
    TRY(tree_init(op, &t, v, cost));
    rates = mem_new_array(op->alloc, t.count, sizeof *rates);
    TRY(rates ? TAMIZ_OK : op_fail_memory(op));
    tree_spread(&t, tree_after(&t, j, (double)keys), average, rates, spread);
done:
    mem_free(op->alloc, rates, t.count * sizeof *rates);
    tree_free(op, &t);
    return st;
}
