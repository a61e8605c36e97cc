/* SPDX-License-Identifier: MIT */
#include "db/prometheus.h"

#include "db/figures.h"
#include "db/trust.h"

/* ---- one metric and its samples ---- */

static void type_print(struct buf *out, const char *prefix, const struct figure *f)
{
    buf_printf(out, "# TYPE tamiz_%s%s %s\n", prefix, f->name, f->gauge ? "gauge" : "counter");
}

static void store_print(struct buf *out, const char *keyspace, const tamiz_stats *s,
                        const struct figure *f)
{
    type_print(out, "", f);
    buf_printf(out, "tamiz_%s{keyspace=\"%s\"} ", f->name, keyspace);
    figure_print(out, s, f);
    buf_text(out, "\n");
}

static void level_print(struct buf *out, const char *keyspace, const tamiz_stats *s,
                        const struct figure *f)
{
    type_print(out, "", f);
    for (int level = 0; level < TAMIZ_LEVELS; level++) {
        buf_printf(out, "tamiz_%s{keyspace=\"%s\",level=\"%d\"} ", f->name, keyspace, level);
        figure_print(out, &s->level[level], f);
        buf_text(out, "\n");
    }
}

/* ---- what was read and written, by purpose ---- */

#define IO(f)                                                                                      \
    {                                                                                              \
#f "_total", offsetof(tamiz_io_stats, f), false, false                                     \
    }
static const struct figure io_metrics[] = {IO(reads), IO(read_bytes), IO(writes), IO(write_bytes)};

static void io_print(struct buf *out, const char *keyspace, const tamiz_stats *s,
                     const struct figure *f)
{
    type_print(out, "device_", f);
    for (int i = 0; i < FIGURES_OF_IO; i++) {
        buf_printf(out, "tamiz_device_%s{keyspace=\"%s\",purpose=\"%s\"} ", f->name, keyspace,
                   figures_of_io[i].name);
        figure_print(out, (const char *)s + figures_of_io[i].offset, f);
        buf_text(out, "\n");
    }
}

void prometheus_print(struct buf *out, const char *keyspace, const tamiz_stats *s,
                      const struct version *v)
{
    trust_tables_prometheus(out, keyspace, v);
    for (int i = 0; i < FIGURES_OF_STORE; i++)
        store_print(out, keyspace, s, &figures_of_store[i]);
    for (int i = 0; i < FIGURES_OF_LEVEL; i++)
        level_print(out, keyspace, s, &figures_of_level[i]);
    for (size_t i = 0; i < sizeof io_metrics / sizeof *io_metrics; i++)
        io_print(out, keyspace, s, &io_metrics[i]);
}
