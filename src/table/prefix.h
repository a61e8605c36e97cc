/* SPDX-License-Identifier: MIT
 *
 * Prefixes of keys, so that a filter can be asked about a range. What a filter over whole keys says
 * is of no use to a range; but where all keys of a range begin with the same bytes, a filter over
 * such beginnings is.
 *
 * A rule says how a key's prefix is found: its first N bytes, or all up to and with the first byte
 * S. A key that is shorter than N, or has no S, has none, and nothing of it goes into the filter.
 * That hides nothing, for a table is asked only where every key of the range has one and the same
 * prefix: a key that has none lies in no such range. The rule is recorded in the table; a range is
 * asked by the rule of each table, whatever the store's options say by now.
 *
 *     rule      range               asked
 *     4 bytes   [abcd, abce)        abcd
 *     4 bytes   [abcdef, abcdeg)    abcd: all of them begin so
 *     4 bytes   [abc, abd)          nothing: it spans 256 prefixes
 *     byte '/'  [a/b/, a/b0)        a/
 *     byte '/'  [ab, ac)            nothing: no separator, so that a/ and ab/ may both be in it
 *
 * Prefixes of one rule are contiguous in key order: keys with one prefix are neighbours.
 */
#ifndef TAMIZ_TABLE_PREFIX_H
#define TAMIZ_TABLE_PREFIX_H

#include "base/slice.h"
#include "tamiz/options.h"

enum { PREFIX_BYTES_MAX = 1024 };

/* Plain value. */
struct prefix_rule {
    tamiz_prefix_kind kind;
    uint32_t value; /* bytes, 1..PREFIX_BYTES_MAX; or the separator, 0..255 */
};

/* Is it a rule there can be, NONE included? */
bool prefix_rule_is_known(struct prefix_rule rule);

/* The prefix of `key`, borrowed from it. false: it has none. */
bool prefix_of(struct prefix_rule rule, struct slice key, struct slice *prefix);

/* What an ordered read is confined to: [lower, upper), each where has_. Borrowed by whoever walks.
 */
struct read_range {
    bool has_lower, has_upper;
    struct slice lower, upper;
};

static inline bool range_ends_before(const struct read_range *r, struct slice key)
{
    return r->has_upper && slice_compare(r->upper, key) <= 0;
}

static inline bool range_begins_behind(const struct read_range *r, struct slice key)
{
    return r->has_lower && slice_compare(key, r->lower) < 0;
}

/* The prefix, borrowed from the range, that every key in it has; false: there is no such one, and
 * *why (static) says so. */
bool prefix_of_range(struct prefix_rule rule, const struct read_range *range, struct slice *prefix,
                     const char **why);

#endif
