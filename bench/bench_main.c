/* SPDX-License-Identifier: MIT
 *
 * The command line of the workloads: `tamiz bench`, and one program a peer.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report.h"
#include "workload.h"

struct arguments {
    struct bench_settings settings;
    const char *workloads;
    const char *json, *tsv;
    bool describe;
};

/* ---- words for a failure, for the engines */

static _Thread_local char error_text[512];

const char *engine_error(void)
{
    return error_text;
}

int engine_fail(const char *what, const char *why)
{
    (void)snprintf(error_text, sizeof error_text, "%s: %s", what, why ? why : "no reason given");
    return ENGINE_FAILED;
}

/* ---- arguments: --name=value, --name value, or a list of workloads */

static bool parse_number(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    const double value = strtod(text, &end);
    double unit = 1;
    switch (*end) {
    case 'k': unit = 1e3; break;
    case 'K': unit = 1 << 10; break;
    case 'm': unit = 1e6; break;
    case 'M': unit = 1 << 20; break;
    case 'G': unit = 1 << 30; break;
    default: break;
    }
    if (unit > 1)
        end++;
    if (unit > 1 && (strcmp(end, "iB") == 0 || strcmp(end, "B") == 0))
        end += strlen(end);
    if (errno || end == text || *end || value < 0 || value * unit > 1e18)
        return false;
    *number = (uint64_t)(value * unit);
    return true;
}

static bool parse_unsigned(const char *text, unsigned most, unsigned *out)
{
    uint64_t number;
    if (!parse_number(text, &number) || number > most)
        return false;
    *out = (unsigned)number;
    return true;
}

static bool parse_text(const char *text, const char **out)
{
    *out = text;
    return true;
}

static bool parse_filter_bits(const char *text, double *bits)
{
    char *end;
    *bits = strtod(text, &end);
    return end != text && !*end && *bits >= 0 && *bits <= 64;
}

static bool parse_compression(const char *text, bool *zstd)
{
    *zstd = strcmp(text, "zstd") == 0;
    return *zstd || strcmp(text, "none") == 0;
}

static bool parse_value_size(const char *text, size_t *size)
{
    uint64_t number;
    if (!parse_number(text, &number) || number < 16 || number > (1 << 20))
        return false;
    *size = (size_t)number;
    return true;
}

static const char options_help[] =
    "  --db DIR            where the store lives; emptied by fills (default: ./tamiz-bench)\n"
    "  --use_existing_db   the store is there, with keys 0..num-1\n"
    "  --num N             keys (1000000)           --reads N      operations of a reading "
    "workload\n"
    "  --value_size N      bytes (100)              --threads N    that ask (1)\n"
    "  --batch_size N      keys of a multiget (32)  --seek_nexts N entries after a seek (10)\n"
    "  --cache_size SIZE   (1GiB)                   --memtable SIZE (64MiB)\n"
    "  --block_size SIZE   (4KiB)                   --bloom_bits B of a key; 0: no filter (10)\n"
    "  --compression none|zstd                      --background N threads (2)\n"
    "  --use_direct_reads  around the page cache    --warm         read everything once before\n"
    "  --write_rate N      puts a second of the writer in readwhilewriting, at most (no limit)\n"
    "  --counts            count device reads       --seed N\n"
    "  --options TEXT      the engine's own         --describe     its settings and shape, at the "
    "end\n"
    "  --json FILE         one document; -: to stdout, the lines then go to stderr\n"
    "  --tsv FILE          benchmark.sh's columns\n";

/* Options that stand alone. */
static bool parse_flag(struct arguments *a, const char *name)
{
    bool *flag = strcmp(name, "use_existing_db") == 0    ? &a->settings.existing
                 : strcmp(name, "use_direct_reads") == 0 ? &a->settings.store.direct
                 : strcmp(name, "warm") == 0             ? &a->settings.warm
                 : strcmp(name, "counts") == 0           ? &a->settings.store.counts
                 : strcmp(name, "describe") == 0         ? &a->describe
                                                         : NULL;
    if (flag)
        *flag = true;
    return flag;
}

/* false: no such option, or no such value. */
static bool parse_option(struct arguments *a, const char *name, const char *value)
{
    struct bench_settings *s = &a->settings;
#define IS(text) (strcmp(name, text) == 0)
    if (!value)
        return false;
    return IS("db")           ? parse_text(value, &s->store.path)
           : IS("num")        ? parse_number(value, &s->num) && s->num > 0 && s->num < 1000000000000
           : IS("reads")      ? parse_number(value, &s->ops)
           : IS("value_size") ? parse_value_size(value, &s->value_size)
           : IS("threads")    ? parse_unsigned(value, 63, &s->threads) && s->threads > 0
           : IS("write_rate") ? parse_number(value, &s->write_rate)
           : IS("batch_size") ? parse_unsigned(value, 256, &s->batch)
           : IS("seek_nexts") ? parse_unsigned(value, 1000000, &s->seek_nexts)
           : IS("cache_size") ? parse_number(value, &s->store.cache)
           : IS("memtable")   ? parse_number(value, &s->store.memtable)
           : IS("block_size") ? parse_number(value, &s->store.block)
           : IS("bloom_bits") ? parse_filter_bits(value, &s->store.filter_bits)
           : IS("compression") ? parse_compression(value, &s->store.zstd)
           : IS("background")  ? parse_unsigned(value, 64, &s->store.threads)
           : IS("seed")        ? parse_number(value, &s->seed)
           : IS("options")     ? parse_text(value, &s->store.extra)
           : IS("json")        ? parse_text(value, &a->json)
           : IS("tsv")         ? parse_text(value, &a->tsv)
           : IS("benchmarks")  ? parse_text(value, &a->workloads)
                               : false;
#undef IS
}

static bool parse_argument(struct arguments *a, int argc, char **argv, int *i)
{
    const char *argument = argv[*i];
    char name[32];
    if (strncmp(argument, "--", 2) != 0) {
        a->workloads = argument;
        return argument[0] != '-';
    }
    const char *equals = strchr(argument, '=');
    const size_t size = equals ? (size_t)(equals - argument - 2) : strlen(argument + 2);
    if (size >= sizeof name)
        return false;
    memcpy(name, argument + 2, size);
    name[size] = 0;
    if (!equals && parse_flag(a, name))
        return true;
    if (equals)
        return parse_option(a, name, equals + 1);
    *i += 1;
    return parse_option(a, name, *i < argc ? argv[*i] : NULL);
}

static void usage(const char *engine)
{
    printf("usage: bench [options] WORKLOAD[:PARAMETER][@THREADS],...   (engine: %s)\n", engine);
    workload_list();
    fputs(options_help, stdout);
}

/* ---- running */

static bool to_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

/* One document on stdout stays alone there. */
static FILE *lines_to(const struct arguments *a)
{
    return to_stdout(a->json) ? stderr : stdout;
}

/* Every name in the list; false, and it was said. */
static bool names_known(const char *workloads)
{
    char list[1024], *name, *rest = NULL;
    if (strlen(workloads) >= sizeof list) {
        fprintf(stderr, "bench: a list of more than %zu bytes\n", sizeof list - 1);
        return false;
    }
    memcpy(list, workloads, strlen(workloads) + 1);
    for (name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        if (!workload_known(name)) {
            fprintf(stderr, "bench: %s: no such workload (see --help)\n", name);
            return false;
        }
    return true;
}

static int run_all(struct bench *bench, const struct arguments *a, FILE *json, FILE *tsv)
{
    char list[1024], *name, *rest = NULL;
    bool first = true;
    (void)snprintf(list, sizeof list, "%s", a->workloads);
    for (name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        struct outcome *o = calloc(1, sizeof *o);
        const int result = o ? workload_run(bench, name, o) : -1;
        if (result == 0) {
            report_text(lines_to(a), o);
            if (json)
                report_json(json, o, first);
            if (tsv)
                report_tsv(tsv, bench->engine, o);
            first = false;
        }
        free(o);
        if (result < 0)
            return 3;
    }
    return 0;
}

static void describe(struct bench *bench, FILE *to)
{
    char *text =
        bench->engine->describe && bench->store ? bench->engine->describe(bench->store) : NULL;
    if (text)
        fprintf(to, "%s\n", text);
    free(text);
}

/* The file's parent must exist; NULL without words where `path` is. */
static FILE *output(const char *path, bool *failed)
{
    FILE *file = to_stdout(path) ? stdout : path ? fopen(path, "w") : NULL;
    if (path && !file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        *failed = true;
    }
    return file;
}

static int output_end(FILE *file)
{
    return file == stdout ? fflush(file) : fclose(file);
}

static int run(const struct engine *engine, const struct arguments *a)
{
    bool failed = false;
    struct bench bench = {.engine = engine, .settings = a->settings};
    FILE *json = output(a->json, &failed), *tsv = output(a->tsv, &failed);
    int status = failed ? 3 : 0;
    bench.settings.store.data_bytes = a->settings.num * (KEY_SIZE + a->settings.value_size);
    if (status == 0 && a->settings.existing) {
        bench.stored = a->settings.num;
        status = bench_open(&bench, false) == 0 ? 0 : 3;
    }
    if (json)
        report_json_begin(json, engine, &a->settings);
    if (tsv)
        report_tsv_header(tsv);
    if (status == 0)
        status = run_all(&bench, a, json, tsv);
    if (a->describe && status == 0)
        describe(&bench, lines_to(a));
    if (bench_close(&bench) != 0)
        status = 3;
    if (json) {
        report_json_end(json);
        status = output_end(json) == 0 ? status : 3;
    }
    if (tsv)
        status = output_end(tsv) == 0 ? status : 3;
    return status;
}

int bench_main(const struct engine *engine, int argc, char **argv)
{
    struct arguments a = {
        .settings = {.num = 1000000,
                     .value_size = 100,
                     .threads = 1,
                     .batch = 32,
                     .seek_nexts = 10,
                     .seed = 20261130,
                     .store = {.path = "tamiz-bench",
                               .cache = UINT64_C(1) << 30,
                               .memtable = UINT64_C(64) << 20,
                               .block = 4096,
                               .filter_bits = 10,
                               .threads = 2,
                               .extra = ""}},
    };
    for (int i = 1; i < argc; i++) {
        const int at = i;
        if (strcmp(argv[i], "--help") == 0) {
            usage(engine->name);
            return 0;
        }
        if (!parse_argument(&a, argc, argv, &i)) {
            fprintf(stderr, "bench: %s: no such option, or no such value (see --help)\n", argv[at]);
            return 2;
        }
    }
    if (!a.workloads) {
        usage(engine->name);
        return 2;
    }
    if (engine->check && engine->check(a.settings.store.extra) != ENGINE_OK) {
        fprintf(stderr, "bench: %s\n", engine_error());
        return 2;
    }
    return names_known(a.workloads) ? run(engine, &a) : 2;
}
