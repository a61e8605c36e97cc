/* SPDX-License-Identifier: MIT
 *
 * The chores of every family: the image's header and checksum, sorting out equal hashes, trying
 * again, and asking many at once.
 *
 *     0  4  "tzfl"
 *     4  1  format version, 1
 *     5  1  family version
 *     6  2  family id; 0: none, 0x8000 on: the embedder's
 *     8  8  keys: distinct hashes
 *    16  8  payload bytes
 *    24  8  seed of the mixing
 *    32 16  four parameters of 4 bytes, the family's own
 *    48  8  expected false-positive rate, the bits of an IEEE double
 *    56  8  checksum: XXH3 of the payload, seeded with the XXH3 of bytes 0..55
 *    64     payload
 *
 * The checksum sees every byte but its own, and those it is compared with.
 */
#define _POSIX_C_SOURCE 200809L /* strnlen */
#include "filter/filter.h"

#include <string.h>

#include "base/checksum.h"
#include "filter/family.h"
#include "filter/repeats.h"
#include "filter/sort.h"

enum { FORMAT_VERSION = 1, ID_NONE = 0 };
static const uint8_t magic[4] = {'t', 'z', 'f', 'l'};

tamiz_status filter_too_large(struct op *op, uint64_t keys, double bits_per_key)
{
    return op_fail(op, TAMIZ_INVALID_ARGUMENT,
                   "a filter of %llu keys and %g bits each is larger than its kind can be",
                   (unsigned long long)keys, bits_per_key);
}

static inline __attribute__((always_inline)) uint64_t count_bits(const uint8_t *bytes,
                                                                 uint64_t size)
{
    uint64_t count = 0, at = 0;
    for (; at + 8 <= size; at += 8)
        count += (uint64_t)__builtin_popcountll(load_u64(bytes + at));
    for (; at < size; at++)
        count += (uint64_t)__builtin_popcount(bytes[at]);
    return count;
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("popcnt"))) static uint64_t count_bits_popcnt(const uint8_t *bytes,
                                                                    uint64_t size)
{
    return count_bits(bytes, size);
}
#endif

uint64_t filter_count_bits(const uint8_t *bytes, uint64_t size)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("popcnt"))
        return count_bits_popcnt(bytes, size);
#endif
    return count_bits(bytes, size);
}

/* NULL: "none". The policy was checked. */
static const struct filter_family *family_of(const tamiz_filter_policy *policy)
{
    return policy->custom ? &filter_custom : filter_family_by_name(policy->kind);
}

tamiz_status filter_plan_make(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                              struct filter_plan *plan, const struct filter_family **family)
{
    *plan = (struct filter_plan){.keys = keys, .expected_fpr = 1, .custom = policy->custom};
    *family = NULL;
    tamiz_status st;
    TRY(filter_policy_check(op, policy));
    *family = family_of(policy);
    if (*family)
        TRY((*family)->plan(op, policy, keys, plan));
    if (plan->payload_bytes > FILTER_PAYLOAD_MAX ||
        plan->payload_bytes > SIZE_MAX / 2 - FILTER_HEADER_SIZE)
        TRY(filter_too_large(op, keys, (double)plan->payload_bytes * 8 / (double)keys));
done:
    return st;
}

static uint64_t image_checksum(const uint8_t *image, uint64_t payload_bytes)
{
    const uint64_t of_header = checksum(0, 0, slice_of(image, FILTER_HEADER_SIZE - 8));
    return checksum(of_header, 0, slice_of(image + FILTER_HEADER_SIZE, (size_t)payload_bytes));
}

void filter_header_write(const struct filter_family *family, const struct filter_plan *plan,
                         uint8_t *image)
{
    uint64_t rate_bits;
    memcpy(&rate_bits, &plan->expected_fpr, sizeof rate_bits);
    memcpy(image, magic, sizeof magic);
    image[4] = FORMAT_VERSION;
    image[5] = plan->custom ? plan->custom->version : family ? family->version : 0;
    store_u16(image + 6, plan->custom ? plan->custom->id : family ? family->id : ID_NONE);
    store_u64(image + 8, plan->keys);
    store_u64(image + 16, plan->payload_bytes);
    store_u64(image + 24, plan->seed);
    for (int i = 0; i < 4; i++)
        store_u32(image + 32 + 4 * i, plan->parameters[i]);
    store_u64(image + 48, rate_bits);
    store_u64(image + 56, image_checksum(image, plan->payload_bytes));
}

/* Two arrays of n, one allocation: hashes as the family wants them, and room to sort. */
struct workspace {
    uint64_t *sorted, *scratch;
    size_t distinct;
};

static void gather(const struct filter_family *family, uint64_t seed, const uint64_t *hashes,
                   size_t n, struct workspace *w)
{
    for (size_t i = 0; i < n; i++)
        w->sorted[i] = !family || family->unmixed ? hashes[i] : filter_mix(hashes[i], seed);
    sort_hashes(w->sorted, n, w->scratch);
    w->distinct = sort_unique(w->sorted, n);
}

/* Any numbers that differ will do, with 0 first. */
static uint64_t seed_of(unsigned attempt)
{
    return attempt * FILTER_MULTIPLIER;
}

/* Tries seeds until one works, at most family->attempts of them. */
static tamiz_status fill_payload(struct op *op, const struct filter_family *family,
                                 struct filter_plan *plan, const uint64_t *hashes, size_t n,
                                 struct workspace *w, uint8_t *payload)
{
    tamiz_status st;
    for (unsigned attempt = 0;; attempt++) {
        memset(payload, 0, (size_t)plan->payload_bytes);
        st = family->build(op, plan, w->sorted, w->distinct, payload);
        if (st != TAMIZ_NOT_SUPPORTED || attempt + 1 >= family->attempts)
            return st;
        op_forgive(op);
        plan->seed = seed_of(attempt + 1);
        gather(family, plan->seed, hashes, n, w);
    }
}

/* The promise becomes a fact: what the bits of this very payload say. */
static void rate_take(const struct filter_family *family, const uint8_t *payload,
                      struct filter_plan *plan)
{
    struct filter_view view = {.family = family,
                               .payload = payload,
                               .payload_bytes = plan->payload_bytes,
                               .keys = plan->keys,
                               .seed = plan->seed};
    if (!family || !family->rate)
        return;
    memcpy(view.parameters, plan->parameters, sizeof view.parameters);
    plan->expected_fpr = family->rate(&view);
}

/* Takes memory for the image of `plan`. */
static tamiz_status image_new(struct op *op, const struct filter_plan *plan, uint8_t **image,
                              size_t *size)
{
    *size = FILTER_HEADER_SIZE + (size_t)plan->payload_bytes;
    *image = mem_new_aligned(op->alloc, *size, FILTER_ALIGN);
    return *image ? TAMIZ_OK : op_fail_memory(op);
}

static void image_free(struct op *op, uint8_t **image, size_t *size)
{
    mem_free_aligned(op->alloc, *image, *size, FILTER_ALIGN);
    *image = NULL;
    *size = 0;
}

/* How any family is built: mixed, sorted, distinct. */
static tamiz_status make_sorted(struct op *op, const tamiz_filter_policy *policy,
                                const uint64_t *hashes, size_t n, struct filter_plan *plan,
                                uint8_t **image, size_t *size)
{
    const struct filter_family *family = family_of(policy);
    struct workspace w = {NULL, NULL, 0};
    tamiz_status st = TAMIZ_OK;
    w.sorted = mem_new_aligned(op->alloc, n * 2 * sizeof *w.sorted, FILTER_ALIGN);
    if (!w.sorted)
        TRY(op_fail_memory(op));
    w.scratch = w.sorted + n;
    gather(family, 0, hashes, n, &w);
    TRY(filter_plan_make(op, policy, w.distinct, plan, &family));
    TRY(image_new(op, plan, image, size));
    if (family)
        TRY(fill_payload(op, family, plan, hashes, n, &w, *image + FILTER_HEADER_SIZE));
done:
    mem_free_aligned(op->alloc, w.sorted, n * 2 * sizeof *w.sorted, FILTER_ALIGN);
    return st;
}

/* Tries the seeds that sorting would try, but only a few. */
static size_t fill_loose(struct op *op, const struct filter_family *family,
                         struct filter_plan *plan, const uint64_t *hashes, size_t n, uint8_t *image,
                         uint64_t *seen, size_t room)
{
    enum { ATTEMPTS = 4 };
    size_t count = SIZE_MAX;
    for (unsigned attempt = 0; attempt < ATTEMPTS && count == SIZE_MAX; attempt++) {
        plan->seed = seed_of(attempt);
        memset(image, 0, FILTER_HEADER_SIZE + (size_t)plan->payload_bytes);
        count = filter_family_best(family)->build_loose(op->alloc, plan, hashes, n,
                                                        image + FILTER_HEADER_SIZE, seen, room);
    }
    return count;
}

/*
 * The short way, with no sorting: a filter that has no false negatives knows its repeats. Only what
 * it took for known when it came can be one, and those few are counted. The size depends on the
 * number of distinct hashes: where there are repeats, the filter is made again, smaller; where
 * there are many, *made stays false, and sorting is the better way.
 */
static tamiz_status make_loose(struct op *op, const tamiz_filter_policy *policy,
                               const uint64_t *hashes, size_t n, struct filter_plan *plan,
                               uint8_t **image, size_t *size, bool *made)
{
    const struct filter_family *family;
    const size_t room = n / 8 + 16;
    size_t distinct = n, repeats = 0;
    tamiz_status st = TAMIZ_OK;
    uint64_t *seen = mem_new(op->alloc, room * sizeof *seen);
    if (!seen)
        TRY(op_fail_memory(op));
    for (bool counted = false; !*made; counted = true) {
        TRY(filter_plan_make(op, policy, distinct, plan, &family));
        TRY(image_new(op, plan, image, size));
        const size_t count = fill_loose(op, family, plan, hashes, n, *image, seen, room);
        if (count > room)
            break;
        if (!counted)
            TRY(repeats_count(op, hashes, n, seen, count, &repeats));
        *made = counted || repeats == 0;
        distinct = n - repeats;
        if (!*made)
            image_free(op, image, size);
    }
done:
    mem_free(op->alloc, seen, room * sizeof *seen);
    return st;
}

tamiz_status filter_image_make(struct op *op, const tamiz_filter_policy *policy,
                               const uint64_t *hashes, size_t n, uint8_t **image, size_t *size)
{
    struct filter_plan plan;
    bool made = false;
    tamiz_status st;
    *image = NULL;
    *size = 0;
    TRY(filter_policy_check(op, policy));
    if (family_of(policy) && family_of(policy)->build_loose)
        TRY(make_loose(op, policy, hashes, n, &plan, image, size, &made));
    if (!made) {
        image_free(op, image, size);
        TRY(make_sorted(op, policy, hashes, n, &plan, image, size));
    }
    rate_take(family_of(policy), *image + FILTER_HEADER_SIZE, &plan);
    filter_header_write(family_of(policy), &plan, *image);
done:
    if (st != TAMIZ_OK)
        image_free(op, image, size);
    return st;
}

tamiz_status filter_image_build(struct op *op, const tamiz_filter_policy *policy,
                                const uint64_t *hashes, size_t n, struct buf *image)
{
    uint8_t *made = NULL;
    size_t size = 0;
    tamiz_status st;
    if (!policy->custom && strcmp(policy->kind, "none") == 0)
        return TAMIZ_OK;
    TRY(filter_image_make(op, policy, hashes, n, &made, &size));
    buf_append(image, made, size);
    if (image->failed)
        TRY(op_fail_memory(op));
done:
    mem_free_aligned(op->alloc, made, size, FILTER_ALIGN);
    return st;
}

/* What the header says, once its own arithmetic and the checksum are right. */
struct header {
    uint8_t format, version;
    uint16_t id;
    uint64_t checksum;
};

static tamiz_status header_read(struct op *op, struct slice image, struct header *header,
                                struct filter_view *view)
{
    struct reader r = reader_of(image);
    const struct slice word = reader_take(&r, sizeof magic);
    if (!slice_equal(word, slice_of(magic, sizeof magic)))
        return op_fail(op, TAMIZ_CORRUPTION, "filter: %zu bytes that do not begin with 'tzfl'",
                       image.size);
    header->format = reader_u8(&r);
    header->version = reader_u8(&r);
    header->id = reader_u16(&r);
    view->keys = reader_u64(&r);
    view->payload_bytes = reader_u64(&r);
    view->seed = reader_u64(&r);
    for (int i = 0; i < 4; i++)
        view->parameters[i] = reader_u32(&r);
    const uint64_t rate_bits = reader_u64(&r);
    memcpy(&view->expected_fpr, &rate_bits, sizeof rate_bits);
    header->checksum = reader_u64(&r);
    if (!r.bad && header->format != FORMAT_VERSION)
        return op_fail(op, TAMIZ_NOT_SUPPORTED, "filter: format version %u: this library reads %d",
                       header->format, FORMAT_VERSION);
    if (r.bad || view->payload_bytes != reader_left(&r))
        return op_fail(op, TAMIZ_CORRUPTION, "filter: %zu bytes, of which %llu should be payload",
                       image.size, (unsigned long long)view->payload_bytes);
    view->payload = r.at;
    const uint64_t sum = image_checksum(image.data, view->payload_bytes);
    if (sum != header->checksum)
        return op_fail(op, TAMIZ_CORRUPTION, "filter: checksum %016llx: want %016llx",
                       (unsigned long long)header->checksum, (unsigned long long)sum);
    if (!(view->expected_fpr >= 0 && view->expected_fpr <= 1))
        return op_fail(op, TAMIZ_CORRUPTION, "filter: expected rate %g: want 0..1",
                       view->expected_fpr);
    return TAMIZ_OK;
}

static tamiz_status view_open(struct op *op, struct slice image, const tamiz_filter_family *custom,
                              struct filter_view *view)
{
    struct header header = {0, 0, 0, 0};
    tamiz_status st;
    TRY(header_read(op, image, &header, view));
    if (header.id == ID_NONE)
        return TAMIZ_OK;
    const bool own = custom && custom->id == header.id;
    view->family = own ? &filter_custom : filter_family_by_id(header.id);
    if (!view->family)
        TRY(op_fail(op, TAMIZ_NOT_SUPPORTED, "filter: family %u is unknown here", header.id));
    if (own ? header.version != custom->version
            : header.version < 1 || header.version > view->family->version)
        TRY(op_fail(op, TAMIZ_NOT_SUPPORTED, "filter %s: version %u is unknown here",
                    own ? custom->name : view->family->name, header.version));
    if (own)
        view->custom = custom;
    TRY(view->family->open(op, view));
    view->family = filter_family_best(view->family);
done:
    return st;
}

tamiz_status filter_view_open_custom(struct op *op, struct slice image,
                                     const tamiz_filter_family *custom, struct filter_view *view)
{
    *view = (struct filter_view){.expected_fpr = 1};
    const tamiz_status st = view_open(op, image, custom, view);
    if (st != TAMIZ_OK)
        *view = (struct filter_view){.expected_fpr = 1};
    return st;
}

tamiz_status filter_view_open(struct op *op, struct slice image, struct filter_view *view)
{
    return filter_view_open_custom(op, image, NULL, view);
}

/* So many hashes are prefetched before the first is asked for: enough to keep a core's outstanding
 * misses busy, few enough to be there still. */
enum { BATCH = 32 };

void filter_view_may_contain_many(const struct filter_view *view, const uint64_t *hashes, size_t n,
                                  bool *maybe)
{
    if (!view->family) {
        memset(maybe, 1, n * sizeof *maybe);
        return;
    }
    if (view->family->may_contain_many) {
        view->family->may_contain_many(view, hashes, n, maybe);
        return;
    }
    for (size_t start = 0; start < n; start += BATCH) {
        const size_t end = n - start < BATCH ? n : start + BATCH;
        for (size_t i = start; i < end; i++)
            filter_view_prefetch(view, hashes[i]);
        for (size_t i = start; i < end; i++)
            maybe[i] = view->family->may_contain(view, hashes[i]);
    }
}

void filter_info_fill(const struct filter_family *family, const struct filter_plan *plan,
                      tamiz_filter_info *info)
{
    const char *name = plan->custom ? plan->custom->name : family ? family->name : "none";
    memset(info->kind, 0, sizeof info->kind);
    memcpy(info->kind, name, strnlen(name, sizeof info->kind - 1));
    info->keys = plan->keys;
    info->bytes = FILTER_HEADER_SIZE + plan->payload_bytes;
    info->bits_per_key = plan->keys ? (double)plan->payload_bytes * 8 / (double)plan->keys : 0;
    info->expected_fpr = plan->expected_fpr;
    info->fill = 0;
    info->hashes = 0;
    info->fingerprint_bits = 0;
}

void filter_view_header(const struct filter_view *view, tamiz_filter_info *info)
{
    const bool own = view->family == &filter_custom;
    const struct filter_plan plan = {.keys = view->keys,
                                     .payload_bytes = view->payload_bytes,
                                     .expected_fpr = view->expected_fpr,
                                     .custom = own ? view->custom : NULL};
    filter_info_fill(view->family, &plan, info);
}

void filter_view_info(const struct filter_view *view, tamiz_filter_info *info)
{
    filter_view_header(view, info);
    if (view->family && view->family->add)
        info->expected_fpr = view->family->rate(view);
    if (view->family && view->family->describe)
        view->family->describe(view, info);
}
