/* SPDX-License-Identifier: MIT */
#include "base/key.h"

#include <assert.h>

size_t key_separator(struct slice a, struct slice b, uint8_t *out)
{
    assert(slice_compare(a, b) < 0);
    const size_t same = slice_common_prefix(a, b);
    /* The first differing byte of `a`, one higher, if that stays below `b` and shortens; else `a`
     * itself. */
    if (same + 1 < a.size && a.data[same] != 0xff) {
        const uint8_t next = (uint8_t)(a.data[same] + 1);
        const bool below =
            same < b.size && (next < b.data[same] || (next == b.data[same] && same + 1 < b.size));
        if (below) {
            memcpy(out, a.data, same);
            out[same] = next;
            return same + 1;
        }
    }
    if (a.size)
        memcpy(out, a.data, a.size);
    return a.size;
}

const uint8_t *keyspace_name_fault(struct slice name)
{
    for (size_t i = 0; i < name.size; i++) {
        const uint8_t c = name.data[i];
        if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
            return &name.data[i];
    }
    return NULL;
}

bool keyspace_name_is_proper(struct slice name)
{
    return name.size > 0 && name.size <= KEYSPACE_NAME_MAX && !keyspace_name_fault(name);
}
