/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: any text as options, as a filter's policy. What is accepted is printed so that
 * it is read back as the same; what is refused changed nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "tamiz/tamiz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool what)
{
    if (!what)
        abort();
}

static char *print(const tamiz_options *o)
{
    char *text = NULL;
    must(tamiz_options_text(o, &text) == TAMIZ_OK);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT, again = TAMIZ_OPTIONS_INIT;
    tamiz_filter_policy policy;
    char *text = malloc(size + 1);
    must(text != NULL);
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    char *before = print(&o);
    const tamiz_status st = tamiz_options_set(&o, text);
    char *after = print(&o);
    if (st == TAMIZ_OK) {
        must(tamiz_options_set(&again, after) == TAMIZ_OK);
        char *third = print(&again);
        must(strcmp(after, third) == 0);
        tamiz_free(third);
    } else {
        must(strcmp(before, after) == 0 && *tamiz_error_detail());
    }
    if (tamiz_filter_policy_parse(text, &policy) == TAMIZ_OK) {
        tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
        (void)tamiz_filter_plan(&policy, size, &info);
    }
    tamiz_free(before);
    tamiz_free(after);
    free(text);
    return 0;
}
