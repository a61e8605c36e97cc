/* SPDX-License-Identifier: MIT */
#include "table/alphabet.h"

#include "support/test.h"

static uint64_t eight(const char *text)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < 8; i++)
        bytes = bytes << 8 | (uint8_t)text[i];
    return bytes;
}

static struct alphabet learnt(const char *a, const char *b)
{
    struct alphabet alphabet = ALPHABET_EMPTY;
    alphabet_learn(&alphabet, eight(a));
    alphabet_learn(&alphabet, eight(b));
    return alphabet;
}

static void decimal_numbers_are_as_far_apart_as_they_are(void **state)
{
    (void)state;
    const struct alphabet digits = learnt("00120000", "00980000");
    const uint64_t before = eight("00010000"), behind = eight("00020000");
    assert_int_equal(alphabet_part(digits, before, eight("00010000"), behind), 0);
    assert_int_equal(alphabet_part(digits, before, eight("00012500"), behind), PART_WHOLE / 4);
    assert_int_equal(alphabet_part(digits, before, eight("00017500"), behind), PART_WHOLE / 4 * 3);
    assert_int_equal(alphabet_part(digits, before, behind, behind), PART_WHOLE);
    /* The whole way is more than the product has room for. */
    const uint32_t half =
        alphabet_part(digits, eight("00000000"), eight("50000000"), eight("99999999"));
    assert_in_range(half, PART_WHOLE / 2 - 1, PART_WHOLE / 2 + 1);
}

static void no_key_is_outside_of_the_whole(void **state)
{
    (void)state;
    struct test_random random = test_random_start(31);
    for (int i = 0; i < 100000; i++) {
        struct alphabet a = ALPHABET_EMPTY;
        uint64_t word[3];
        for (int j = 0; j < 3; j++) {
            word[j] = test_random_u64(&random) >> test_random_below(&random, 64);
            if (i % 2)
                alphabet_learn(&a, word[j]);
        }
        const uint64_t before = word[0] < word[1] ? word[0] : word[1];
        const uint64_t behind = word[0] < word[1] ? word[1] : word[0];
        assert_in_range(alphabet_part(a, before, word[2], behind), 0, PART_WHOLE);
    }
}

static void without_letters_every_part_is_none(void **state)
{
    (void)state;
    assert_int_equal(alphabet_part(ALPHABET_EMPTY, 1, 2, 3), 0);
    assert_int_equal(alphabet_part(learnt("aaaaaaaa", "aaaaaaaa"), 1, 2, 3), 0);
    /* Zeros behind a short fence are no letters. */
    assert_int_equal(learnt("ab\0\0\0\0\0\0", "ac\0\0\0\0\0\0").least, 'a');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decimal_numbers_are_as_far_apart_as_they_are),
        cmocka_unit_test(no_key_is_outside_of_the_whole),
        cmocka_unit_test(without_letters_every_part_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
