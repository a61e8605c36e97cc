/* SPDX-License-Identifier: MIT
 *
 * The log: what was written comes back; what a crash may leave ends it; what only damage can leave
 * is reported.
 */
#include "log/log.h"

#include <errno.h>
#include <stdlib.h>

#include "log/log_image.h"
#include "support/test.h"
#include "tamiz/env_sim.h"

/* ---- helpers ---- */

static size_t record_size(size_t body)
{
    return LOG_RECORD_HEADER_SIZE + (body + 7) / 8 * 8;
}

/* Three records, of which the first two were synced before the third: 5, 12 and 300 bytes. */
static void write_three(struct journal *j)
{
    uint8_t body[300];
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (uint8_t)(i * 7);
    journal_text(j, "sieve");
    journal_text(j, "fine grained");
    journal_sync(j);
    journal_add(j, slice_of(body, sizeof body));
}

static void start_three(struct journal *j)
{
    journal_start(j, LOG_WAL);
    write_three(j);
}

/* ---- writing and reading ---- */

static void records_come_back_in_order_and_the_log_ends_clean(void **state)
{
    (void)state;
    struct journal j;
    struct log_reader r;
    struct slice body;
    bool empty;
    start_three(&j);
    journal_image(&j);
    struct op *op = &j.t.op;
    assert_status(op,
                  log_reader_open(op, j.memory, &alloc_libc, "d/log", LOG_WAL, IO_LOG, &r, &empty),
                  TAMIZ_OK);
    assert_false(empty);
    assert_true(r.header.number == 12 && r.header.first == 1 && r.header.boot_id == IMAGE_BOOT);
    assert_status(op, log_next(op, &r, 0, &body), TAMIZ_OK);
    assert_true(slice_equal(body, slice_of_text("sieve")) && r.record == LOG_HEADER_SIZE);
    assert_status(op, log_next(op, &r, 0, &body), TAMIZ_OK);
    assert_true(slice_equal(body, slice_of_text("fine grained")));
    assert_status(op, log_next(op, &r, 0, &body), TAMIZ_OK);
    assert_int_equal(body.size, 300);
    assert_status(op, log_next(op, &r, 0, &body), TAMIZ_NOT_FOUND);
    assert_true(r.end == LOG_END_CLEAN && r.dropped == 0 && !r.sealed && body.size == 0);
    log_reader_close(&r);
    journal_free(&j);
}

static void a_body_may_come_in_pieces(void **state)
{
    (void)state;
    struct journal j;
    const struct slice pieces[] = {slice_of_text("fi"), slice_of(NULL, 0),
                                   slice_of_text("ne grained")};
    journal_start(&j, LOG_WAL);
    assert_status(&j.t.op, log_append(&j.t.op, &j.w, pieces, 3), TAMIZ_OK);
    journal_image(&j);
    assert_memory_equal(j.image.data + LOG_HEADER_SIZE + LOG_RECORD_HEADER_SIZE, "fine grained",
                        12);
    assert_int_equal(image_read_buf(&j.image, 0).records, 1);
    journal_free(&j);
}

static void an_empty_body_and_one_of_2_to_the_32_bytes_are_refused(void **state)
{
    (void)state;
    struct journal j;
    journal_start(&j, LOG_WAL);
    struct op *op = &j.t.op;
    const uint64_t end = j.w.end;
    const struct slice none = slice_of(NULL, 0);
    /* Refused by arithmetic: the bytes are never looked at. */
    const struct slice large[] = {slice_of("", UINT32_MAX), slice_of("", 1)};
    const struct slice huge[] = {slice_of("", SIZE_MAX), slice_of("", SIZE_MAX)};
    assert_status(op, log_append(op, &j.w, &none, 1), TAMIZ_INVALID_ARGUMENT);
    op_forgive(op);
    assert_status(op, log_append(op, &j.w, large, 2), TAMIZ_INVALID_ARGUMENT);
    op_forgive(op);
    assert_status(op, log_append(op, &j.w, huge, 2), TAMIZ_INVALID_ARGUMENT);
    assert_true(j.w.end == end && !j.w.broken);
    journal_free(&j);
}

static void a_large_body_leaves_no_large_scratch_behind(void **state)
{
    (void)state;
    struct journal j;
    journal_start(&j, LOG_WAL);
    const size_t size = (size_t)3 << 20;
    uint8_t *body = calloc(1, size);
    assert_non_null(body);
    journal_add(&j, slice_of(body, size));
    assert_true(j.w.scratch.capacity <= (size_t)1 << 20);
    journal_text(&j, "small");
    journal_image(&j);
    const struct seen seen = image_read_buf(&j.image, 0);
    assert_true(seen.records == 2 && seen.bytes == size + 5);
    free(body);
    journal_free(&j);
}

/* Large ones go out from where they are, the others gathered; what is read is the same. */
static void a_record_comes_back_whole_whatever_its_pieces(void **state)
{
    (void)state;
    enum { MOST = 400 << 10, PIECES = 7 };
    struct test_random random = test_random_start(31);
    uint8_t *bytes = mem_new(&alloc_libc, (size_t)PIECES * MOST);
    for (size_t i = 0; i < (size_t)PIECES * MOST; i++)
        bytes[i] = (uint8_t)test_random_u64(&random);
    for (int round = 0; round < 40; round++) {
        struct journal j;
        struct slice pieces[PIECES];
        size_t size = 0;
        journal_start(&j, LOG_WAL);
        journal_text(&j, "before");
        for (size_t i = 0; i < PIECES; i++) {
            const size_t most = test_random_below(&random, 3) ? 100 : MOST;
            pieces[i] = slice_of(bytes + size, test_random_below(&random, most + 1));
            size += pieces[i].size;
        }
        pieces[0].size += size == 0;
        size += size == 0;
        assert_status(&j.t.op, log_append(&j.t.op, &j.w, pieces, PIECES), TAMIZ_OK);
        journal_text(&j, "behind");
        journal_image(&j);
        assert_true(image_read_buf(&j.image, 0).records == 3);
        assert_true(image_read_buf(&j.image, 0).bytes == size + 12);
        const size_t at = LOG_HEADER_SIZE + LOG_RECORD_HEADER_SIZE + 8 + LOG_RECORD_HEADER_SIZE;
        assert_memory_equal(j.image.data + at, bytes, size);
        journal_free(&j);
    }
    mem_free(&alloc_libc, bytes, (size_t)PIECES * MOST);
}

/* ---- the cases ---- */

static void R07_a_tail_torn_at_any_length_ends_the_log_and_the_next_file_goes_on(void **state)
{
    (void)state;
    struct journal j, next;
    journal_start(&j, LOG_WAL);
    journal_text(&j, "put a 1");
    journal_sync(&j);
    journal_text(&j, "put b 2, somewhat longer");
    journal_image(&j);
    const size_t last = record_size(24);
    for (size_t n = 1; n <= last; n++) {
        const struct seen seen =
            image_read(slice_of(j.image.data, j.image.size - n), LOG_WAL, IMAGE_BOOT);
        assert_int_equal(seen.status, TAMIZ_NOT_FOUND);
        assert_int_equal(seen.records, 1);
        assert_int_equal(seen.end, n == last ? LOG_END_CLEAN : LOG_END_TORN);
        assert_true(seen.dropped <= last - n);
    }
    /* Nothing is ever appended behind a torn tail: what follows goes to a file of its own. */
    journal_start(&next, LOG_WAL);
    journal_text(&next, "put c 3");
    journal_sync(&next);
    journal_text(&next, "put d 4");
    journal_image(&next);
    assert_int_equal(image_read_buf(&next.image, IMAGE_BOOT).records, 2);
    journal_free(&next);
    journal_free(&j);
}

static void R07_junk_behind_the_last_record_is_dropped_and_counted(void **state)
{
    (void)state;
    struct journal j;
    start_three(&j);
    journal_image(&j);
    buf_u8(&j.image, 1);
    const struct seen seen = image_read_buf(&j.image, IMAGE_BOOT);
    assert_true(seen.status == TAMIZ_NOT_FOUND && seen.records == 3);
    assert_true(seen.end == LOG_END_TORN && seen.dropped == 1);
    journal_free(&j);
}

static void R08_zeros_behind_the_last_record_are_a_clean_end(void **state)
{
    (void)state;
    static const size_t pads[] = {1, 6, 7, 8, 23, 24, 25, 4095, 4096, 32767, 32768, 1 << 20};
    struct journal j;
    start_three(&j);
    journal_image(&j);
    for (size_t i = 0; i < sizeof pads / sizeof *pads; i++) {
        struct buf copy = image_copy(buf_slice(&j.image));
        for (size_t n = 0; n < pads[i]; n++)
            buf_u8(&copy, 0);
        const struct seen seen = image_read_buf(&copy, IMAGE_BOOT);
        assert_true(seen.status == TAMIZ_NOT_FOUND && seen.records == 3);
        assert_true(seen.end == LOG_END_CLEAN && seen.dropped == 0);
        buf_free(&copy);
    }
    journal_free(&j);
}

static void R08_records_of_a_files_former_life_are_not_replayed(void **state)
{
    (void)state;
    struct journal old, fresh;
    journal_start(&old, LOG_WAL);
    for (int i = 0; i < 50; i++)
        journal_text(&old, "an old write of this size");
    journal_image(&old);
    /* The new life has another identity; everything else about its records is the same. */
    struct log_header header = journal_header(LOG_WAL);
    header.file_id = IMAGE_FILE_ID + 1;
    journal_start(&fresh, LOG_WAL);
    struct op *op = &fresh.t.op;
    assert_status(op, log_close(op, &fresh.w), TAMIZ_OK);
    assert_status(op, env_remove(op, fresh.memory, "d/log"), TAMIZ_OK);
    assert_status(op,
                  log_create(op, fresh.memory, &alloc_libc, "d/log", IO_LOG, &header, 0, &fresh.w),
                  TAMIZ_OK);
    for (int i = 0; i < 3; i++)
        journal_text(&fresh, "A NEW WRITE, QUITE AS BIG");
    journal_image(&fresh);
    for (size_t keep = fresh.image.size; keep >= LOG_HEADER_SIZE; keep--) {
        struct buf mixed = image_copy(buf_slice(&old.image));
        memcpy(mixed.data, fresh.image.data, keep);
        const struct seen seen = image_read_buf(&mixed, IMAGE_BOOT);
        assert_true(seen.status == TAMIZ_NOT_FOUND && seen.end == LOG_END_TORN);
        assert_int_equal(seen.records, (keep + 7 - LOG_HEADER_SIZE) /
                                           record_size(25)); /* padding is zeros in both */
        buf_free(&mixed);
    }
    journal_free(&old);
    journal_free(&fresh);
}

/* Fifty synced records of 100 bytes; the last has nothing behind it. */
static void start_synced(struct journal *j, bool seal)
{
    uint8_t body[100];
    journal_start(j, LOG_WAL);
    for (int i = 0; i < 50; i++) {
        memset(body, i + 1, sizeof body);
        journal_add(j, slice_of(body, sizeof body));
        journal_sync(j);
    }
    if (seal)
        assert_status(&j->t.op, log_seal(&j->t.op, &j->w), TAMIZ_OK);
    journal_image(j);
}

static void R09_damage_in_front_of_synced_records_is_reported(void **state)
{
    (void)state;
    struct journal j;
    start_synced(&j, false);
    for (size_t i = 0; i < 50; i++) {
        const size_t at = LOG_HEADER_SIZE + i * record_size(100);
        for (int how = 0; how < 4; how++) {
            struct buf copy = image_copy(buf_slice(&j.image));
            const size_t most = copy.size - at < 512 ? copy.size - at : 512;
            if (how == 0)
                copy.data[at + 60] ^= 1;
            else if (how == 1)
                copy.data[at] ^= 1;
            else
                memset(copy.data + at, how == 2 ? 0 : 0xa5, most);
            const struct seen seen = image_read_buf(&copy, 0);
            /* Of the last record alone the log can't know that it was synced: the next log's
             * `first` does. */
            const bool last = i == 49 || (how >= 2 && at + most == copy.size);
            assert_int_equal(seen.status, last ? TAMIZ_NOT_FOUND : TAMIZ_CORRUPTION);
            assert_int_equal(seen.records, i);
            buf_free(&copy);
        }
    }
    journal_free(&j);
}

static void R09_the_words_name_file_offset_and_both_values(void **state)
{
    (void)state;
    struct journal j;
    start_synced(&j, false);
    j.image.data[LOG_HEADER_SIZE + record_size(100) + 60] ^= 1;
    const struct seen seen = image_read_buf(&j.image, 0);
    assert_int_equal(seen.status, TAMIZ_CORRUPTION);
    assert_non_null(strstr(seen.words, "d/log: record at offset 192: expected body checksum "));
    assert_non_null(strstr(seen.words, ", found "));
    journal_free(&j);
}

static void R09_junk_or_zeros_in_an_unsynced_record_leave_it_absent_or_exact(void **state)
{
    (void)state;
    struct journal j;
    struct test_random random = test_random_start(9);
    const size_t size = 20000;
    uint8_t *body = malloc(size);
    assert_non_null(body);
    for (size_t i = 0; i < size; i++)
        body[i] = (uint8_t)test_random_u64(&random);
    journal_start(&j, LOG_WAL);
    journal_text(&j, "before");
    journal_sync(&j);
    const uint64_t start = j.w.end;
    journal_add(&j, slice_of(body, size));
    journal_image(&j);
    const struct seen whole = image_read_buf(&j.image, IMAGE_BOOT);
    for (size_t n = 1; n <= j.image.size - start; n += 97) {
        for (int junk = 0; junk < 2; junk++) {
            struct buf copy = image_copy(buf_slice(&j.image));
            for (size_t i = copy.size - n; i < copy.size; i++)
                copy.data[i] = junk ? (uint8_t)test_random_u64(&random) : 0;
            const struct seen seen = image_read_buf(&copy, IMAGE_BOOT);
            assert_int_equal(seen.status, TAMIZ_NOT_FOUND);
            assert_true(seen.records == 1 || (seen.records == 2 && seen.sum == whole.sum));
            buf_free(&copy);
        }
    }
    free(body);
    journal_free(&j);
}

static void a_flip_of_any_bit_of_a_sealed_log_is_reported_or_harmless(void **state)
{
    (void)state;
    struct journal j;
    start_three(&j);
    assert_status(&j.t.op, log_seal(&j.t.op, &j.w), TAMIZ_OK);
    journal_image(&j);
    const struct seen whole = image_read_buf(&j.image, 0);
    assert_true(whole.records == 3 && whole.sealed && whole.end == LOG_END_CLEAN);
    for (size_t bit = 0; bit < j.image.size * 8; bit++) {
        struct buf copy = image_copy(buf_slice(&j.image));
        copy.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        const struct seen seen = image_read_buf(&copy, 0);
        if (bit / 8 >= j.image.size - LOG_RECORD_HEADER_SIZE)
            assert_true(seen.status == TAMIZ_NOT_FOUND && seen.sum == whole.sum && !seen.sealed);
        else
            assert_int_equal(seen.status, TAMIZ_CORRUPTION);
        buf_free(&copy);
    }
    journal_free(&j);
}

static void a_log_cut_at_any_byte_yields_whole_records_and_no_error(void **state)
{
    (void)state;
    struct journal j;
    start_three(&j);
    assert_status(&j.t.op, log_seal(&j.t.op, &j.w), TAMIZ_OK);
    journal_image(&j);
    const size_t ends[] = {64, 64 + 32, 64 + 32 + 40, 64 + 32 + 40 + 328, 64 + 32 + 40 + 328 + 24};
    assert_int_equal(j.image.size, ends[4]);
    for (size_t size = 0; size <= j.image.size; size++) {
        const struct seen seen = image_read(slice_of(j.image.data, size), LOG_WAL, 0);
        const int want = (size >= ends[1]) + (size >= ends[2]) + (size >= ends[3]);
        assert_int_equal(seen.status, TAMIZ_NOT_FOUND);
        assert_int_equal(seen.records, want);
        assert_int_equal(seen.empty, size < 64);
        /* The seal's head begins with zeros, and zeros are a clean end. */
        const bool clean = size < 64 || size == ends[0] || size == ends[1] || size == ends[2] ||
                           (size >= ends[3] && size <= ends[3] + 4) || size == ends[4];
        assert_int_equal(seen.end, clean ? LOG_END_CLEAN : LOG_END_TORN);
    }
    journal_free(&j);
}

static void a_hole_is_damage_only_where_the_machine_has_not_been_restarted(void **state)
{
    (void)state;
    struct journal j;
    journal_start(&j, LOG_WAL);
    journal_text(&j, "first");
    journal_text(&j, "second");
    journal_text(&j, "third");
    journal_image(&j);
    j.image.data[LOG_HEADER_SIZE + record_size(5) + LOG_RECORD_HEADER_SIZE] ^= 0x40;
    assert_int_equal(image_read_buf(&j.image, IMAGE_BOOT).status, TAMIZ_CORRUPTION);
    /* A power cut may keep a later page and lose an earlier one, as long as none was promised. */
    for (uint64_t boot = 0; boot < 2; boot++) {
        const struct seen seen = image_read_buf(&j.image, boot);
        assert_true(seen.status == TAMIZ_NOT_FOUND && seen.end == LOG_END_TORN);
        assert_true(seen.records == 1 && seen.dropped > 0);
    }
    journal_free(&j);
}

static void what_was_promised_is_found_behind_records_that_were_not(void **state)
{
    (void)state;
    struct journal j;
    journal_start(&j, LOG_WAL);
    journal_text(&j, "first");
    journal_text(&j, "second"); /* valid, but its `durable` says nothing of the first */
    journal_sync(&j);
    journal_text(&j, "third"); /* its does */
    journal_image(&j);
    j.image.data[LOG_HEADER_SIZE + LOG_RECORD_HEADER_SIZE] ^= 1;
    assert_int_equal(image_read_buf(&j.image, 0).status, TAMIZ_CORRUPTION);
    journal_free(&j);
}

/* ---- the header ---- */

static void a_file_of_zeros_or_with_a_lone_broken_header_is_empty(void **state)
{
    (void)state;
    struct journal j;
    static const uint8_t zeros[300] = {0};
    for (size_t size = 0; size <= sizeof zeros; size++)
        assert_true(image_read(slice_of(zeros, size), LOG_WAL, 0).empty);
    journal_start(&j, LOG_WAL);
    journal_image(&j);
    assert_false(image_read_buf(&j.image, 0).empty);
    j.image.data[20] ^= 1;
    const struct seen seen = image_read_buf(&j.image, 0);
    assert_true(seen.empty && seen.status == TAMIZ_NOT_FOUND && seen.records == 0);
    journal_free(&j);
}

static void a_broken_header_in_front_of_records_is_damage(void **state)
{
    (void)state;
    struct journal j;
    start_three(&j);
    journal_image(&j);
    for (size_t i = 0; i < LOG_HEADER_SIZE; i++) {
        struct buf copy = image_copy(buf_slice(&j.image));
        copy.data[i] ^= 0x10;
        assert_int_equal(image_read_buf(&copy, 0).status, TAMIZ_CORRUPTION);
        buf_free(&copy);
    }
    memset(j.image.data, 0, LOG_HEADER_SIZE);
    assert_int_equal(image_read_buf(&j.image, 0).status, TAMIZ_CORRUPTION);
    journal_free(&j);
}

static void a_newer_format_and_another_kind_are_refused_by_name(void **state)
{
    (void)state;
    struct journal j;
    start_three(&j);
    journal_image(&j);
    struct seen seen = image_read(buf_slice(&j.image), LOG_MANIFEST, 0);
    assert_int_equal(seen.status, TAMIZ_CORRUPTION);
    assert_non_null(strstr(seen.words, "expected kind 2, found 1"));
    store_u32(j.image.data + 8, LOG_FORMAT_VERSION + 1);
    image_repair_header(&j.image);
    seen = image_read_buf(&j.image, 0);
    assert_int_equal(seen.status, TAMIZ_NOT_SUPPORTED);
    assert_non_null(strstr(seen.words, "version 2"));
    store_u32(j.image.data + 8, 0);
    image_repair_header(&j.image);
    assert_int_equal(image_read_buf(&j.image, 0).status, TAMIZ_CORRUPTION);
    journal_free(&j);
}

/* ---- writing when the world fails ---- */

struct failing {
    struct test_op t;
    tamiz_env_sim *sim;
    const tamiz_env *env; /* of sim */
    struct log_writer w;
};

static void failing_start(struct failing *f, uint64_t allocate_step)
{
    const struct log_header header = journal_header(LOG_WAL);
    test_op_init(&f->t);
    f->sim = tamiz_env_sim_new(1);
    assert_non_null(f->sim);
    f->env = tamiz_env_sim_env(f->sim);
    struct op *op = &f->t.op;
    assert_status(op, env_make_directory(op, f->env, "d"), TAMIZ_OK);
    assert_status(
        op, log_create(op, f->env, &alloc_libc, "d/log", IO_LOG, &header, allocate_step, &f->w),
        TAMIZ_OK);
}

static void failing_free(struct failing *f)
{
    assert_status(&f->t.op, log_close(&f->t.op, &f->w), TAMIZ_OK);
    tamiz_env_sim_free(f->sim);
}

/* The nth call of a kind from now on fails. `argument`: bytes that a short write does. */
static void fault(struct failing *f, tamiz_sim_call call, tamiz_sim_effect effect, uint64_t nth,
                  int error, uint64_t argument)
{
    tamiz_sim_fault what = TAMIZ_SIM_FAULT_INIT;
    what.call = call;
    what.effect = effect;
    what.nth = nth;
    what.error = error;
    what.argument = argument;
    assert_true(tamiz_env_sim_fault(f->sim, &what));
}

static uint64_t failing_size(struct failing *f)
{
    bool exists;
    tamiz_file_info info;
    assert_status(&f->t.op, env_path_info(&f->t.op, f->env, "d/log", &exists, &info), TAMIZ_OK);
    return exists ? info.size : UINT64_MAX;
}

static void R11_after_a_failed_write_nothing_is_written_and_the_rest_of_it_is_cut(void **state)
{
    (void)state;
    static const int errors[] = {EIO, ENOSPC};
    for (int i = 0; i < 2; i++) {
        for (uint64_t part = 1; part < 48; part += 5) {
            struct failing f;
            failing_start(&f, 0);
            struct op *op = &f.t.op;
            const struct slice body = slice_of_text("a write of 21 bytes..");
            assert_status(op, log_append(op, &f.w, &body, 1), TAMIZ_OK);
            const uint64_t end = f.w.end;
            fault(&f, TAMIZ_SIM_WRITE, TAMIZ_SIM_SHORT, 1, errors[i], part);
            const tamiz_status why = i ? TAMIZ_NO_SPACE : TAMIZ_IO_ERROR;
            assert_status(op, log_append(op, &f.w, &body, 1), why);
            op_forgive(op);
            assert_true(f.w.broken && f.w.end == end && failing_size(&f) == end + part);
            const uint64_t calls = tamiz_env_sim_calls(f.sim, TAMIZ_SIM_CHANGE);
            assert_status(op, log_append(op, &f.w, &body, 1), why);
            op_forgive(op);
            assert_status(op, log_sync(op, &f.w), why);
            op_forgive(op);
            assert_status(op, log_seal(op, &f.w), why);
            op_forgive(op);
            assert_int_equal(tamiz_env_sim_calls(f.sim, TAMIZ_SIM_CHANGE), calls);
            assert_status(op, log_close(op, &f.w), TAMIZ_OK);
            assert_int_equal(failing_size(&f), end);
            failing_free(&f);
        }
    }
}

static void R12_a_failed_sync_is_final_and_durable_stays_what_it_was(void **state)
{
    (void)state;
    struct failing f;
    failing_start(&f, 0);
    struct op *op = &f.t.op;
    const struct slice body = slice_of_text("promised");
    assert_status(op, log_append(op, &f.w, &body, 1), TAMIZ_OK);
    assert_status(op, log_sync(op, &f.w), TAMIZ_OK);
    const uint64_t durable = f.w.durable;
    assert_status(op, log_append(op, &f.w, &body, 1), TAMIZ_OK);
    fault(&f, TAMIZ_SIM_FSYNC, TAMIZ_SIM_LOSE, 1, EIO, 0);
    assert_status(op, log_sync(op, &f.w), TAMIZ_IO_ERROR);
    op_forgive(op);
    /* This disk would say OK to a second sync, and have nothing. */
    const uint64_t calls = tamiz_env_sim_calls(f.sim, TAMIZ_SIM_FSYNC);
    assert_status(op, log_sync(op, &f.w), TAMIZ_IO_ERROR);
    op_forgive(op);
    assert_true(f.w.broken && f.w.durable == durable);
    assert_int_equal(tamiz_env_sim_calls(f.sim, TAMIZ_SIM_FSYNC), calls);
    failing_free(&f);
}

static void a_sync_with_nothing_new_asks_the_system_for_nothing(void **state)
{
    (void)state;
    struct failing f;
    failing_start(&f, 0);
    const uint64_t calls = tamiz_env_sim_calls(f.sim, TAMIZ_SIM_ANY);
    assert_status(&f.t.op, log_sync(&f.t.op, &f.w), TAMIZ_OK);
    assert_int_equal(tamiz_env_sim_calls(f.sim, TAMIZ_SIM_ANY), calls);
    failing_free(&f);
}

static void creating_a_log_leaves_no_file_where_any_call_fails(void **state)
{
    (void)state;
    const struct log_header header = journal_header(LOG_WAL);
    for (uint64_t nth = 1; nth <= 3; nth++) {
        struct failing f;
        failing_start(&f, 0);
        struct op *op = &f.t.op;
        assert_status(op, log_close(op, &f.w), TAMIZ_OK);
        assert_status(op, env_remove(op, f.env, "d/log"), TAMIZ_OK);
        fault(&f, TAMIZ_SIM_CHANGE, TAMIZ_SIM_FAIL, nth, ENOSPC, 0);
        assert_status(op, log_create(op, f.env, &alloc_libc, "d/log", IO_LOG, &header, 0, &f.w),
                      TAMIZ_NO_SPACE);
        assert_true(f.w.file == NULL && failing_size(&f) == UINT64_MAX);
        failing_free(&f); /* closes an empty writer */
    }
}

static void preallocation_keeps_the_size_honest_and_a_refusal_only_ends_it(void **state)
{
    (void)state;
    struct failing f;
    failing_start(&f, 4096);
    struct op *op = &f.t.op;
    const struct slice body = slice_of_text("some bytes");
    for (int i = 0; i < 200; i++)
        assert_status(op, log_append(op, &f.w, &body, 1), TAMIZ_OK);
    assert_true(f.w.allocated >= f.w.end && f.w.allocated % 4096 == 0);
    const uint64_t calls = tamiz_env_sim_calls(f.sim, TAMIZ_SIM_ALLOCATE);
    assert_true(calls >= 2 && calls <= 3);
    assert_int_equal(failing_size(&f), f.w.end);
    fault(&f, TAMIZ_SIM_ALLOCATE, TAMIZ_SIM_FAIL, 1, ENOSPC, 0);
    for (int i = 0; i < 500; i++)
        assert_status(op, log_append(op, &f.w, &body, 1), TAMIZ_OK);
    assert_true(op->status == TAMIZ_OK && !f.w.broken);
    assert_int_equal(tamiz_env_sim_calls(f.sim, TAMIZ_SIM_ALLOCATE), calls + 1);
    const uint64_t end = f.w.end;
    assert_status(op, log_close(op, &f.w), TAMIZ_OK);
    assert_int_equal(failing_size(&f), end);
    failing_free(&f);
}

/* A log on a machine that loses power while it is written, each of many ways: what was synced is
 * there, in order, and what comes behind it is a beginning of the rest. */
static void R09_a_power_cut_of_any_kind_leaves_a_beginning_of_the_log(void **state)
{
    (void)state;
    struct failing f;
    failing_start(&f, 4096);
    struct op *op = &f.t.op;
    uint8_t body[700];
    for (uint8_t i = 1; i <= 40; i++) {
        memset(body, i, sizeof body);
        const struct slice piece = slice_of(body, (size_t)i * 17);
        assert_status(op, log_append(op, &f.w, &piece, 1), TAMIZ_OK);
        if (i == 20)
            assert_status(op, log_sync(op, &f.w), TAMIZ_OK);
    }
    assert_status(op, env_sync_directory(op, f.env, "d"), TAMIZ_OK);
    uint64_t most = 0;
    for (uint64_t n = 0; n < 300; n++) {
        tamiz_env_sim *image = tamiz_env_sim_copy(f.sim);
        struct buf bytes = buf_init(&alloc_libc);
        assert_non_null(image);
        tamiz_env_sim_crash(image, (tamiz_sim_crash)(n % 6), "log", n * 37);
        assert_status(op,
                      env_read_file(op, tamiz_env_sim_env(image), "d/log", IO_LOG, 1 << 20, &bytes),
                      TAMIZ_OK);
        const struct seen seen = image_read_buf(&bytes, env_boot_id(tamiz_env_sim_env(image)));
        assert_int_equal(seen.status, TAMIZ_NOT_FOUND);
        assert_true(seen.records >= 20 && seen.records <= 40);
        uint64_t want = 0;
        for (uint64_t i = 1; i <= seen.records; i++)
            want += i * 17;
        assert_int_equal(seen.bytes, want);
        most = seen.records > most ? seen.records : most;
        buf_free(&bytes);
        tamiz_env_sim_free(image);
    }
    assert_int_equal(most, 40);
    failing_free(&f);
}

/* ---- crafted files ---- */

/* Fields set to what an attacker would choose, checks made valid again: any end is fine but a
 * crash, and memory stays within the file's size. */
static void R22_crafted_fields_with_valid_checks_are_survived(void **state)
{
    (void)state;
    static const uint64_t values[] = {
        0,         1,   2,   7,          23,         24,         299,
        301,       488, 489, 0x7fffffff, 0x80000000, UINT32_MAX, UINT64_MAX / 2 + 1,
        UINT64_MAX};
    struct journal j;
    start_three(&j);
    assert_status(&j.t.op, log_seal(&j.t.op, &j.w), TAMIZ_OK);
    journal_image(&j);
    const size_t records[] = {64, 96, 136, 464};
    for (size_t r = 0; r < 4; r++) {
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            struct buf size = image_copy(buf_slice(&j.image));
            store_u32(size.data + records[r], (uint32_t)values[v]);
            image_repair_record(&size, IMAGE_FILE_ID, records[r]);
            (void)image_read_buf(&size, 0);
            buf_free(&size);
            struct buf durable = image_copy(buf_slice(&j.image));
            store_u64(durable.data + records[r] + 16, values[v]);
            image_repair_record(&durable, IMAGE_FILE_ID, records[r]);
            const struct seen seen = image_read_buf(&durable, 0);
            if (values[v] > records[r] && r < 3) /* more durable than was written, and promised */
                assert_true(seen.status != TAMIZ_OK);
            buf_free(&durable);
        }
    }
    journal_free(&j);
}

static void R22_random_damage_with_repaired_checks_is_survived(void **state)
{
    (void)state;
    struct test_random random = test_random_start(22);
    struct journal j;
    start_three(&j);
    assert_status(&j.t.op, log_seal(&j.t.op, &j.w), TAMIZ_OK);
    journal_image(&j);
    const size_t records[] = {64, 96, 136, 464};
    for (int round = 0; round < 20000; round++) {
        struct buf copy =
            image_copy(slice_of(j.image.data, 64 + test_random_below(&random, j.image.size - 63)));
        const uint64_t flips = 1 + test_random_below(&random, 4);
        for (uint64_t i = 0; i < flips; i++)
            copy.data[test_random_below(&random, copy.size)] ^=
                (uint8_t)(1 + test_random_below(&random, 255));
        image_repair_header(&copy);
        const uint64_t file_id = load_u64(copy.data + 16);
        for (size_t r = 0; r < 4; r++) {
            if (records[r] < copy.size)
                image_repair_record(&copy, file_id, records[r]);
        }
        const struct seen seen = image_read_buf(&copy, test_random_below(&random, 2) * IMAGE_BOOT);
        assert_true(seen.records <= 4 && seen.bytes <= copy.size);
        buf_free(&copy);
    }
    journal_free(&j);
}

static void heads_that_overlap_end_the_search_in_bounded_work(void **state)
{
    (void)state;
    struct journal j;
    journal_start(&j, LOG_WAL);
    journal_image(&j);
    /* Every 24 bytes a valid head whose body, never valid, is the rest of the file. */
    const size_t size = (size_t)1 << 20;
    while (j.image.size < LOG_HEADER_SIZE + size)
        buf_u8(&j.image, 1);
    for (size_t at = LOG_HEADER_SIZE; at + 24 <= j.image.size; at += 24) {
        store_u32(j.image.data + at, (uint32_t)((j.image.size - at - 24) & ~(size_t)7));
        store_u64(j.image.data + at + 16, 0);
        image_repair_head(&j.image, IMAGE_FILE_ID, at);
    }
    const struct seen seen = image_read_buf(&j.image, 0);
    assert_int_equal(seen.status, TAMIZ_CORRUPTION);
    assert_non_null(strstr(seen.words, "overlap"));
    journal_free(&j);
}

/* ---- the golden file ---- */

/* TAMIZ_GOLDEN_WRITE=1 writes it anew: a change of format. */
static void the_golden_log_is_written_and_read_the_same(void **state)
{
    (void)state;
    struct journal j;
    struct test_op t;
    struct buf golden = buf_init(&alloc_libc);
    const char *path = TEST_SOURCE_DIR "/tests/golden/log/sealed.log";
    start_three(&j);
    assert_status(&j.t.op, log_seal(&j.t.op, &j.w), TAMIZ_OK);
    journal_image(&j);
    if (getenv("TAMIZ_GOLDEN_WRITE")) {
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(j.image.data, 1, j.image.size, f), j.image.size);
        assert_int_equal(fclose(f), 0);
    }
    test_op_init(&t);
    assert_status(&t.op, env_read_file(&t.op, tamiz_env_posix(), path, IO_LOG, 1 << 20, &golden),
                  TAMIZ_OK);
    assert_int_equal(golden.size, j.image.size);
    assert_memory_equal(golden.data, j.image.data, golden.size);
    const struct seen seen = image_read_buf(&golden, 0);
    assert_true(seen.records == 3 && seen.bytes == 5 + 12 + 300 && seen.sealed);
    buf_free(&golden);
    journal_free(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back_in_order_and_the_log_ends_clean),
        cmocka_unit_test(a_body_may_come_in_pieces),
        cmocka_unit_test(an_empty_body_and_one_of_2_to_the_32_bytes_are_refused),
        cmocka_unit_test(a_large_body_leaves_no_large_scratch_behind),
        cmocka_unit_test(a_record_comes_back_whole_whatever_its_pieces),
        cmocka_unit_test(R07_a_tail_torn_at_any_length_ends_the_log_and_the_next_file_goes_on),
        cmocka_unit_test(R07_junk_behind_the_last_record_is_dropped_and_counted),
        cmocka_unit_test(R08_zeros_behind_the_last_record_are_a_clean_end),
        cmocka_unit_test(R08_records_of_a_files_former_life_are_not_replayed),
        cmocka_unit_test(R09_damage_in_front_of_synced_records_is_reported),
        cmocka_unit_test(R09_the_words_name_file_offset_and_both_values),
        cmocka_unit_test(R09_junk_or_zeros_in_an_unsynced_record_leave_it_absent_or_exact),
        cmocka_unit_test(a_flip_of_any_bit_of_a_sealed_log_is_reported_or_harmless),
        cmocka_unit_test(a_log_cut_at_any_byte_yields_whole_records_and_no_error),
        cmocka_unit_test(a_hole_is_damage_only_where_the_machine_has_not_been_restarted),
        cmocka_unit_test(what_was_promised_is_found_behind_records_that_were_not),
        cmocka_unit_test(a_file_of_zeros_or_with_a_lone_broken_header_is_empty),
        cmocka_unit_test(a_broken_header_in_front_of_records_is_damage),
        cmocka_unit_test(a_newer_format_and_another_kind_are_refused_by_name),
        cmocka_unit_test(R11_after_a_failed_write_nothing_is_written_and_the_rest_of_it_is_cut),
        cmocka_unit_test(R12_a_failed_sync_is_final_and_durable_stays_what_it_was),
        cmocka_unit_test(a_sync_with_nothing_new_asks_the_system_for_nothing),
        cmocka_unit_test(creating_a_log_leaves_no_file_where_any_call_fails),
        cmocka_unit_test(preallocation_keeps_the_size_honest_and_a_refusal_only_ends_it),
        cmocka_unit_test(R09_a_power_cut_of_any_kind_leaves_a_beginning_of_the_log),
        cmocka_unit_test(R22_crafted_fields_with_valid_checks_are_survived),
        cmocka_unit_test(R22_random_damage_with_repaired_checks_is_survived),
        cmocka_unit_test(heads_that_overlap_end_the_search_in_bounded_work),
        cmocka_unit_test(the_golden_log_is_written_and_read_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
