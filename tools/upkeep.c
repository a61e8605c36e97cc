/* SPDX-License-Identifier: MIT
 *
 * Looking after a store: verify, flush, compact, destroy.
 */
#include "json.h"
#include "progress.h"
#include "tool.h"

const struct flag compact_flags[] = {
    {"--from", "KEY", "first key, itself included"},
    {"--to", "KEY", "end, itself excluded"},
    {NULL, NULL, NULL},
};

/* ---- verify ---- */

struct finds {
    struct text lines;  /* for people */
    struct text quoted; /* for JSON: the items of an array */
    struct progress bar;
};

static void find_take(void *ctx, const char *text)
{
    struct finds *finds = ctx;
    struct text item = {0};
    struct json j = json_to(&item);
    text_printf(&finds->lines, "%s\n", text);
    json_text(&j, NULL, text);
    if (finds->quoted.size)
        text_word(&finds->quoted, ",");
    text_word(&finds->quoted, item.data);
    text_free(&item);
}

static void verify_progress(void *ctx, uint64_t done_bytes, uint64_t total_bytes)
{
    struct finds *finds = ctx;
    finds->bar.total = total_bytes;
    progress_at(&finds->bar, done_bytes & ~UINT64_C(255));
}

static void report_json(struct text *out, const tamiz_report *r, const struct finds *finds)
{
    struct json j = json_to(out);
    json_open(&j, NULL, '{');
    json_u64(&j, "files", r->files);
    json_u64(&j, "blocks", r->blocks);
    json_u64(&j, "keys", r->keys);
    json_u64(&j, "damaged", r->damaged);
    json_u64(&j, "lost_bytes", r->lost_bytes);
    json_open(&j, "finds", '[');
    if (finds->quoted.size)
        json_raw(&j, NULL, finds->quoted.data);
    json_close(&j, ']');
    json_close(&j, '}');
    text_word(out, "\n");
}

static void report_text(struct text *out, const tamiz_report *r, const struct finds *finds)
{
    if (finds->lines.size)
        text_word(out, finds->lines.data);
    count_show(out, r->files);
    text_word(out, " files, ");
    count_show(out, r->blocks);
    text_word(out, " blocks, ");
    count_show(out, r->keys);
    text_word(out, " keys: ");
    if (r->damaged) {
        count_show(out, r->damaged);
        text_word(out, " damaged, ");
        size_show(out, r->lost_bytes);
        text_word(out, " unreadable\n");
    } else {
        text_word(out, "all fine, and no filter denies a key\n");
    }
}

static int report_deliver(const struct call *call, const tamiz_report *r, const struct finds *finds)
{
    struct text out = {0};
    if (call->json)
        report_json(&out, r, finds);
    else
        report_text(&out, r, finds);
    return deliver(call, &out);
}

static int verify_deliver(const struct call *call, const tamiz_report *r, const struct finds *finds)
{
    const int status = report_deliver(call, r, finds);
    return status == EXIT_DONE && r->damaged ? EXIT_NO : status;
}

static int verify_open(struct call *call, tamiz *db)
{
    struct finds finds = {.bar = progress_start("verifying", 0)};
    tamiz_report report = TAMIZ_REPORT_INIT;
    report.find = find_take;
    report.progress = verify_progress;
    report.ctx = &finds;
    const tamiz_status st = tamiz_verify(db, &report);
    progress_end(&finds.bar);
    const bool checked = st == TAMIZ_OK || (st == TAMIZ_CORRUPTION && report.damaged);
    const int status =
        checked ? verify_deliver(call, &report, &finds) : fail_status(call, st, NULL);
    text_free(&finds.lines);
    text_free(&finds.quoted);
    return status;
}

/* A store that is too damaged to be opened is a find as well, not a failure of the check. */
static int verify_unopened(struct call *call, const char *detail)
{
    struct finds finds = {0};
    tamiz_report report = TAMIZ_REPORT_INIT;
    find_take(&finds, detail);
    report.damaged = 1;
    const int status = verify_deliver(call, &report, &finds);
    text_free(&finds.lines);
    text_free(&finds.quoted);
    return status;
}

int verify_run(struct call *call, tamiz *db)
{
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    tamiz *opened = NULL;
    if (db)
        return verify_open(call, db);
    if (call->options.size && tamiz_options_set(&options, call->options.data) != TAMIZ_OK)
        return fail_status(call, TAMIZ_INVALID_ARGUMENT, "-o");
    options.create_if_missing = false;
    options.read_only = true;
    const tamiz_status st = tamiz_open(call->operands[0], &options, &opened);
    if (st == TAMIZ_CORRUPTION)
        return verify_unopened(call, tamiz_error_detail());
    if (st == TAMIZ_NOT_FOUND)
        return fail(call, "%s: there is no store", call->operands[0]);
    if (st != TAMIZ_OK)
        return fail_status(call, st, NULL);
    const int status = verify_open(call, opened);
    (void)tamiz_close(opened); /* opened for reading: nothing that could be lost */
    return status;
}

/* ---- repair ---- */

int repair_run(struct call *call, tamiz *db)
{
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    if (db)
        return misuse(call, "the store is open");
    if (call->options.size && tamiz_options_set(&options, call->options.data) != TAMIZ_OK)
        return fail_status(call, TAMIZ_INVALID_ARGUMENT, "-o");
    struct finds finds = {.bar = progress_start("repairing", 0)};
    tamiz_report report = TAMIZ_REPORT_INIT;
    report.find = find_take;
    report.progress = verify_progress;
    report.ctx = &finds;
    const tamiz_status st = tamiz_repair(call->operands[0], &options, &report);
    progress_end(&finds.bar);
    int status;
    if (st == TAMIZ_NOT_FOUND)
        status = fail(call, "%s", tamiz_error_detail());
    else if (st != TAMIZ_OK)
        status = fail_status(call, st, NULL);
    else
        status = report_deliver(call, &report, &finds);
    text_free(&finds.lines);
    text_free(&finds.quoted);
    return status;
}

/* ---- the rest ---- */

int flush_run(struct call *call, tamiz *db)
{
    return deliver_done(call, tamiz_flush(db));
}

int compact_run_command(struct call *call, tamiz *db)
{
    struct text from = {0}, to = {0};
    const char *from_typed = call_flag(call, "--from");
    const char *to_typed = call_flag(call, "--to");
    int status = EXIT_USAGE;
    if ((!from_typed || call_bytes(call, from_typed, &from)) &&
        (!to_typed || call_bytes(call, to_typed, &to)))
        status = deliver_done(call, tamiz_compact(db, from_typed ? from.data : NULL, from.size,
                                                  to_typed ? to.data : NULL, to.size));
    text_free(&from);
    text_free(&to);
    return status;
}

int destroy_run(struct call *call, tamiz *db)
{
    if (db)
        return misuse(call, "the store is open");
    const tamiz_status st = tamiz_destroy(call->operands[0]);
    if (st == TAMIZ_NOT_FOUND)
        return fail(call, "%s", tamiz_error_detail());
    return deliver_done(call, st);
}
