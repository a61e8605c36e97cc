/* SPDX-License-Identifier: MIT */
#include "table/prefix.h"

#include <string.h>

bool prefix_rule_is_known(struct prefix_rule rule)
{
    switch (rule.kind) {
    case TAMIZ_PREFIX_NONE: return true;
    case TAMIZ_PREFIX_BYTES: return rule.value >= 1 && rule.value <= PREFIX_BYTES_MAX;
    case TAMIZ_PREFIX_SEPARATOR: return rule.value <= UINT8_MAX;
    }
    return false;
}

/* Bytes of the prefix of `key`; 0: it has none. */
static size_t prefix_size(struct prefix_rule rule, struct slice key)
{
    if (rule.kind == TAMIZ_PREFIX_BYTES)
        return key.size >= rule.value ? rule.value : 0;
    if (rule.kind != TAMIZ_PREFIX_SEPARATOR || key.size == 0)
        return 0;
    const uint8_t *at = memchr(key.data, (int)rule.value, key.size);
    return at ? (size_t)(at - key.data) + 1 : 0;
}

bool prefix_of(struct prefix_rule rule, struct slice key, struct slice *prefix)
{
    *prefix = slice_of(key.data, prefix_size(rule, key));
    return prefix->size > 0;
}

/* Does every key from `prefix` on and below the range's end begin with it? The first key above them
 * that does not is the prefix cut behind its last byte that is not 0xff, and that byte raised by
 * one: is the end above it? */
static bool holds_to_the_end(struct slice prefix, const struct read_range *range)
{
    size_t size = prefix.size;
    while (size && prefix.data[size - 1] == 0xff)
        size--;
    if (size == 0)
        return true; /* no key is above those that begin so */
    if (!range->has_upper)
        return false;
    const struct slice upper = range->upper, head = slice_of(prefix.data, size - 1);
    const size_t most = upper.size < head.size ? upper.size : head.size;
    const int order = slice_compare(slice_of(upper.data, most), head);
    if (order != 0 || upper.size <= head.size)
        return order <= 0;
    const unsigned raised = prefix.data[size - 1] + 1u, found = upper.data[size - 1];
    return found < raised || (found == raised && upper.size == size);
}

bool prefix_of_range(struct prefix_rule rule, const struct read_range *range, struct slice *prefix,
                     const char **why)
{
    *prefix = slice_of(NULL, 0);
    if (!range->has_lower)
        *why = "the range has no lower bound";
    else if (!prefix_of(rule, range->lower, prefix))
        *why = rule.kind == TAMIZ_PREFIX_BYTES ? "the range's keys begin with fewer bytes in common"
                                               : "what the range begins with has no separator";
    else if (!holds_to_the_end(*prefix, range))
        *why = "the range spans more than one prefix";
    else
        return true;
    *prefix = slice_of(NULL, 0);
    return false;
}
