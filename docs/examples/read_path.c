/* SPDX-License-Identifier: MIT
 *
 * The key-value read path itself: the same absent keys asked for with filters and without, and one
 * read explained step by step.
 */
#include <stdio.h>

#include "tamiz/tamiz.h"

enum { KEYS = 20000 };

/* Device reads of data for KEYS absent keys. */
static unsigned long long ask(tamiz *db, bool use_filters)
{
    tamiz_stats before = TAMIZ_STATS_INIT, after = TAMIZ_STATS_INIT;
    tamiz_read_options options = TAMIZ_READ_OPTIONS_INIT;
    options.use_filters = use_filters;
    (void)tamiz_stats_get(db, &before);
    for (unsigned i = 0; i < KEYS; i++) {
        char key[16];
        const int size = snprintf(key, sizeof key, "%08u", 2 * (i * 7919u % KEYS) + 1);
        if (tamiz_exists(db, key, (size_t)size, &options) != TAMIZ_NOT_FOUND)
            return 0;
    }
    (void)tamiz_stats_get(db, &after);
    return (unsigned long long)(after.total.device_reads - before.total.device_reads);
}

int main(void)
{
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    tamiz *db;
    char *story = NULL;
    if (tamiz_options_set(&options, "memtable=64KiB cache=64KiB threads=0 error_if_exists=true") !=
            TAMIZ_OK ||
        tamiz_open("read_path.store", &options, &db) != TAMIZ_OK)
        return puts(tamiz_error_detail()), 1;
    for (unsigned i = 0; i < KEYS; i++) {
        char key[16];
        const int size = snprintf(key, sizeof key, "%08u", 2 * (i * 7919u % KEYS));
        if (tamiz_put(db, key, (size_t)size, "a value", 7, NULL) != TAMIZ_OK)
            return puts(tamiz_error_detail()), 1;
    }
    if (tamiz_flush(db) != TAMIZ_OK || tamiz_explain(db, "00000777", 8, NULL, &story) != TAMIZ_OK)
        return puts(tamiz_error_detail()), 1;
    fputs(story, stdout);
    tamiz_free(story);
    const unsigned long long with = ask(db, true), without = ask(db, false);
    printf("%u absent keys: %llu device reads with filters, %llu without\n", KEYS, with, without);
    if (tamiz_close(db) != TAMIZ_OK || tamiz_destroy("read_path.store") != TAMIZ_OK)
        return puts(tamiz_error_detail()), 1;
    return with * 10 < without ? 0 : 1;
}
