/* SPDX-License-Identifier: MIT
 *
 * The filter over the prefixes of a table's keys, asked before an ordered read goes into the table.
 */
#include "table/table_inside.h"

/* What there is to ask the table about the range, and why there is nothing. */
static const char *question_of(const struct table_loaded *l, const struct table_read *how,
                               const struct read_range *range, struct slice *prefix)
{
    const char *why = "";
    if (!how->use_filter)
        return "filters are not to be asked";
    if (!l->prefix_filter.family)
        return l->prefix_missing;
    return prefix_of_range(l->properties.prefix.rule, range, prefix, &why) ? NULL : why;
}

static void tell(struct op *op, const struct table *t, const struct table_read *how,
                 tamiz_step_kind kind, const char *text)
{
    const struct filter_view *f = &table_loaded_of(t)->prefix_filter;
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    filter_view_info(f, &info);
    op_tell(op, &(const tamiz_step_info){.kind = kind,
                                         .level = how->level,
                                         .table = t->number,
                                         .text = text,
                                         .filter = f->family ? info.kind : "",
                                         .expected_fpr = f->family ? f->expected_fpr : 0,
                                         .filter_bits_per_key = info.bits_per_key});
}

static void step(struct op *op, const struct table *t, const struct table_read *how,
                 tamiz_step_kind kind, const char *text)
{
    counter_add(&table_level(op, how)->steps[kind], 1);
    if (op->trace)
        tell(op, t, how, kind, text);
}

/* The answer in words: which prefix, and what the filter looked at. */
static void step_answer(struct op *op, const struct table *t, const struct table_read *how,
                        struct slice prefix, uint64_t hash, bool maybe)
{
    struct buf words = buf_init(op->alloc);
    char shown[80];
    if (op->trace) {
        buf_printf(&words, "prefix %s: ", slice_print(prefix, shown, sizeof shown));
        filter_view_story(&table_loaded_of(t)->prefix_filter, hash, &words);
        buf_append(&words, "", 1);
    }
    step(op, t, how, maybe ? TAMIZ_STEP_PREFIX_MAYBE : TAMIZ_STEP_PREFIX_NEGATIVE,
         words.size && !words.failed ? (const char *)words.data : "");
    buf_free(&words);
}

tamiz_status table_ask_range(struct op *op, struct table *t, const struct table_read *how,
                             const struct read_range *range, enum table_verdict *verdict)
{
    *verdict = TABLE_NO_FILTER;
    const tamiz_status st = table_load(op, t);
    if (st != TAMIZ_OK)
        return st;
    const struct table_loaded *l = table_loaded_of(t);
    struct slice prefix = slice_of(NULL, 0);
    const char *missing = question_of(l, how, range, &prefix);
    if (missing) {
        step(op, t, how, TAMIZ_STEP_NO_PREFIX_FILTER, missing);
        return TAMIZ_OK;
    }
    const uint64_t hash = hash_key(prefix);
    const bool maybe = filter_view_may_contain(&l->prefix_filter, hash);
    step_answer(op, t, how, prefix, hash, maybe);
    *verdict = maybe ? TABLE_MAYBE : TABLE_NO;
    return TAMIZ_OK;
}

void table_range_was_empty(struct op *op, const struct table_read *how)
{
    counter_add(&table_level(op, how)->prefix_false_positives, 1);
}

const struct filter_view *table_prefix_filter(const struct table *t)
{
    return &table_loaded_of(t)->prefix_filter;
}
