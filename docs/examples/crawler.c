/* SPDX-License-Identifier: MIT
 *
 * A crawler that remembers what it saw. The store has the truth, its filters answer nearly always:
 * most links found are either new (the filters say no, and no disk is read) or seen (one read).
 * What was seen survives the end of the program.
 */
#include <stdio.h>
#include <string.h>

#include "tamiz/tamiz.h"

enum { LINKS = 30000, PAGES = 12000 };

int main(void)
{
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    tamiz_stats stats = TAMIZ_STATS_INIT;
    tamiz *seen;
    unsigned fetched = 0, known = 0;
    if (tamiz_options_set(&options, "memtable=64KiB filter=blocked:10 error_if_exists=true") !=
            TAMIZ_OK ||
        tamiz_open("crawler.store", &options, &seen) != TAMIZ_OK)
        return puts(tamiz_error_detail()), 1;
    for (unsigned i = 0; i < LINKS; i++) {
        char url[64];
        const int size = snprintf(url, sizeof url, "https://example/page/%u",
                                  (unsigned)((uint64_t)i * 2654435761u % PAGES));
        const tamiz_status st = tamiz_exists(seen, url, (size_t)size, NULL);
        if (st == TAMIZ_OK) {
            known++;
            continue;
        }
        fetched++;
        if (st < 0 || tamiz_put(seen, url, (size_t)size, "fetched", 7, NULL) != TAMIZ_OK)
            return puts(tamiz_error_detail()), 1;
    }
    if (tamiz_stats_get(seen, &stats) != TAMIZ_OK)
        return puts(tamiz_error_detail()), 1;
    printf("%u links: %u fetched, %u known already; %llu looks into tables were spared by filters, "
           "%llu were wasted\n",
           LINKS, fetched, known, (unsigned long long)stats.total.filter_negatives,
           (unsigned long long)stats.total.filter_false_positives);
    if (tamiz_close(seen) != TAMIZ_OK || tamiz_destroy("crawler.store") != TAMIZ_OK)
        return puts(tamiz_error_detail()), 1;
    return fetched == PAGES && known == LINKS - PAGES ? 0 : 1;
}
