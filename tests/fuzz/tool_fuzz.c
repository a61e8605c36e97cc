/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: what a person types to the tool: keys with escapes or in hex, numbers. What is
 * accepted is shown so that it is read back as the same bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool what)
{
    if (!what)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *typed = malloc(size + 1);
    uint64_t n;
    double x;
    must(typed != NULL);
    if (size)
        memcpy(typed, data, size);
    typed[size] = 0;
    for (int hex = 0; hex < 2; hex++) {
        struct text bytes = {0}, why = {0}, shown = {0}, again = {0};
        if (bytes_parse(typed, hex, &bytes, &why)) {
            bytes_show(&shown, bytes.data, bytes.size, hex);
            must(bytes_parse(shown.size ? shown.data : "", hex, &again, NULL));
            must(again.size == bytes.size &&
                 (bytes.size == 0 || memcmp(again.data, bytes.data, bytes.size) == 0));
        } else {
            must(why.size > 0);
        }
        text_free(&bytes);
        text_free(&why);
        text_free(&shown);
        text_free(&again);
    }
    (void)number_parse(typed, &n);
    (void)real_parse(typed, &x);
    free(typed);
    return 0;
}
