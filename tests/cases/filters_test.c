/* SPDX-License-Identifier: MIT
 *
 * R15, R20, R21, R23: filters that are huge, tiny, portable, damaged.
 *
 * R15's largest sizes need gigabytes and run in the long form. The sizing is pure arithmetic and is
 * asked for any n.
 *
 * R20: the hash and the formats read bytes as unsigned and little-endian everywhere; golden vectors
 * of them are in filter_laws, table_golden, log_log and version_manifest, and
 * tools/test-portability.sh runs those with signed and unsigned char, as 32-bit and as big-endian.
 * Here is the part that needs one build: every length and odd tail bytes at every alignment.
 */
#include "cases/kit.h"

#include "table/repair.h"

static const char *const kinds[] = {"bloom",  "blocked", "split", "ribbon", "bumped", "fuse",
                                    "fuse16", "fuse4",   "xor8",  "xor16",  "cuckoo"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static tamiz_filter_policy policy_of(const char *text)
{
    tamiz_filter_policy p;
    OK(tamiz_filter_policy_parse(text, &p));
    return p;
}

/* Builds, and where it was built finds every hash, also after a round through bytes. */
static bool build_and_find(const char *kind, const uint64_t *hashes, size_t n)
{
    const tamiz_filter_policy p = policy_of(kind);
    tamiz_filter *f = NULL, *again = NULL;
    void *bytes = NULL;
    size_t size = 0;
    const tamiz_status st = tamiz_filter_build(&p, hashes, n, &f);
    if (st == TAMIZ_NOT_SUPPORTED)
        return false; /* "no filter", within a bounded number of tries */
    assert_public(st, TAMIZ_OK);
    OK(tamiz_filter_serialize(f, &bytes, &size));
    OK(tamiz_filter_deserialize(bytes, size, &again));
    for (size_t i = 0; i < n; i++) {
        assert_true(tamiz_filter_may_contain(f, hashes[i]));
        assert_true(tamiz_filter_may_contain(again, hashes[i]));
    }
    tamiz_free(bytes);
    tamiz_filter_free(f);
    tamiz_filter_free(again);
    return true;
}

/* R21: static-filter construction never ends on repeated or tiny key sets (xorf issue 25). */
static void R21_tiny_and_repeated_sets_are_built(void **state)
{
    (void)state;
    static uint64_t hashes[1000];
    for (int kind = 0; kind < KINDS; kind++) {
        assert_true(build_and_find(kinds[kind], hashes, 0));
        for (size_t n = 1; n <= 1000; n += 111) { /* {x} and {x} many times */
            for (size_t i = 0; i < n; i++)
                hashes[i] = UINT64_C(0x9e3779b97f4a7c15);
            assert_true(build_and_find(kinds[kind], hashes, n));
        }
        for (size_t i = 0; i < 1000; i++)
            hashes[i] = i & 1 ? 1 : UINT64_MAX;
        assert_true(build_and_find(kinds[kind], hashes, 1000));
        hashes[0] = UINT64_C(0xef9bddc5166c081c);
        hashes[1] = UINT64_C(0x33bf87adaa46dcfc);
        assert_true(build_and_find(kinds[kind], hashes, 2));
        for (size_t n = 3; n <= 64; n++) {
            for (size_t i = 0; i < n; i++)
                hashes[i] = i + 1;
            (void)build_and_find(kinds[kind], hashes, n); /* no hashes at all: may be refused */
            for (size_t i = 0; i < n; i++)
                hashes[i] = tamiz_hash(&i, sizeof i);
            assert_true(build_and_find(kinds[kind], hashes, n));
        }
    }
}

/* A hash function gone wrong: constant high bits, only the high or the low half used. */
static void R21_a_poor_hash_ends_the_building_soon(void **state)
{
    (void)state;
    static uint64_t hashes[4000];
    for (int kind = 0; kind < KINDS; kind++)
        for (int shape = 0; shape < 4; shape++) {
            for (uint64_t i = 0; i < 4000; i++)
                hashes[i] = shape == 0   ? i
                            : shape == 1 ? i << 32
                            : shape == 2 ? i << 52
                                         : (i & 1) << 63;
            (void)build_and_find(kinds[kind], hashes, 4000);
        }
}

static void R21_a_store_with_one_key_or_only_tombstones_has_tables(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        char options[100];
        tamiz_snapshot *s[300];
        (void)snprintf(options, sizeof options, "threads=0 compaction=off filter=%s", kinds[kind]);
        start_over();
        open_with(options);
        put("one", "1");
        flush();
        del("two");
        flush();
        for (int i = 0; i < 300; i++) {
            put("same", v(i, 8));
            s[i] = snap();
        }
        flush();
        expect("same", v(299, 8));
        for (int i = 0; i < 300; i++) {
            expect_at("same", v(i, 8), s[i]);
            tamiz_snapshot_release(s[i]);
        }
        compact();
        expect("one", "1");
        expect("two", NULL);
        del("one"), del("same");
        compact(); /* its output is empty */
        assert_int_equal(scan_count(NULL), 0);
        close_it();
    }
}

/* R15: a filter with more than 2^32 bits wraps (RedisBloom issue 9). */
static void R15_sizing_is_64_bit_or_refused(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1,
                                      1000000,
                                      350000000,
                                      UINT32_MAX,
                                      UINT64_C(1) << 32,
                                      UINT64_C(10000000000),
                                      UINT64_C(1) << 60,
                                      UINT64_MAX};
    for (int kind = 0; kind < KINDS; kind++) {
        const tamiz_filter_policy p = policy_of(kinds[kind]);
        uint64_t before = 0;
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
            const tamiz_status st = tamiz_filter_plan(&p, counts[i], &info);
            if (st != TAMIZ_OK) {
                assert_true(counts[i] >= UINT64_C(350000000));
                assert_true(st == TAMIZ_INVALID_ARGUMENT || st == TAMIZ_NOT_SUPPORTED);
                continue;
            }
            assert_true(info.bytes >= before);
            if (counts[i] >= 1000000) {
                /* At least half a byte a key, at most 8: no wrapped number is. */
                assert_true(info.bytes >= counts[i] / 4);
                assert_true(info.bytes / 16 <= counts[i]);
            }
            before = info.bytes;
        }
    }
}

/* The real thing: more than 2^32 bits, sampled. Half a gigabyte and more: long form. */
static void R15_more_than_four_gigabits_answer_rightly(void **state)
{
    (void)state;
    if (!test_long()) {
        print_message("long form only\n");
        return;
    }
    static const char *const growing[] = {"bloom:12"};
    const tamiz_filter_policy p = policy_of(growing[0]);
    tamiz_filter *f = NULL;
    OK(tamiz_filter_new(&p, 400000000, &f)); /* 4.8e9 bits */
    for (uint64_t i = 0; i < 1000000; i++)
        OK(tamiz_filter_add(f, tamiz_hash(&i, sizeof i)));
    size_t wrong = 0;
    for (uint64_t i = 0; i < 3000000; i++) {
        const bool maybe = tamiz_filter_may_contain(f, tamiz_hash(&i, sizeof i));
        assert_true(maybe || i >= 1000000);
        wrong += i >= 1000000 && maybe;
    }
    print_message("%zu false positives in 2000000\n", wrong);
    assert_true(wrong < 100);
    tamiz_filter_free(f);
}

/* R20: the same key hashes differently where char is signed (LevelDB issue 243). */
static void R20_all_lengths_and_tails_hash_the_same_anywhere(void **state)
{
    (void)state;
    static const uint8_t tails[] = {0x00, 0x7f, 0x80, 0x81, 0xfe, 0xff};
    uint8_t room[80];
    uint64_t all = 0;
    for (size_t length = 0; length <= 64; length++)
        for (size_t t = 0; t < sizeof tails; t++) {
            uint64_t first = 0;
            for (size_t offset = 0; offset < 8; offset++) {
                memset(room, 0x55, sizeof room);
                for (size_t i = 0; i < length; i++)
                    room[offset + i] = i + 3 >= length ? tails[t] : (uint8_t)(i * 37);
                const uint64_t hash = tamiz_hash(room + offset, length);
                if (offset == 0)
                    first = hash;
                assert_true(hash == first);
            }
            all = all * 31 + first;
        }
    /* On a machine with signed char and little-endian words this came out: */
    print_message("sum %016llx\n", (unsigned long long)all);
    assert_true(all == UINT64_C(0xab7c461d6bf4191c));
}

static void R20_keys_with_odd_tails_are_found_under_every_filter(void **state)
{
    (void)state;
    static const uint8_t tails[] = {0x00, 0x7f, 0x80, 0x81, 0xfe, 0xff};
    for (int kind = 0; kind < KINDS; kind++) {
        char options[100];
        (void)snprintf(options, sizeof options, "threads=0 filter=%s", kinds[kind]);
        start_over();
        open_with(options);
        for (int stage = 0; stage < 3; stage++) {
            for (size_t length = 0; length <= 17; length++)
                for (size_t t = 0; t < sizeof tails; t++) {
                    uint8_t key[18];
                    memset(key, 'k', sizeof key);
                    for (size_t i = 0; i < 3 && i < length; i++)
                        key[length - 1 - i] = tails[(t + i) % sizeof tails];
                    if (stage == 0)
                        OK(tamiz_put(db, key, length, "1", 1, NULL));
                    OK(tamiz_exists(db, key, length, NULL));
                }
            if (stage == 0)
                flush();
            else
                reopen(options);
        }
        close_it();
    }
}

/* Where the filter of a table lies. */
static struct extent filter_of(const struct buf *table)
{
    struct test_op t;
    struct table_footer footer;
    test_op_init(&t);
    assert_status(&t.op,
                  table_footer_decode(
                      &t.op,
                      slice_of(table->data + table->size - TABLE_FOOTER_SIZE, TABLE_FOOTER_SIZE),
                      table->size, "", &footer),
                  TAMIZ_OK);
    return footer.filter;
}

enum { MEMBERS = 200 };

static void expect_no_denial(const char *options)
{
    open_with(options);
    for (int i = 0; i < MEMBERS; i++) {
        const tamiz_status st = tamiz_exists(db, k(i), 9, NULL);
        if (st != TAMIZ_OK)
            print_error("%s: %s\n", k(i), tamiz_status_name(st));
        assert_true(st == TAMIZ_OK || st == TAMIZ_CORRUPTION);
    }
    assert_int_equal(scan_count(NULL), MEMBERS);
    close_it();
}

/* R23: a flipped filter bit makes a live key invisible (cqlite issue 1398). */
static void R23_no_damage_to_a_filter_hides_a_key(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        char options[120], path[80];
        start_over();
        (void)snprintf(options, sizeof options, "threads=0 cache=0 filter=%s", kinds[kind]);
        open_with(options);
        for (int i = 0; i < MEMBERS; i++)
            put(k(i), "1");
        compact();
        close_it();
        (void)snprintf(path, sizeof path, "%s", path_of(FILE_TABLE, false));
        (void)snprintf(options, sizeof options, "threads=0 cache=0 read_only=true filter=%s",
                       kinds[kind]);
        struct buf good = file_get(path);
        const struct extent e = filter_of(&good);
        assert_true(e.size > 0);
        struct buf bad = buf_init(&alloc_libc);
        for (uint64_t i = 0; i < e.size + BLOCK_TRAILER_SIZE; i += test_long() ? 1 : 17) {
            buf_clear(&bad);
            buf_append(&bad, good.data, good.size);
            bad.data[e.offset + i] ^= (uint8_t)(1u << (i & 7));
            file_set(path, bad.data, bad.size);
            expect_no_denial(options);
        }
        for (int how = 0; how < 3; how++) {
            buf_clear(&bad);
            buf_append(&bad, good.data, good.size);
            memset(bad.data + e.offset, how == 0 ? 0 : how == 1 ? 0xff : 'J', (size_t)e.size);
            file_set(path, bad.data, bad.size);
            expect_no_denial(options);
        }
        /* The attacker's form: fields of the filter changed and its checksum made right. Then
         * nobody can know; but nothing may crash, and other bytes are never shown. */
        for (uint64_t i = 0; i < 40 && i < e.size; i++) {
            buf_clear(&bad);
            buf_append(&bad, good.data, good.size);
            bad.data[e.offset + i] = (uint8_t)(i & 1 ? 0xff : 0);
            struct test_op t;
            test_op_init(&t);
            repair_table(&t.op, bad.data, bad.size, &alloc_libc);
            file_set(path, bad.data, bad.size);
            open_with(options);
            for (int n = 0; n < MEMBERS; n++)
                if (tamiz_exists(db, k(n), 9, NULL) == TAMIZ_OK)
                    expect(k(n), "1");
            tamiz_report report = TAMIZ_REPORT_INIT;
            (void)tamiz_verify(db, &report);
            assert_int_equal(scan_count(NULL), MEMBERS);
            close_it();
        }
        file_set(path, good.data, good.size);
        expect_no_denial(options);
        buf_free(&good);
        buf_free(&bad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(R15_sizing_is_64_bit_or_refused),
        CASE(R15_more_than_four_gigabits_answer_rightly),
        CASE(R20_all_lengths_and_tails_hash_the_same_anywhere),
        CASE(R20_keys_with_odd_tails_are_found_under_every_filter),
        CASE(R21_tiny_and_repeated_sets_are_built),
        CASE(R21_a_poor_hash_ends_the_building_soon),
        CASE(R21_a_store_with_one_key_or_only_tombstones_has_tables),
        CASE(R23_no_damage_to_a_filter_hides_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
