/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "db/options.h"
#include "support/test.h"
#include "tamiz/tamiz.h"

static void defaults_are_within_their_bounds(void **state)
{
    (void)state;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    assert_public(options_check(&o), TAMIZ_OK);
    tamiz_options same;
    memset(&same, 0xff, sizeof same);
    tamiz_options_init(&same);
    assert_int_equal(same.struct_size, sizeof same);
    assert_string_equal(same.filter.kind, o.filter.kind);
}

static void text_sets_fields_and_printing_reads_back(void **state)
{
    (void)state;
    tamiz_options o = TAMIZ_OPTIONS_INIT, back = TAMIZ_OPTIONS_INIT;
    assert_public(
        tamiz_options_set(
            &o, "filter=bloom:12.5 cache=1MiB\nmemtable=64KiB  compression=none,zstd-dict:9,zstd:5 "
                "sync=interval:20 compaction=off threads=0 direct_io=true "
                "prefix_filter=sep:0x3A ttl=3000000000"),
        TAMIZ_OK);
    assert_string_equal(o.filter.kind, "bloom");
    assert_true(o.filter.bits_per_key == 12.5 && o.cache == 1 << 20 && o.memtable == 65536 &&
                o.direct_io);
    assert_true(o.compression[0] == TAMIZ_COMPRESSION_NONE &&
                o.compression[1] == TAMIZ_COMPRESSION_ZSTD_DICT && o.compression_level[1] == 9 &&
                o.compression[7] == TAMIZ_COMPRESSION_ZSTD);
    assert_int_equal(o.compression_level[7], 5);
    assert_int_equal(o.sync_interval_ms, 20);
    assert_int_equal(o.prefix_filter, TAMIZ_PREFIX_SEPARATOR);
    assert_int_equal(o.prefix_filter_value, 0x3a);
    char *text;
    assert_public(tamiz_options_text(&o, &text), TAMIZ_OK);
    assert_public(tamiz_options_set(&back, text), TAMIZ_OK);
    tamiz_free(text);
    assert_memory_equal(&o.cache, &back.cache, sizeof o.cache);
    assert_int_equal(back.sync_interval_ms, 20);
    assert_int_equal(back.ttl, 3000000000);
    assert_int_equal(back.prefix_filter, TAMIZ_PREFIX_SEPARATOR);
    assert_int_equal(back.prefix_filter_value, 0x3a);
    assert_true(back.filter.bits_per_key == 12.5 && back.compression[2] == TAMIZ_COMPRESSION_ZSTD &&
                back.compression[1] == TAMIZ_COMPRESSION_ZSTD_DICT);
}

static void a_wrong_setting_names_what_would_be_right_and_changes_nothing(void **state)
{
    (void)state;
    const struct {
        const char *text, *detail;
    } wrong[] = {
        {"cache=8MiB size_ratio=1", "size_ratio=1: want 2..64"},
        {"size_ratio=65", "size_ratio=65: want 2..64"},
        {"size_ratio=ten", "size_ratio=ten: want 2..64"},
        {"size_ratio=", "size_ratio: want a value"},
        {"size_ratio", "size_ratio: want a value"},
        {"no_such=1", "no_such: no such option"},
        {"filter=bloom:0", "0"},
        {"filter=blom", "blom"},
        {"compression=gzip", "compression=gzip: want none, zstd[:1..19] or zstd-dict"},
        {"compression=zstd-dict:0", "compression=zstd-dict:0: want"},
        {"compression=none,zstd-dictionary", "want none, zstd[:1..19]"},
        {"compression=zstd:20", "compression=zstd:20: want"},
        {"prefix_filter=0", "prefix_filter=0: want none, 1..1024 bytes or a separator sep:0x00"},
        {"prefix_filter=1025", "prefix_filter=1025: want none, 1..1024 bytes"},
        {"prefix_filter=sep::", "prefix_filter=sep::: want none"},
        {"prefix_filter=sep:0x100", "want a separator sep:0x00..sep:0xff"},
        {"sync=sometimes", "sync=sometimes: want none, always or interval:MS"},
        {"ttl=3155760001", "ttl=3155760001: want 0..3155760000"},
        {"ttl=1h", "ttl=1h: want 0..3155760000"},
        {"verify=yes", "verify=yes: want true or false"},
        {"memtable=99999999999999999999", "memtable="},
        {"level0_runs=8 level0_stop=4", "level0_stop=4: want more than level0_runs=8"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tamiz_options o = TAMIZ_OPTIONS_INIT;
        assert_int_equal(tamiz_options_set(&o, wrong[i].text), TAMIZ_INVALID_ARGUMENT);
        if (!strstr(tamiz_error_detail(), wrong[i].detail))
            fail_msg("%s: the detail is \"%s\"", wrong[i].text, tamiz_error_detail());
        assert_int_equal(o.cache, 64 << 20);
    }
}

static void every_knob_is_in_the_help_and_has_a_printable_default(void **state)
{
    (void)state;
    char *help, *text;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    assert_public(tamiz_options_help(&help), TAMIZ_OK);
    assert_public(tamiz_options_text(&o, &text), TAMIZ_OK);
    size_t lines = 0, settings = 0;
    for (const char *c = help; *c; c++)
        lines += *c == '\n';
    for (const char *c = text; *c; c++)
        settings += *c == '\n';
    assert_int_equal(lines, options_row_count());
    assert_int_equal(settings, options_row_count());
    tamiz_free(help);
    tamiz_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_within_their_bounds),
        cmocka_unit_test(text_sets_fields_and_printing_reads_back),
        cmocka_unit_test(a_wrong_setting_names_what_would_be_right_and_changes_nothing),
        cmocka_unit_test(every_knob_is_in_the_help_and_has_a_printable_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
