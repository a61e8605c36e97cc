/* SPDX-License-Identifier: MIT
 *
 * `lab curve`: every kind of filter, rate against bits per key: the line that theory draws, and
 * what was measured on absent keys, with an interval; and what building and asking cost.
 */
#define _POSIX_C_SOURCE 200809L /* strtok_r */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab_kit.h"
#include "progress.h"

enum { PROBES_MOST = 4000000, FALSE_POSITIVES_WANTED = 400, PROBES_LEAST = 200000 };
static const double bits_asked[] = {4, 6, 8, 10, 12, 16, 20};
enum { STEPS = sizeof bits_asked / sizeof *bits_asked };

/* Wilson's interval, two standard deviations to either side. */
static void wilson(double hits, double n, double *low, double *high)
{
    const double z = 2, rate = hits / n, z2 = z * z / n;
    const double middle = (rate + z2 / 2) / (1 + z2);
    const double half = z / (1 + z2) * sqrt(rate * (1 - rate) / n + z2 / (4 * n));
    *low = middle > half ? middle - half : 0;
    *high = middle + half;
}

static double cost_of_asking(const tamiz_filter *filter, struct random *random)
{
    enum { ASKED = 100000 };
    uint64_t *hashes = tool_resize(NULL, ASKED * sizeof *hashes), yes = 0;
    for (size_t i = 0; i < ASKED; i++)
        hashes[i] = random_u64(random);
    double best = INFINITY;
    for (int round = 0; round < 3; round++) {
        const uint64_t start = tool_now_ns();
        for (size_t i = 0; i < ASKED; i++)
            yes += tamiz_filter_may_contain(filter, hashes[i]);
        const double ns = (double)(tool_now_ns() - start) / ASKED;
        best = ns < best ? ns : best;
    }
    free(hashes);
    return yes <= 3 * ASKED ? best : 0; /* so that the loop is not left out */
}

static void filter_measure(struct sheet *s, const tamiz_filter *filter, struct random *random,
                           double build_ns)
{
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    tamiz_filter_info_get(filter, &info);
    const double wanted = FALSE_POSITIVES_WANTED / (info.expected_fpr + 1e-12);
    const uint64_t probes = wanted > PROBES_MOST    ? PROBES_MOST
                            : wanted < PROBES_LEAST ? PROBES_LEAST
                                                    : (uint64_t)wanted;
    uint64_t wrong = 0;
    double low, high;
    for (uint64_t i = 0; i < probes; i++)
        wrong += tamiz_filter_may_contain(filter, random_u64(random));
    wilson((double)wrong, (double)probes, &low, &high);
    sheet_word(s, info.kind);
    sheet_number(s, info.bits_per_key);
    sheet_number(s, (double)info.bytes);
    sheet_number(s, info.expected_fpr);
    sheet_number(s, wrong ? (double)wrong / (double)probes : NAN);
    sheet_number(s, low);
    sheet_number(s, high);
    sheet_number(s, (double)probes);
    sheet_number(s, build_ns);
    sheet_number(s, cost_of_asking(filter, random));
}

static int kind_run(struct sheet *s, struct call *call, const char *kind, const uint64_t *hashes,
                    size_t n, struct random *random)
{
    double taken = 0; /* kinds offer steps of their own: each size once */
    for (int i = 0; i < STEPS; i++) {
        tamiz_filter_policy policy = {.bits_per_key = bits_asked[i]};
        tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
        tamiz_filter *filter = NULL;
        (void)snprintf(policy.kind, sizeof policy.kind, "%.*s", (int)strcspn(kind, ":"), kind);
        if (tamiz_filter_plan(&policy, n, &info) != TAMIZ_OK)
            continue;
        if (fabs(info.bits_per_key - taken) < 0.1)
            continue;
        taken = info.bits_per_key;
        const uint64_t start = tool_now_ns();
        const tamiz_status st = tamiz_filter_build(&policy, hashes, n, &filter);
        const double build_ns = (double)(tool_now_ns() - start) / (double)n;
        if (st == TAMIZ_NOT_SUPPORTED)
            continue; /* it did not come out: the store would go on without */
        if (st != TAMIZ_OK)
            return fail_status(call, st, kind);
        filter_measure(s, filter, random, build_ns);
        tamiz_filter_free(filter);
    }
    return EXIT_DONE;
}

static void columns_make(struct sheet *s)
{
    sheet_column(s, "kind", "kind", SHEET_WORD);
    sheet_column(s, "bits_per_key", "bits a key", SHEET_REAL);
    sheet_column(s, "filter_bytes", "size", SHEET_SIZE);
    sheet_column(s, "expected_fpr", "expected", SHEET_PERCENT);
    sheet_column(s, "measured_fpr", "measured", SHEET_PERCENT);
    sheet_column(s, "measured_fpr_low", "95 % from", SHEET_PERCENT);
    sheet_column(s, "measured_fpr_high", "to", SHEET_PERCENT);
    sheet_column(s, "probes", "probes", SHEET_COUNT);
    sheet_column(s, "build_ns", "build ns", SHEET_REAL);
    sheet_column(s, "query_ns", "query ns", SHEET_REAL);
    sheet_chart(s,
                &(struct sheet_chart){
                    .title = "False-positive rate against bits per key",
                    .caption = "Lines of dashes: what theory says of each kind. Points: measured "
                               "on keys that are not in the filter. Lower is better; each step "
                               "down is a tenth.",
                    .x = "bits_per_key",
                    .y = {"measured_fpr", "expected_fpr"},
                    .by = "kind",
                    .dashed = "expected_fpr",
                    .y_label = "false-positive rate",
                    .log_y = true});
    sheet_chart(s, &(struct sheet_chart){.title = "What one question costs",
                                         .caption = "Absent keys, one after another, the filter in "
                                                    "the processor's cache where it fits.",
                                         .x = "bits_per_key",
                                         .y = {"query_ns"},
                                         .by = "kind",
                                         .y_label = "ns a query"});
    sheet_chart(s, &(struct sheet_chart){.title = "What building costs",
                                         .caption = "The whole filter, divided by its keys.",
                                         .x = "bits_per_key",
                                         .y = {"build_ns"},
                                         .by = "kind",
                                         .y_label = "ns a key"});
}

static int kinds_run(struct sheet *s, struct call *call, const uint64_t *hashes, size_t n,
                     struct random *random)
{
    static const char *const kinds[] = {"bloom", "blocked", "split", "ribbon", "bumped",
                                        "fuse",  "fuse4",   "xor8",  "xor16",  "cuckoo"};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    const char *asked = call_flag(call, "--filters");
    struct progress bar = progress_start("filters", asked ? 0 : KINDS);
    int status = EXIT_DONE;
    char list[512], *rest = NULL;
    if (asked) {
        (void)snprintf(list, sizeof list, "%s", asked);
        for (char *kind = strtok_r(list, ", ", &rest); kind && status == EXIT_DONE;
             kind = strtok_r(NULL, ", ", &rest))
            status = kind_run(s, call, kind, hashes, n, random);
        return status;
    }
    for (int i = 0; i < KINDS && status == EXIT_DONE; i++) {
        progress_now(&bar, (uint64_t)i);
        status = kind_run(s, call, kinds[i], hashes, n, random);
    }
    progress_end(&bar);
    return status;
}

int lab_curve(struct call *call)
{
    struct sheet s = {.experiment = "curve", .title = "Kinds of filters: rate against bits"};
    uint64_t n = 100000;
    if (!call_count(call, "--count", &n) || !call_number(call, "--seed", &s.seed))
        return EXIT_USAGE;
    if (n == 0 || n > 100000000)
        return misuse(call, "--count: want 1..100000000");
    struct random random = {s.seed};
    uint64_t *hashes = tool_resize(NULL, (size_t)n * sizeof *hashes);
    for (uint64_t i = 0; i < n; i++)
        hashes[i] = random_u64(&random);
    columns_make(&s);
    count_show(&s.setting, n);
    text_word(&s.setting, " random hashes in each filter, asked for others.");
    int status = kinds_run(&s, call, hashes, (size_t)n, &random);
    if (status == EXIT_DONE)
        status = s.cell_count ? sheet_tell(&s, call) : misuse(call, "--filters: no kind of filter");
    free(hashes);
    sheet_free(&s);
    return status;
}
