/* SPDX-License-Identifier: MIT
 *
 * What taking built tables in costs beside putting the same keys: for each number of keys, in one
 * run, on one disk.
 *
 *     tamiz_bench_ingest DIRECTORY KEYS...
 *
 * Keys are 16 bytes and rise (the best case for putting), values are 16 bytes. Putting ends with a
 * flush, building with a sync of each table, ingesting with all of it durable.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, mkdir */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tamiz/tamiz.h"

enum { TABLES = 10000, PATH_BYTES = 600 };

struct built {
    char *paths[TABLES];
    size_t count;
};

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(tamiz_status st, const char *what)
{
    if (st == TAMIZ_OK)
        return;
    (void)fprintf(stderr, "%s: %s: %s\n", what, tamiz_status_name(st), tamiz_error_detail());
    exit(1);
}

static void key_of(unsigned long i, char key[24])
{
    (void)snprintf(key, 24, "%016lu", i);
}

static double put_all(const char *path, unsigned long n)
{
    tamiz *db;
    char key[24];
    must(tamiz_open(path, NULL, &db), "open");
    const double from = now();
    for (unsigned long i = 0; i < n; i++) {
        key_of(i, key);
        must(tamiz_put(db, key, 16, key, 16, NULL), "put");
    }
    must(tamiz_flush(db), "flush");
    const double took = now() - from;
    must(tamiz_close(db), "close");
    must(tamiz_destroy(path), "destroy");
    return took;
}

static double build_all(const char *directory, unsigned long n, struct built *built)
{
    const tamiz_options options = TAMIZ_OPTIONS_INIT;
    tamiz_table_writer *w = NULL;
    char key[24];
    const double from = now();
    for (unsigned long i = 0; i < n; i++) {
        if (!w) {
            char *path = malloc(PATH_BYTES);
            if (!path || built->count == TABLES)
                exit(1);
            (void)snprintf(path, PATH_BYTES, "%s/part-%06zu.sst", directory, built->count);
            built->paths[built->count++] = path;
            must(tamiz_table_writer_open(path, &options, &w), "table writer");
        }
        key_of(i, key);
        must(tamiz_table_writer_put(w, key, 16, key, 16), "table writer put");
        if (tamiz_table_writer_size(w) >= options.table || i + 1 == n) {
            must(tamiz_table_writer_finish(w, NULL, NULL), "table writer finish");
            w = NULL;
        }
    }
    return now() - from;
}

static double ingest_all(const char *path, const struct built *built, unsigned long n)
{
    tamiz *db;
    char key[24];
    must(tamiz_open(path, NULL, &db), "open");
    const double from = now();
    must(tamiz_ingest(db, (const char *const *)built->paths, built->count), "ingest");
    const double took = now() - from;
    for (unsigned long i = 0; i < n; i += n / 1000 + 1) {
        key_of(i, key);
        must(tamiz_exists(db, key, 16, NULL), key);
    }
    must(tamiz_close(db), "close");
    must(tamiz_destroy(path), "destroy");
    return took;
}

static void run(const char *directory, unsigned long n)
{
    struct built built = {.count = 0};
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/store", directory);
    const double put = put_all(path, n);
    const double build = build_all(directory, n, &built);
    const double ingest = ingest_all(path, &built, n);
    (void)printf("| %lu | %.2f | %.2f | %.3f | %zu | 1/%.0f |\n", n, put, build, ingest,
                 built.count, put / ingest);
    (void)fflush(stdout);
    for (size_t i = 0; i < built.count; i++) {
        (void)unlink(built.paths[i]);
        free(built.paths[i]);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3 || (mkdir(argv[1], 0700) != 0 && access(argv[1], W_OK) != 0)) {
        (void)fprintf(stderr, "usage: tamiz_bench_ingest DIRECTORY KEYS...\n");
        return 2;
    }
    (void)printf("| keys | put and flush | build | ingest | tables | ingest of put |\n"
                 "| --- | --- | --- | --- | --- | --- |\n");
    for (int i = 2; i < argc; i++)
        run(argv[1], strtoul(argv[i], NULL, 10));
    return 0;
}
