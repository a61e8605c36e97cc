/* SPDX-License-Identifier: MIT
 *
 * What came of a workload, in four forms: db_bench's line for people and scripts that know it, a
 * second line of percentiles, one JSON document, and a TSV with the columns that RocksDB's
 * benchmark.sh made common.
 */
#ifndef TAMIZ_BENCH_REPORT_H
#define TAMIZ_BENCH_REPORT_H

#include <stdio.h>

#include "workload.h"

void report_text(FILE *out, const struct outcome *o);
void report_tsv_header(FILE *out);
void report_tsv(FILE *out, const struct engine *engine, const struct outcome *o);

void report_json_begin(FILE *out, const struct engine *engine, const struct bench_settings *s);
void report_json(FILE *out, const struct outcome *o, bool first);
void report_json_end(FILE *out);

#endif
