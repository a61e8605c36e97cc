/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "report.h"

#include <string.h>
#include <time.h>

static double per_op(const struct outcome *o, double total)
{
    return o->ops ? total / (double)o->ops : 0;
}

static double micros(const struct outcome *o)
{
    return per_op(o, o->seconds * 1e6);
}

static double ops_per_second(const struct outcome *o)
{
    return o->seconds > 0 ? (double)o->ops / o->seconds : 0;
}

static double percentile_us(const struct outcome *o, double share)
{
    return histogram_percentile(&o->latency, share) / 1e3;
}

/* readrandom   :       2.345 micros/op 426439 ops/sec 2.345 seconds 1000000 operations; 47.2 MB/s
 * (1000000 of 1000000 found) */
void report_text(FILE *out, const struct outcome *o)
{
    fprintf(out, "%-16s : %11.3f micros/op %.0f ops/sec %.3f seconds %llu operations;", o->name,
            micros(o), ops_per_second(o), o->seconds, (unsigned long long)o->ops);
    if (o->bytes)
        fprintf(out, " %6.1f MB/s", (double)o->bytes / 1048576.0 / (o->seconds + 1e-9));
    if (o->found || strncmp(o->name, "read", 4) == 0)
        fprintf(out, " (%llu of %llu found)", (unsigned long long)o->found,
                (unsigned long long)o->ops);
    fprintf(out,
            "\n  count %llu, average %.3f us, p50 %.3f, p75 %.3f, p99 %.3f, p99.9 %.3f, p99.99 "
            "%.3f, max %.3f; CPU %.3f us/op (asking threads %.3f)\n",
            (unsigned long long)o->latency.count,
            o->latency.count ? (double)o->latency.sum / 1e3 / (double)o->latency.count : 0.0,
            percentile_us(o, 0.5), percentile_us(o, 0.75), percentile_us(o, 0.99),
            percentile_us(o, 0.999), percentile_us(o, 0.9999), (double)o->latency.max / 1e3,
            o->cpu_us, o->thread_cpu_us);
    if (o->settle_seconds > 0)
        fprintf(out, "  settled after another %.3f seconds; %.2f bytes written per byte stored\n",
                o->settle_seconds,
                o->bytes ? (double)o->kernel_write_bytes / (double)o->bytes : 0.0);
    if (o->counts.known || (o->kernel_known && o->kernel_read_bytes))
        fprintf(out, "  device reads per operation: %.4f by the store; %.1f bytes by the kernel\n",
                per_op(o, (double)o->counts.device_reads), per_op(o, (double)o->kernel_read_bytes));
    if (o->counts.memory_bytes)
        fprintf(out, "  memory: %.1f MB by the store, %.1f resident, %.1f at most\n",
                (double)o->counts.memory_bytes / 1e6, (double)o->rss_bytes / 1e6,
                (double)o->peak_rss_bytes / 1e6);
    if (o->other_ops)
        fprintf(out, "  the writer beside: %.0f ops/sec\n",
                (double)o->other_ops / o->other_seconds);
    (void)fflush(out);
}

void report_tsv_header(FILE *out)
{
    fputs(
        "ops_sec\tmb_sec\tlsm_sz\tblob_sz\tc_wgb\tw_amp\tc_mbps\tc_wsecs\tc_csecs\tb_rgb\tb_wgb\t"
        "usec_op\tp50\tp99\tp99.9\tp99.99\tpmax\tuptime\tstall%\tNstall\tu_cpu\ts_cpu\trss\ttest\t"
        "date\tversion\tjob_id\tgithash\n",
        out);
}

/* What this tool does not know stays NA, as in benchmark.sh. */
void report_tsv(FILE *out, const struct engine *engine, const struct outcome *o)
{
    const time_t now = time(NULL);
    struct tm day;
    char date[40] = "NA";
    const double gb = 1 << 30;
    if (gmtime_r(&now, &day))
        (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &day);
    fprintf(out, "%.0f\t%.1f\t%.2fGB\tNA\tNA\t", ops_per_second(o),
            (double)o->bytes / 1048576.0 / (o->seconds + 1e-9), (double)o->store_bytes / gb);
    if (o->settle_seconds > 0 && o->bytes)
        fprintf(out, "%.1f\t", (double)o->kernel_write_bytes / (double)o->bytes);
    else
        fputs("NA\t", out);
    fprintf(out, "NA\tNA\tNA\t%.2f\t%.2f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.0f\tNA\tNA\t",
            (double)o->kernel_read_bytes / gb, (double)o->kernel_write_bytes / gb, micros(o),
            percentile_us(o, 0.5), percentile_us(o, 0.99), percentile_us(o, 0.999),
            percentile_us(o, 0.9999), (double)o->latency.max / 1e3, o->seconds);
    fprintf(out, "%.1f\tNA\t%.2fGB\t%s\t%s\t%s\tNA\tNA\n", o->cpu_us * (double)o->ops / 1e6,
            (double)o->rss_bytes / gb, o->name, date, engine->version());
}

/* ---- JSON */

static void json_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(out, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

void report_json_begin(FILE *out, const struct engine *engine, const struct bench_settings *s)
{
    fputs("{\"engine\":", out);
    json_text(out, engine->name);
    fputs(",\"version\":", out);
    json_text(out, engine->version());
    fprintf(out,
            ",\"settings\":{\"num\":%llu,\"value_size\":%zu,\"threads\":%u,\"seed\":%llu,"
            "\"cache\":%llu,\"memtable\":%llu,\"block\":%llu,\"filter_bits\":%g,\"direct\":%s,"
            "\"zstd\":%s,\"background\":%u,\"warm\":%s,\"options\":",
            (unsigned long long)s->num, s->value_size, s->threads, (unsigned long long)s->seed,
            (unsigned long long)s->store.cache, (unsigned long long)s->store.memtable,
            (unsigned long long)s->store.block, s->store.filter_bits,
            s->store.direct ? "true" : "false", s->store.zstd ? "true" : "false", s->store.threads,
            s->warm ? "true" : "false");
    json_text(out, s->store.extra);
    fputs("},\"rows\":[", out);
}

void report_json(FILE *out, const struct outcome *o, bool first)
{
    fputs(first ? "\n{\"workload\":" : ",\n{\"workload\":", out);
    json_text(out, o->name);
    fprintf(
        out,
        ",\"threads\":%u,\"operations\":%llu,\"found\":%llu,\"seconds\":%.6f,"
        "\"ops_per_second\":%.1f,\"micros_per_op\":%.4f,\"cpu_us\":%.4f,\"thread_cpu_us\":%.4f,",
        o->threads, (unsigned long long)o->ops, (unsigned long long)o->found, o->seconds,
        ops_per_second(o), micros(o), o->cpu_us, o->thread_cpu_us);
    fprintf(out,
            "\"p50_us\":%.4f,\"p75_us\":%.4f,\"p99_us\":%.4f,\"p99_9_us\":%.4f,"
            "\"p99_99_us\":%.4f,\"max_us\":%.4f,\"bytes\":%llu,\"settle_seconds\":%.3f,",
            percentile_us(o, 0.5), percentile_us(o, 0.75), percentile_us(o, 0.99),
            percentile_us(o, 0.999), percentile_us(o, 0.9999), (double)o->latency.max / 1e3,
            (unsigned long long)o->bytes, o->settle_seconds);
    if (o->counts.known)
        fprintf(out, "\"device_reads\":%llu,\"device_read_bytes\":%llu,",
                (unsigned long long)o->counts.device_reads,
                (unsigned long long)o->counts.device_read_bytes);
    if (o->kernel_known)
        fprintf(out, "\"kernel_read_bytes\":%llu,\"kernel_write_bytes\":%llu,",
                (unsigned long long)o->kernel_read_bytes,
                (unsigned long long)o->kernel_write_bytes);
    fprintf(out,
            "\"memory_bytes\":%llu,\"store_bytes\":%llu,\"rss_bytes\":%llu,\"peak_rss_bytes\":%llu,"
            "\"other_ops\":%llu,\"other_seconds\":%.6f}",
            (unsigned long long)o->counts.memory_bytes, (unsigned long long)o->store_bytes,
            (unsigned long long)o->rss_bytes, (unsigned long long)o->peak_rss_bytes,
            (unsigned long long)o->other_ops, o->other_seconds);
}

void report_json_end(FILE *out)
{
    fputs("\n]}\n", out);
}
