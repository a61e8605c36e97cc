/* SPDX-License-Identifier: MIT
 *
 * The law of every encoder: the order of the bytes is the order of the values, both ways round, and
 * the bytes come back as the value. Asked of all pairs of awkward values and of random ones.
 */
#include "tamiz/encode.h"

#include <math.h>

#include "base/slice.h"
#include "support/test.h"

/* ---- one value of any type ---- */

enum type { U8, U32, U64, I32, I64, DOUBLE, BYTES, TYPES };

struct value {
    uint64_t u;
    int64_t i;
    double d;
    uint8_t bytes[12];
    size_t size;
};

static void encode(tamiz_encoder *e, enum type type, const struct value *v, tamiz_order order)
{
    switch (type) {
    case U8: tamiz_encode_u8(e, (uint8_t)v->u, order); return;
    case U32: tamiz_encode_u32(e, (uint32_t)v->u, order); return;
    case U64: tamiz_encode_u64(e, v->u, order); return;
    case I32: tamiz_encode_i32(e, (int32_t)v->i, order); return;
    case I64: tamiz_encode_i64(e, v->i, order); return;
    case DOUBLE: tamiz_encode_double(e, v->d, order); return;
    case BYTES: tamiz_encode_bytes(e, v->bytes, v->size, order); return;
    case TYPES: break;
    }
}

static tamiz_status decode(tamiz_decoder *d, enum type type, struct value *v, tamiz_order order)
{
    uint8_t u8;
    uint32_t u32;
    int32_t i32;
    tamiz_status st = TAMIZ_INVALID_ARGUMENT;
    *v = (struct value){0};
    switch (type) {
    case U8:
        st = tamiz_decode_u8(d, &u8, order);
        v->u = u8;
        break;
    case U32:
        st = tamiz_decode_u32(d, &u32, order);
        v->u = u32;
        break;
    case U64: st = tamiz_decode_u64(d, &v->u, order); break;
    case I32:
        st = tamiz_decode_i32(d, &i32, order);
        v->i = i32;
        break;
    case I64: st = tamiz_decode_i64(d, &v->i, order); break;
    case DOUBLE: st = tamiz_decode_double(d, &v->d, order); break;
    case BYTES: st = tamiz_decode_bytes(d, v->bytes, sizeof v->bytes, &v->size, order); break;
    case TYPES: break;
    }
    return st;
}

/* -0.0 before +0.0, NaN last and all alike. */
static int compare_doubles(double a, double b)
{
    if (isnan(a) || isnan(b))
        return (isnan(a) != 0) - (isnan(b) != 0);
    if (a == 0 && b == 0)
        return (signbit(b) != 0) - (signbit(a) != 0);
    return (a > b) - (a < b);
}

static int compare(enum type type, const struct value *a, const struct value *b)
{
    switch (type) {
    case U8:
    case U32:
    case U64: return (a->u > b->u) - (a->u < b->u);
    case I32:
    case I64: return (a->i > b->i) - (a->i < b->i);
    case DOUBLE: return compare_doubles(a->d, b->d);
    case BYTES: return slice_compare(slice_of(a->bytes, a->size), slice_of(b->bytes, b->size));
    case TYPES: break;
    }
    return 0;
}

/* Values near the places where orders break, or anything. */
static struct value any_value(struct test_random *r, enum type type)
{
    static const double awkward[] = {0.0, -0.0, 1, -1, 5e-324, -5e-324, 1.7976931348623157e308};
    struct value v = {0};
    uint64_t bits = test_random_u64(r);
    if (test_random_below(r, 2))
        bits = (UINT64_C(1) << test_random_below(r, 64)) - test_random_below(r, 3) + 1;
    v.u = type == U8 ? (uint8_t)bits : type == U32 ? (uint32_t)bits : bits;
    memcpy(&v.i, &bits, sizeof bits);
    if (type == I32)
        v.i = (int32_t)(uint32_t)bits;
    memcpy(&v.d, &bits, sizeof bits);
    if (test_random_below(r, 3) == 0)
        v.d = awkward[test_random_below(r, sizeof awkward / sizeof *awkward)];
    if (test_random_below(r, 20) == 0)
        v.d = test_random_below(r, 2) ? (double)INFINITY : (double)-INFINITY;
    static const uint8_t letters[] = {0, 1, 2, 0xfe, 0xff, 'a'};
    v.size = test_random_below(r, sizeof v.bytes);
    for (size_t i = 0; i < v.size; i++)
        v.bytes[i] = letters[test_random_below(r, sizeof letters)];
    return v;
}

/* ---- the laws ---- */

enum { ROOM = 200, PARTS = 4 };

static int sign(int n)
{
    return (n > 0) - (n < 0);
}

static void any_component_orders_as_its_value_and_comes_back(void **state)
{
    (void)state;
    struct test_random r = test_random_start(1);
    for (int round = 0; round < 60000; round++) {
        const enum type type = (enum type)test_random_below(&r, TYPES);
        const struct value a = any_value(&r, type), b = any_value(&r, type);
        for (int order = TAMIZ_ASCENDING; order <= TAMIZ_DESCENDING; order++) {
            uint8_t x[ROOM], y[ROOM];
            tamiz_encoder ex = tamiz_encoder_of(x, ROOM), ey = tamiz_encoder_of(y, ROOM);
            encode(&ex, type, &a, (tamiz_order)order);
            encode(&ey, type, &b, (tamiz_order)order);
            const int bytes = slice_compare(slice_of(x, ex.size), slice_of(y, ey.size));
            const int values = sign(compare(type, &a, &b));
            assert_int_equal(sign(bytes), order == TAMIZ_ASCENDING ? values : -values);
            tamiz_decoder d = tamiz_decoder_of(x, ex.size);
            struct value back;
            assert_public(decode(&d, type, &back, (tamiz_order)order), TAMIZ_OK);
            assert_int_equal(compare(type, &a, &back), 0);
            assert_public(tamiz_decode_end(&d), TAMIZ_OK);
        }
    }
}

struct shape {
    enum type type[PARTS];
    tamiz_order order[PARTS];
};

static size_t encode_tuple(uint8_t *out, const struct shape *s, const struct value *v)
{
    tamiz_encoder e = tamiz_encoder_of(out, ROOM);
    for (int i = 0; i < PARTS; i++)
        encode(&e, s->type[i], &v[i], s->order[i]);
    assert_true(tamiz_encoder_fits(&e));
    return e.size;
}

static void tuples_order_by_their_first_difference(void **state)
{
    (void)state;
    struct test_random r = test_random_start(2);
    for (int round = 0; round < 20000; round++) {
        struct shape s;
        struct value a[PARTS], b[PARTS];
        int expected = 0;
        for (int i = 0; i < PARTS; i++) {
            s.type[i] = (enum type)test_random_below(&r, TYPES);
            s.order[i] = test_random_below(&r, 2) ? TAMIZ_ASCENDING : TAMIZ_DESCENDING;
            a[i] = any_value(&r, s.type[i]);
            b[i] = test_random_below(&r, 3) ? a[i] : any_value(&r, s.type[i]);
            const int values = sign(compare(s.type[i], &a[i], &b[i]));
            if (!expected)
                expected = s.order[i] == TAMIZ_ASCENDING ? values : -values;
        }
        uint8_t x[ROOM], y[ROOM];
        const size_t nx = encode_tuple(x, &s, a), ny = encode_tuple(y, &s, b);
        assert_int_equal(sign(slice_compare(slice_of(x, nx), slice_of(y, ny))), expected);
        tamiz_decoder d = tamiz_decoder_of(x, nx);
        for (int i = 0; i < PARTS; i++) {
            struct value back;
            assert_public(decode(&d, s.type[i], &back, s.order[i]), TAMIZ_OK);
            assert_int_equal(compare(s.type[i], &a[i], &back), 0);
        }
        assert_public(tamiz_decode_end(&d), TAMIZ_OK);
    }
}

static void no_component_begins_another_one(void **state)
{
    (void)state;
    struct test_random r = test_random_start(3);
    for (int round = 0; round < 20000; round++) {
        const enum type type = (enum type)test_random_below(&r, TYPES);
        const tamiz_order order = test_random_below(&r, 2) ? TAMIZ_ASCENDING : TAMIZ_DESCENDING;
        const struct value a = any_value(&r, type), b = any_value(&r, type);
        uint8_t x[ROOM], y[ROOM];
        tamiz_encoder ex = tamiz_encoder_of(x, ROOM), ey = tamiz_encoder_of(y, ROOM);
        encode(&ex, type, &a, order);
        encode(&ey, type, &b, order);
        if (compare(type, &a, &b) != 0)
            assert_false(slice_has_prefix(slice_of(x, ex.size), slice_of(y, ey.size)));
    }
}

/* ---- cases ---- */

static void doubles_have_a_total_order(void **state)
{
    (void)state;
    const double rising[] = {
        -(double)INFINITY,      -1.7976931348623157e308, -1,         -5e-324, -0.0, 0.0, 5e-324, 1,
        1.7976931348623157e308, (double)INFINITY,        (double)NAN};
    uint8_t before[8], now[8];
    for (size_t i = 0; i < sizeof rising / sizeof *rising; i++) {
        tamiz_encoder e = tamiz_encoder_of(now, sizeof now);
        tamiz_encode_double(&e, rising[i], TAMIZ_ASCENDING);
        if (i)
            assert_true(memcmp(before, now, sizeof now) < 0);
        memcpy(before, now, sizeof now);
    }
}

static void every_nan_is_one_key(void **state)
{
    (void)state;
    uint8_t a[8], b[8];
    tamiz_encoder ea = tamiz_encoder_of(a, 8), eb = tamiz_encoder_of(b, 8);
    tamiz_encode_double(&ea, (double)NAN, TAMIZ_ASCENDING);
    tamiz_encode_double(&eb, -(double)NAN, TAMIZ_ASCENDING);
    assert_memory_equal(a, b, 8);
    a[7] ^= 1; /* a NaN that the encoder does not write */
    tamiz_decoder d = tamiz_decoder_of(a, 8);
    double value;
    assert_int_equal(tamiz_decode_double(&d, &value, TAMIZ_ASCENDING), TAMIZ_CORRUPTION);
}

static void the_bytes_are_those_of_the_drawing(void **state)
{
    (void)state;
    uint8_t key[64];
    tamiz_encoder e = tamiz_encoder_of(key, sizeof key);
    tamiz_encode_i32(&e, -2, TAMIZ_ASCENDING);
    tamiz_encode_bytes(&e, "a\0b", 3, TAMIZ_ASCENDING);
    tamiz_encode_double(&e, 1.0, TAMIZ_ASCENDING);
    tamiz_encode_bytes(&e, "", 0, TAMIZ_DESCENDING);
    tamiz_encode_u8(&e, 3, TAMIZ_DESCENDING);
    const uint8_t want[] = {0x7f, 0xff, 0xff, 0xfe, 'a', 0, 0xff, 'b',  0,    1,   0xbf,
                            0xf0, 0,    0,    0,    0,   0, 0,    0xff, 0xfe, 0xfc};
    assert_int_equal(e.size, sizeof want);
    assert_memory_equal(key, want, sizeof want);
}

static void a_short_buffer_is_never_overrun_and_the_size_is_told(void **state)
{
    (void)state;
    for (size_t room = 0; room < 14; room++) {
        uint8_t key[16];
        memset(key, 0xaa, sizeof key);
        tamiz_encoder e = tamiz_encoder_of(room ? key : NULL, room);
        tamiz_encode_u32(&e, 7, TAMIZ_ASCENDING);
        tamiz_encode_bytes(&e, "ab\0c", 4, TAMIZ_ASCENDING);
        assert_int_equal(e.size, 11);
        assert_int_equal(tamiz_encoder_fits(&e), room >= 11);
        assert_int_equal(key[room], 0xaa);
    }
}

static void whatever_is_cut_off_or_malformed_is_refused_for_good(void **state)
{
    (void)state;
    uint8_t key[32], out[4];
    size_t size;
    uint64_t number;
    tamiz_encoder e = tamiz_encoder_of(key, sizeof key);
    tamiz_encode_bytes(&e, "ab\0", 3, TAMIZ_ASCENDING);
    for (size_t cut = 0; cut < e.size; cut++) {
        tamiz_decoder d = tamiz_decoder_of(key, cut);
        assert_int_equal(tamiz_decode_bytes(&d, out, sizeof out, &size, TAMIZ_ASCENDING),
                         TAMIZ_CORRUPTION);
        assert_int_equal(tamiz_decode_end(&d), TAMIZ_CORRUPTION);
    }
    key[5] = 2; /* 00 02 is neither a zero nor the end */
    tamiz_decoder d = tamiz_decoder_of(key, e.size);
    assert_int_equal(tamiz_decode_bytes(&d, out, sizeof out, &size, TAMIZ_ASCENDING),
                     TAMIZ_CORRUPTION);
    tamiz_decoder seven = tamiz_decoder_of(key, 7), more = tamiz_decoder_of(key, 9);
    assert_int_equal(tamiz_decode_u64(&seven, &number, TAMIZ_ASCENDING), TAMIZ_CORRUPTION);
    assert_public(tamiz_decode_u64(&more, &number, TAMIZ_ASCENDING), TAMIZ_OK);
    assert_int_equal(tamiz_decode_end(&more), TAMIZ_CORRUPTION);
}

static void a_string_longer_than_the_buffer_is_cut_and_its_size_told(void **state)
{
    (void)state;
    uint8_t key[32], out[2];
    size_t size;
    tamiz_encoder e = tamiz_encoder_of(key, sizeof key);
    tamiz_encode_bytes(&e, "abcd", 4, TAMIZ_DESCENDING);
    tamiz_decoder d = tamiz_decoder_of(key, e.size);
    assert_public(tamiz_decode_bytes(&d, out, sizeof out, &size, TAMIZ_DESCENDING), TAMIZ_OK);
    assert_int_equal(size, 4);
    assert_memory_equal(out, "ab", 2);
    assert_public(tamiz_decode_end(&d), TAMIZ_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_component_orders_as_its_value_and_comes_back),
        cmocka_unit_test(tuples_order_by_their_first_difference),
        cmocka_unit_test(no_component_begins_another_one),
        cmocka_unit_test(doubles_have_a_total_order),
        cmocka_unit_test(every_nan_is_one_key),
        cmocka_unit_test(the_bytes_are_those_of_the_drawing),
        cmocka_unit_test(a_short_buffer_is_never_overrun_and_the_size_is_told),
        cmocka_unit_test(whatever_is_cut_off_or_malformed_is_refused_for_good),
        cmocka_unit_test(a_string_longer_than_the_buffer_is_cut_and_its_size_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
