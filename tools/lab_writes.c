/* SPDX-License-Identifier: MIT
 *
 * `lab writes`: what each policy writes for a byte that is flushed, as compaction's own arithmetic
 * says beforehand (compact/predict.h) and as a store then does. Keys once each in random order; the
 * log, which is one byte more for each, is not in it.
 */
#include "compact/predict.h"
#include "lab_kit.h"

/* Fewer runs in level 0 than the default: so few keys make several levels. */
enum { KEYS = 300000, MEMTABLE = 128 << 10, TABLE = 64 << 10, LEVEL0_RUNS = 8, LEVEL0_STOP = 24 };

static const struct {
    const char *name;
    tamiz_compaction policy;
    uint32_t size_ratio;
} trees[] = {{"leveled", TAMIZ_COMPACTION_LEVELED, 4}, {"leveled", TAMIZ_COMPACTION_LEVELED, 10},
             {"tiered", TAMIZ_COMPACTION_TIERED, 4},   {"tiered", TAMIZ_COMPACTION_TIERED, 10},
             {"lazy", TAMIZ_COMPACTION_LAZY, 4},       {"lazy", TAMIZ_COMPACTION_LAZY, 10}};

static void columns_make(struct sheet *s)
{
    sheet_column(s, "policy", "policy", SHEET_WORD);
    sheet_column(s, "size_ratio", "size ratio", SHEET_COUNT);
    sheet_column(s, "flushed_bytes", "flushed", SHEET_SIZE);
    sheet_column(s, "predicted", "predicted", SHEET_REAL);
    sheet_column(s, "measured", "measured", SHEET_REAL);
    sheet_column(s, "difference", "difference", SHEET_PERCENT);
}

static int tree_run(struct sheet *s, struct kit *kit, size_t tree)
{
    const struct pick_options shape = {.policy = trees[tree].policy,
                                       .size_ratio = trees[tree].size_ratio,
                                       .level0_runs = LEVEL0_RUNS,
                                       .memtable_bytes = MEMTABLE,
                                       .table_bytes = TABLE,
                                       .oldest_snapshot = UINT64_MAX};
    struct counters counters = {0};
    struct prediction p;
    struct text options = {0};
    struct op op;
    text_printf(
        &options, "compaction=%s size_ratio=%u memtable=%d table=%d level0_runs=%d level0_stop=%d",
        trees[tree].name, trees[tree].size_ratio, MEMTABLE, TABLE, LEVEL0_RUNS, LEVEL0_STOP);
    int status = kit_store_make(kit, options.data, kit->key_count);
    text_free(&options);
    status = kit_store_remove(kit, status);
    const tamiz_stats *made = &kit->made;
    if (status != EXIT_DONE || made->flushes == 0)
        return status;
    op_init(&op, &alloc_libc, &counters);
    if (predict_writes(&op, &shape, made->flush_bytes_out / made->flushes, (uint32_t)made->flushes,
                       0, &p) != TAMIZ_OK)
        return fail(kit->call, "out of memory");
    const double predicted = (double)(p.flushed + p.merged) / (double)p.flushed;
    const double measured = (double)(made->flush_bytes_out + made->compaction_bytes_out) /
                            (double)made->flush_bytes_out;
    sheet_word(s, trees[tree].name);
    sheet_number(s, trees[tree].size_ratio);
    sheet_number(s, (double)made->flush_bytes_out);
    sheet_number(s, predicted);
    sheet_number(s, measured);
    sheet_number(s, predicted / measured - 1);
    return EXIT_DONE;
}

int lab_writes(struct call *call)
{
    struct sheet s = {.experiment = "writes",
                      .title = "Bytes written for a byte flushed, predicted and measured"};
    struct kit kit;
    int status = kit_take(&kit, call, KEYS, 1);
    s.seed = kit.seed;
    columns_make(&s);
    for (size_t i = 0; i < sizeof trees / sizeof *trees && status == EXIT_DONE; i++)
        status = tree_run(&s, &kit, i);
    if (status == EXIT_DONE) {
        count_show(&s.setting, kit.key_count);
        text_word(&s.setting, " keys in random order; memtables of 128 KiB, tables of 64 KiB.");
        status = sheet_tell(&s, call);
    }
    sheet_free(&s);
    kit_free(&kit);
    return status;
}
