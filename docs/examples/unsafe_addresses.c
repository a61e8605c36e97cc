/* SPDX-License-Identifier: MIT
 *
 * A browser's list of unsafe addresses. The whole list is too large to ship, a filter of it is not:
 * the filter is asked on this machine, and only where it says "maybe" the server is. An address the
 * filter denies is safe for certain, and nobody was told that it was visited.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tamiz/filter.h"

enum { UNSAFE = 100000, VISITS = 200000 };

static uint64_t address_hash(const char *host, unsigned number)
{
    char text[64];
    const int size = snprintf(text, sizeof text, "https://%s%u.example/", host, number);
    return tamiz_hash(text, (size_t)size);
}

int main(void)
{
    static uint64_t hashes[UNSAFE];
    tamiz_filter_policy policy;
    tamiz_filter *filter;
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    unsigned asked = 0;
    for (unsigned i = 0; i < UNSAFE; i++)
        hashes[i] = address_hash("unsafe", i);
    if (tamiz_filter_policy_parse("fuse8", &policy) != TAMIZ_OK ||
        tamiz_filter_build(&policy, hashes, UNSAFE, &filter) != TAMIZ_OK)
        return puts(tamiz_error_detail()), 1;
    tamiz_filter_info_get(filter, &info);
    for (unsigned i = 0; i < UNSAFE; i++)
        if (!tamiz_filter_may_contain(filter, hashes[i]))
            return puts("an unsafe address was let through"), 1;
    for (unsigned i = 0; i < VISITS; i++)
        asked += tamiz_filter_may_contain(filter, address_hash("safe", i));
    printf("%u unsafe addresses in %llu KiB; of %u visits to safe ones the server was asked %u "
           "times\n",
           UNSAFE, (unsigned long long)info.bytes / 1024, VISITS, asked);
    tamiz_filter_free(filter);
    return asked < VISITS / 100 ? 0 : 1;
}
