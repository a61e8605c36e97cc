/* SPDX-License-Identifier: MIT
 *
 * `filter FILE...` shows what a filter is and how full; `filter calc` plans one: the arithmetic of
 * the plain Bloom filter first, then what each kind of this library would take for it.
 */
#include "filter.h"

#include "grid.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct flag filter_flags[] = {
    {"--keys", "N", "calc: for so many keys (1,000,000)"},
    {"--fpr", "P", "calc: how many bits for this false-positive rate"},
    {"--bits", "B", "calc: which rate for so many bits a key"},
    {"--no-picture", NULL, "FILE: only the figures"},
    {NULL, NULL, NULL},
};

enum { IMAGE_HEADER_BYTES = 64 }; /* docs/format/filter.md: the payload begins there */

/* ---- FILE ---- */

static void info_json(struct json *j, const char *path, const tamiz_filter_info *info)
{
    json_open(j, NULL, '{');
    json_text(j, "file", path);
    json_text(j, "kind", info->kind);
    json_u64(j, "keys", info->keys);
    json_u64(j, "bytes", info->bytes);
    json_real(j, "bits_per_key", info->bits_per_key);
    json_real(j, "fill", info->fill);
    json_real(j, "expected_fpr", info->expected_fpr);
    json_u64(j, "hashes", info->hashes);
    json_u64(j, "fingerprint_bits", info->fingerprint_bits);
    json_close(j, '}');
}

static void info_text(struct text *out, const char *path, const tamiz_filter_info *info)
{
    text_printf(out, "%s\n  kind          %s\n  keys          ", path, info->kind);
    count_show(out, info->keys);
    text_word(out, "\n  size          ");
    count_show(out, info->bytes);
    text_printf(out, " bytes, %.2f bits a key\n", info->bits_per_key);
    text_printf(out, "  fill          %.2f %%\n", info->fill * 100);
    text_printf(out, "  expected fpr  %.4f %%\n", info->expected_fpr * 100);
    if (info->hashes)
        text_printf(out, "  probes        %u a query\n", info->hashes);
    if (info->fingerprint_bits)
        text_printf(out, "  fingerprint   %u bits\n", info->fingerprint_bits);
}

static int file_show(const struct call *call, const char *path, struct text *out, struct json *j)
{
    struct text image = {0};
    tamiz_filter *filter = NULL;
    int status = filter_image_load(call, path, &image);
    if (status == EXIT_DONE) {
        const tamiz_status st = tamiz_filter_deserialize(image.data, image.size, &filter);
        if (st != TAMIZ_OK)
            status = fail_status(call, st, path);
    }
    if (status == EXIT_DONE) {
        tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
        tamiz_filter_info_get(filter, &info);
        if (call->json)
            info_json(j, path, &info);
        else
            info_text(out, path, &info);
        if (!call->json && !call_flag(call, "--no-picture") && image.size > IMAGE_HEADER_BYTES)
            bits_draw(out, (const unsigned char *)image.data + IMAGE_HEADER_BYTES,
                      image.size - IMAGE_HEADER_BYTES);
    }
    tamiz_filter_free(filter);
    text_free(&image);
    return status;
}

static int files_show(const struct call *call)
{
    struct text out = {0};
    struct json j = json_to(&out);
    int worst = EXIT_DONE;
    if (call->json) {
        json_open(&j, NULL, '{');
        json_open(&j, "filters", '[');
    }
    for (int i = 0; i < call->count; i++) {
        const int status = file_show(call, call->operands[i], &out, &j);
        if (status > worst)
            worst = status;
    }
    if (call->json) {
        json_close(&j, ']');
        json_close(&j, '}');
        text_word(&out, "\n");
    }
    const int status = deliver(call, &out);
    return status > worst ? status : worst;
}

/* ---- calc ---- */

/* The kinds that tables can have, each with a policy of the usual size. What this library does not
 * know is left out when it is asked to plan it. */
static const char *const kinds[] = {"bloom", "blocked", "split",    "ribbon",   "bumped",
                                    "fuse",  "fuse4",   "fuse8",    "fuse16",   "xor8",
                                    "xor16", "cuckoo",  "counting", "scalable", NULL};

static bool can_plan(const char *kind, double bits, double fpr, uint64_t keys,
                     tamiz_filter_info *info)
{
    tamiz_filter_policy policy = {.bits_per_key = bits, .fpr = fpr};
    (void)snprintf(policy.kind, sizeof policy.kind, "%s", kind);
    *info = (tamiz_filter_info)TAMIZ_FILTER_INFO_INIT;
    return tamiz_filter_plan(&policy, keys, info) == TAMIZ_OK;
}

const char *filter_usual(size_t index)
{
    static const char *const usual[] = {"bloom:10", "blocked:10", "split:10",   "ribbon:7",
                                        "bumped:7", "fuse:8",     "cuckoo:10.5"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        tamiz_filter_policy policy;
        tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
        if (tamiz_filter_policy_parse(usual[i], &policy) == TAMIZ_OK &&
            tamiz_filter_plan(&policy, 1000, &info) == TAMIZ_OK && index-- == 0)
            return usual[i];
    }
    return NULL;
}

struct plan {
    uint64_t keys;
    double fpr, bits; /* one of them is 0 */
    double m;         /* bits of the plain Bloom filter, all keys together */
    unsigned k;
    double p;
};

static void plan_make(struct plan *plan)
{
    const double n = (double)plan->keys;
    plan->m = plan->bits > 0 ? plan->bits * n : tamiz_bloom_bits(n, plan->fpr);
    plan->k = tamiz_bloom_hashes(plan->m, n);
    plan->p = tamiz_bloom_fpr(plan->m, plan->k, n);
}

static int plan_json(const struct call *call, const struct plan *plan)
{
    struct text out = {0};
    struct json j = json_to(&out);
    json_open(&j, NULL, '{');
    json_u64(&j, "keys", plan->keys);
    json_real(&j, "bits", plan->m);
    json_real(&j, "bits_per_key", plan->m / (double)plan->keys);
    json_u64(&j, "hashes", plan->k);
    json_real(&j, "expected_fpr", plan->p);
    json_open(&j, "kinds", '[');
    for (size_t i = 0; kinds[i]; i++) {
        tamiz_filter_info info;
        if (!can_plan(kinds[i], plan->bits, plan->fpr, plan->keys, &info))
            continue;
        json_open(&j, NULL, '{');
        json_text(&j, "kind", kinds[i]);
        json_u64(&j, "bytes", info.bytes);
        json_real(&j, "bits_per_key", info.bits_per_key);
        json_real(&j, "expected_fpr", info.expected_fpr);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    return deliver_json(call, &out);
}

static void formulas_text(struct text *out, const struct plan *plan)
{
    text_word(out, "Plain Bloom filter, n = ");
    count_show(out, plan->keys);
    text_word(out, plan->bits > 0 ? " keys, m given\n" : " keys, p given\n");
    text_word(out, "  m = -n ln p / (ln 2)^2   ");
    count_show(out, (uint64_t)(plan->m + 0.5));
    text_printf(out, " bits, %.3f a key, ", plan->m / (double)plan->keys);
    size_show(out, (uint64_t)(plan->m / 8));
    text_printf(out, "\n  k = (m/n) ln 2           %u hashes\n", plan->k);
    text_printf(out, "  p = (1 - e^(-kn/m))^k    %.4f %%, one absent key in %.0f\n\n",
                plan->p * 100, 1 / plan->p);
}

static int plan_text(const struct call *call, const struct plan *plan)
{
    struct text out = {0};
    struct grid g = {0};
    formulas_text(&out, plan);
    const int status = deliver(call, &out);
    grid_heading(&g, "kind");
    grid_heading(&g, "bits a key");
    grid_heading(&g, "size");
    grid_heading(&g, "expected fpr");
    for (size_t i = 0; kinds[i]; i++) {
        tamiz_filter_info info;
        if (!can_plan(kinds[i], plan->bits, plan->fpr, plan->keys, &info))
            continue;
        text_word(grid_cell(&g), kinds[i]);
        text_printf(grid_cell(&g), "%.2f", info.bits_per_key);
        size_show(grid_cell(&g), info.bytes);
        text_printf(grid_cell(&g), "%.4f %%", info.expected_fpr * 100);
    }
    grid_print(&g, terminal_width(), stdout);
    grid_free(&g);
    return status;
}

static int calc_run(const struct call *call)
{
    struct plan plan = {.keys = 1000000};
    if (!call_number(call, "--keys", &plan.keys) || !call_real(call, "--fpr", &plan.fpr) ||
        !call_real(call, "--bits", &plan.bits))
        return EXIT_USAGE;
    const bool fpr = call_flag(call, "--fpr") != NULL, bits = call_flag(call, "--bits") != NULL;
    if (fpr == bits)
        return misuse(call, "want one of --fpr P and --bits B");
    if (fpr && !(plan.fpr > 0 && plan.fpr < 1))
        return misuse(call, "--fpr %s: want 0 < P < 1", call_flag(call, "--fpr"));
    if (bits && !(plan.bits > 0 && plan.bits <= 64))
        return misuse(call, "--bits %s: want 0 < B <= 64", call_flag(call, "--bits"));
    if (plan.keys == 0 || plan.keys > UINT64_C(1) << 48)
        return misuse(call, "--keys %s: want 1..2^48", call_flag(call, "--keys"));
    plan_make(&plan);
    return call->json ? plan_json(call, &plan) : plan_text(call, &plan);
}

int filter_run(struct call *call, tamiz *db)
{
    (void)db;
    if (strcmp(call->operands[0], "calc") != 0)
        return files_show(call);
    return call->count == 1 ? calc_run(call) : misuse(call, "too many operands: want calc");
}
