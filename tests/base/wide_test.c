/* SPDX-License-Identifier: MIT
 *
 * The 128 bits of machines that have no such type say what those of the compiler say.
 */
#define TAMIZ_NO_INT128
#include "base/wide.h"

#include "support/test.h"

#if defined(__SIZEOF_INT128__)
__extension__ typedef unsigned __int128 native;

static bool same(struct wide w, native n)
{
    return w.low == (uint64_t)n && w.high == (uint64_t)(n >> 64);
}

static void halves_say_what_the_compilers_type_says(void **state)
{
    (void)state;
    struct test_random r = test_random_start(1);
    static const uint64_t edges[] = {
        0, 1, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX, UINT64_MAX - 1};
    for (int i = 0; i < 20000; i++) {
        const uint64_t a = i < 36 ? edges[i / 6] : test_random_u64(&r);
        const uint64_t b = i < 36 ? edges[i % 6] : test_random_u64(&r);
        const native both = (native)b << 64 | a;
        const unsigned shift = (unsigned)i % 128;
        assert_true(same(wide_product(a, b), (native)a * b));
        assert_true(same(wide_left((struct wide){a, b}, shift), both << shift));
        assert_true(same(wide_right((struct wide){a, b}, shift), both >> shift));
    }
}
#endif

static void products_are_known(void **state)
{
    (void)state;
    const struct wide w = wide_product(UINT64_MAX, UINT64_MAX);
    assert_true(w.low == 1 && w.high == UINT64_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#if defined(__SIZEOF_INT128__)
        cmocka_unit_test(halves_say_what_the_compilers_type_says),
#endif
        cmocka_unit_test(products_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
