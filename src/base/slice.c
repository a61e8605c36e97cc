/* SPDX-License-Identifier: MIT */
#include "base/slice.h"

const char *slice_print(struct slice a, char *out, size_t capacity)
{
    static const char digit[] = "0123456789abcdef";
    size_t at = 0;
    for (size_t i = 0; i < a.size; i++) {
        const uint8_t c = a.data[i];
        const bool plain = c >= 0x20 && c < 0x7f && c != '\\';
        const size_t need = plain ? 1 : 4;
        if (at + need + 4 > capacity) { /* room for "..." and NUL */
            for (int dot = 0; dot < 3 && at + 1 < capacity; dot++)
                out[at++] = '.';
            break;
        }
        if (plain) {
            out[at++] = (char)c;
        } else {
            out[at++] = '\\';
            out[at++] = 'x';
            out[at++] = digit[c >> 4];
            out[at++] = digit[c & 15];
        }
    }
    if (capacity)
        out[at] = 0;
    return out;
}
