/* SPDX-License-Identifier: MIT
 *
 * Filters with no store, from libtamiz-filter alone.
 */
#include <tamiz/filter.h>

#include <stdio.h>

int main(void)
{
    enum { KEYS = 1000 };
    uint64_t hashes[KEYS];
    tamiz_filter_policy policy;
    tamiz_filter *filter = NULL;
    for (uint64_t i = 0; i < KEYS; i++)
        hashes[i] = tamiz_hash(&i, sizeof i);
    if (tamiz_filter_policy_parse("blocked:10", &policy) != TAMIZ_OK ||
        tamiz_filter_build(&policy, hashes, KEYS, &filter) != TAMIZ_OK) {
        (void)fprintf(stderr, "%s\n", tamiz_error_detail());
        return 1;
    }
    int denied = 0;
    for (int i = 0; i < KEYS; i++)
        denied += !tamiz_filter_may_contain(filter, hashes[i]);
    tamiz_filter_free(filter);
    return denied != 0;
}
