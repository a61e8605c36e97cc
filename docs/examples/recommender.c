/* SPDX-License-Identifier: MIT
 *
 * A recommender that never shows the same twice. Each reader has a filter of the stories that were
 * shown; what it says "maybe" of is skipped. Being wrong hides one story in a hundred, which nobody
 * misses; showing one again cannot happen. The filter grows with the reader (scalable), and is
 * stored as a value.
 */
#include <stdio.h>

#include "tamiz/filter.h"

enum { STORIES = 20000, DAYS = 50 };

int main(void)
{
    static bool shown[STORIES];
    tamiz_filter_policy policy;
    tamiz_filter *history;
    void *bytes = NULL;
    size_t size = 0;
    unsigned count = 0, hidden = 0;
    if (tamiz_filter_policy_parse("scalable:fpr=0.01", &policy) != TAMIZ_OK ||
        tamiz_filter_new(&policy, 100, &history) != TAMIZ_OK)
        return puts(tamiz_error_detail()), 1;
    for (unsigned day = 0; day < DAYS; day++) {
        for (unsigned i = 0; i < 100; i++) { /* candidates of the day; many come again */
            const unsigned story = (day * 61 + i * 37) % STORIES;
            const uint64_t hash = tamiz_hash(&story, sizeof story);
            if (tamiz_filter_may_contain(history, hash)) {
                hidden += !shown[story];
                continue;
            }
            if (shown[story])
                return puts("a story was shown twice"), 1;
            shown[story] = true;
            count++;
            if (tamiz_filter_add(history, hash) != TAMIZ_OK)
                return puts(tamiz_error_detail()), 1;
        }
        /* Between days it is a value in a store, or a file. */
        if (tamiz_filter_serialize(history, &bytes, &size) != TAMIZ_OK)
            return puts(tamiz_error_detail()), 1;
        tamiz_filter_free(history);
        const tamiz_status st = tamiz_filter_deserialize(bytes, size, &history);
        tamiz_free(bytes);
        if (st != TAMIZ_OK)
            return puts(tamiz_error_detail()), 1;
    }
    printf("%u stories shown, none twice; %u hidden by mistake; the history takes %zu bytes\n",
           count, hidden, size);
    tamiz_filter_free(history);
    return hidden <= count / 50 ? 0 : 1;
}
