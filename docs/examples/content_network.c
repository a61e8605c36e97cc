/* SPDX-License-Identifier: MIT
 *
 * A content network that caches only what was asked twice. Three quarters of all objects are asked
 * for once and never again; keeping those pushes out what is wanted. A filter of what was seen
 * before answers "first time?" in a few bits an object; being wrong costs one needless entry.
 */
#include <stdio.h>

#include "tamiz/filter.h"

enum { REQUESTS = 100000, ONCE = 3 }; /* of every 4 requests, so many are for a new object */

int main(void)
{
    tamiz_filter_policy policy;
    tamiz_filter *seen;
    unsigned kept = 0, twice = 0, fresh = 0;
    if (tamiz_filter_policy_parse("bloom:fpr=0.01", &policy) != TAMIZ_OK ||
        tamiz_filter_new(&policy, REQUESTS, &seen) != TAMIZ_OK)
        return puts(tamiz_error_detail()), 1;
    for (unsigned i = 0; i < REQUESTS; i++) {
        const bool is_new = i % 4 < ONCE;
        char url[48];
        const int size = snprintf(url, sizeof url, is_new ? "/once/%u.jpg" : "/popular/%u.jpg",
                                  is_new ? i : i % 1000);
        const uint64_t hash = tamiz_hash(url, (size_t)size);
        fresh += is_new;
        if (tamiz_filter_may_contain(seen, hash)) {
            kept += is_new; /* a false positive: kept though it is new */
            twice += !is_new;
        } else if (tamiz_filter_add(seen, hash) != TAMIZ_OK) {
            return puts(tamiz_error_detail()), 1;
        }
    }
    printf("%u requests for new objects, %u kept by mistake; %u requests for popular ones that may "
           "be kept\n",
           fresh, kept, twice);
    tamiz_filter_free(seen);
    return kept < fresh / 50 && twice > REQUESTS / 5 ? 0 : 1;
}
