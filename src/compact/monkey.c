/* SPDX-License-Identifier: MIT */
#include "compact/monkey.h"

#include <math.h>
#include <string.h>

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

static double run_keys(const struct run *run)
{
    double sum = 0;
    for (uint32_t i = 0; i < run->count; i++)
        sum += (double)run->tables[i]->keys;
    return sum;
}

/* Keys of each run when the job is done; [run_count] is for a run that is new. Returns where the
 * output is. */
static size_t shape_after(const struct version *v, const struct job *j, double keys, double *shape)
{
    size_t place = v->run_count;
    for (uint32_t r = 0; r < v->run_count; r++) {
        shape[r] = run_keys(&v->runs[r]);
        if (j && !j->new_run && j->output_run == v->runs[r].id &&
            j->output_level == v->runs[r].level)
            place = r;
    }
    shape[v->run_count] = 0;
    for (size_t i = 0; j && i < job_count(j); i++) {
        const struct table_meta *t = job_input(j, i);
        keys += (double)t->keys;
        for (uint32_t r = 0; r < v->run_count; r++)
            if (v->runs[r].id == t->run && v->runs[r].level == t->level)
                shape[r] -= (double)t->keys;
    }
    shape[place] += keys;
    return place;
}

tamiz_status monkey_policy(struct op *op, const struct version *v, const struct job *j,
                           uint64_t keys, const tamiz_filter_policy *policy,
                           tamiz_filter_policy *spread)
{
    const double cost = monkey_cost(policy), average = monkey_average(policy);
    const size_t n = v->run_count + 1;
    *spread = *policy;
    if (cost <= 0 || average <= 0)
        return TAMIZ_OK;
    double *shape = mem_new_array(op->alloc, 2 * n, sizeof *shape);
    struct monkey_run *runs = mem_new_array(op->alloc, n, sizeof *runs);
    const bool room = shape && runs;
    if (room) {
        const size_t place = shape_after(v, j, (double)keys, shape);
        double all = 0, *rates = shape + n;
        for (size_t i = 0; i < n; i++) {
            runs[i] = (struct monkey_run){shape[i], 1, cost, BITS_MOST};
            all += shape[i];
        }
        monkey_rates(runs, n, all * average, rates);
        const double bits = monkey_bits(&runs[place], rates[place]);
        spread->fpr = 0;
        spread->bits_per_key = bits;
        if (bits < BITS_LEAST)
            *spread = (tamiz_filter_policy){.kind = "none"};
    }
    mem_free(op->alloc, shape, 2 * n * sizeof *shape);
    mem_free(op->alloc, runs, n * sizeof *runs);
    return room ? TAMIZ_OK : op_fail_memory(op);
}
