/* SPDX-License-Identifier: MIT
 *
 * The cuckoo filter: a hash table of fingerprints in buckets of four. A key may be in one of two
 * buckets, and either can be told from the other and the fingerprint, so that a fingerprint that is
 * in the way can move to its other bucket with nobody knowing the key. It can remove, which Bloom's
 * cannot, and is smaller below 3 %; built once, fuse and ribbon beat it.
 *
 *     bucket i     | f1 | f2 | f3 | -- |            key: fingerprint f, buckets i and i'
 *     bucket i'    | f4 | f5 | f6 | f7 |            i' = (hash(f) - i) mod buckets, and back
 *
 * rate = 1 - (1 - 2^-f)^(8 load), about 8 load / 2^f; buckets of four can be filled to 95 %, so
 * (log2(1/rate) + 3) / 0.95 bits a key. The rate that info tells is counted: the states (bucket,
 * fingerprint) of a query that find something, over all there are.
 *
 * B. Fan, D. Andersen, M. Kaminsky, M. Mitzenmacher, "Cuckoo filter: practically better than
 * Bloom", CoNEXT 2014. With a difference instead of an exclusive or, any number of buckets will do.
 *
 * The same hash can be added up to eight times, and as often removed. A full filter says
 * TAMIZ_NO_SPACE: the moves made so far are undone, and nothing is lost.
 *
 *   payload: buckets of four slots of `width` bits, lowest bit first, 0 is free; eight bytes of 0.
 *   parameters: [0] width, 4..16; [2],[3] buckets, low and high half.
 */
#include <math.h>

#include "base/fetch.h"
#include "filter/family.h"

enum { SLOTS = 4, WIDTH_MIN = 4, WIDTH_MAX = 16, PAD = 8, DEFAULT_WIDTH = 10 };
enum { MOVES_MAX = 500, ATTEMPTS = 64 };
#define LOAD 0.95
/* Of narrow fingerprints, whose few values give a key too few second buckets to choose from; found
 * by building: a million keys of 6 bits did not go in at 0.95, nor of 4 at 0.90. */
static double load_for(unsigned width)
{
    return width >= 7 ? LOAD : width >= 5 ? 0.90 : 0.80;
}

struct table {
    uint8_t *payload; /* written to only while building, adding, removing */
    uint64_t buckets;
    unsigned width;
};

/* Where a key may be. */
struct place {
    uint64_t bucket;
    uint32_t fingerprint;
};

static double buckets_for(double keys, double load)
{
    const double buckets = ceil(keys / load / SLOTS - 1e-9);
    return buckets < 1 ? 1 : buckets;
}

static double rate_for(unsigned width, double load)
{
    return -expm1(2 * SLOTS * load * log1p(-1 / (ldexp(1, (int)width) - 1)));
}

static unsigned width_for(const tamiz_filter_policy *policy, double slots_per_key)
{
    unsigned width = WIDTH_MIN;
    if (policy->fpr > 0) {
        while (width < WIDTH_MAX && rate_for(width, 1 / slots_per_key) > policy->fpr)
            width++;
        return width;
    }
    if (!(policy->bits_per_key > 0))
        return DEFAULT_WIDTH;
    const double wanted = floor(policy->bits_per_key / slots_per_key + 0.5);
    return wanted < WIDTH_MIN ? WIDTH_MIN : wanted > WIDTH_MAX ? WIDTH_MAX : (unsigned)wanted;
}

static uint64_t bytes_for(uint64_t buckets, unsigned width)
{
    return (buckets * SLOTS * width + 7) / 8 + PAD;
}

static tamiz_status cuckoo_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                                struct filter_plan *plan)
{
    const double n = keys ? (double)keys : 1;
    if (keys > FILTER_PAYLOAD_MAX / 4)
        return filter_too_large(op, keys, policy->bits_per_key);
    const unsigned width = width_for(policy, buckets_for(n, LOAD) * SLOTS / n);
    const uint64_t buckets = (uint64_t)buckets_for(n, load_for(width));
    const double slots_per_key = (double)buckets * SLOTS / n;
    plan->parameters[0] = width;
    plan->parameters[2] = (uint32_t)buckets;
    plan->parameters[3] = (uint32_t)(buckets >> 32);
    plan->payload_bytes = bytes_for(buckets, width);
    plan->expected_fpr = keys ? rate_for(width, 1 / slots_per_key) : 0;
    return TAMIZ_OK;
}

static inline struct table table_of(const uint32_t parameters[4], uint8_t *payload)
{
    return (struct table){payload, parameters[2] | (uint64_t)parameters[3] << 32, parameters[0]};
}

/* For reading only; the payload of a view is not written through this. */
static inline struct table table_of_view(const struct filter_view *view)
{
    union {
        const uint8_t *read;
        uint8_t *write;
    } payload = {.read = view->payload};
    return table_of(view->parameters, payload.write);
}

static inline struct place place_of(const struct table *t, uint64_t mixed)
{
    const uint64_t fingerprints = (UINT64_C(1) << t->width) - 1;
    return (struct place){mul_high(mixed, t->buckets),
                          (uint32_t)mul_high(mixed * FILTER_MULTIPLIER, fingerprints) + 1};
}

static inline uint64_t other_bucket(const struct table *t, struct place place)
{
    const uint64_t sum = mul_high(filter_mix(place.fingerprint, 0), t->buckets);
    return sum >= place.bucket ? sum - place.bucket : sum + t->buckets - place.bucket;
}

/* The four slots, in the lower bits. */
static inline uint64_t bucket_load(const struct table *t, uint64_t bucket)
{
    const uint64_t bit = bucket * SLOTS * t->width; /* a multiple of 4 */
    return load_u64(t->payload + (bit >> 3)) >> (bit & 7);
}

static inline uint32_t slot_of(const struct table *t, uint64_t bucket, unsigned slot)
{
    return (uint32_t)(bucket_load(t, bucket) >> slot * t->width) & ((UINT32_C(1) << t->width) - 1);
}

static void slot_write(const struct table *t, uint64_t bucket, unsigned slot, uint32_t value)
{
    const uint64_t bit = (bucket * SLOTS + slot) * t->width;
    const uint64_t mask = ((UINT64_C(1) << t->width) - 1) << (bit & 7);
    uint8_t *at = t->payload + (bit >> 3);
    store_u64(at, (load_u64(at) & ~mask) | (uint64_t)value << (bit & 7));
}

/* The slot of `bucket` that holds `fingerprint` (0: a free one), or SLOTS. */
static unsigned slot_find(const struct table *t, uint64_t bucket, uint32_t fingerprint)
{
    unsigned slot = 0;
    while (slot < SLOTS && slot_of(t, bucket, slot) != fingerprint)
        slot++;
    return slot;
}

/* All four at once: a lane that equals becomes 0, and borrowing from it shows in its upper bit. A
 * borrow that runs on into the next lane needs an equal lane to start from, so it lies about which
 * one, never about whether. */
static inline bool bucket_has(const struct table *t, uint64_t bucket, uint32_t fingerprint)
{
    const unsigned w = t->width;
    const uint64_t ones =
        UINT64_C(1) | UINT64_C(1) << w | UINT64_C(1) << 2 * w | UINT64_C(1) << 3 * w;
    const uint64_t x = bucket_load(t, bucket) ^ ones * fingerprint;
    return ((x - ones) & ~x & ones << (w - 1)) != 0;
}

static bool put_into(const struct table *t, struct place place)
{
    const unsigned slot = slot_find(t, place.bucket, 0);
    if (slot < SLOTS)
        slot_write(t, place.bucket, slot, place.fingerprint);
    return slot < SLOTS;
}

struct move {
    uint64_t bucket;
    unsigned slot;
    uint32_t fingerprint; /* that was there */
};

/* Puts the fingerprint into either bucket, moving others; false, and nothing changed: full. Which
 * one moves is a fixed function of the key, so that the same keys make the same table. */
static bool table_add(const struct table *t, uint64_t mixed)
{
    struct move moves[MOVES_MAX];
    struct place place = place_of(t, mixed);
    if (put_into(t, place))
        return true;
    place.bucket = other_bucket(t, place);
    uint64_t dice = mixed;
    for (size_t done = 0; done < MOVES_MAX; done++) {
        if (put_into(t, place))
            return true;
        dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407u;
        const unsigned slot = (unsigned)(dice >> 62);
        moves[done] = (struct move){place.bucket, slot, slot_of(t, place.bucket, slot)};
        slot_write(t, place.bucket, slot, place.fingerprint);
        place.fingerprint = moves[done].fingerprint;
        place.bucket = other_bucket(t, place);
    }
    for (size_t done = MOVES_MAX; done-- > 0;)
        slot_write(t, moves[done].bucket, moves[done].slot, moves[done].fingerprint);
    return false;
}

static tamiz_status cuckoo_build(struct op *op, struct filter_plan *plan, const uint64_t *mixed,
                                 size_t n, uint8_t *payload)
{
    const struct table t = table_of(plan->parameters, payload);
    for (size_t i = 0; i < n; i++)
        if (!table_add(&t, mixed[i]))
            return op_fail(op, TAMIZ_NOT_SUPPORTED, "filter cuckoo: full after %zu of %zu keys", i,
                           n);
    return TAMIZ_OK;
}

static tamiz_status cuckoo_open(struct op *op, struct filter_view *view)
{
    const uint64_t buckets = view->parameters[2] | (uint64_t)view->parameters[3] << 32;
    const unsigned width = view->parameters[0];
    if (width < WIDTH_MIN || width > WIDTH_MAX || buckets == 0 || buckets > FILTER_PAYLOAD_MAX ||
        view->payload_bytes != bytes_for(buckets, width))
        return op_fail(op, TAMIZ_CORRUPTION,
                       "filter cuckoo: %llu bytes cannot be %llu buckets of 4 slots of %u bits",
                       (unsigned long long)view->payload_bytes, (unsigned long long)buckets, width);
    return TAMIZ_OK;
}

static bool cuckoo_may_contain(const struct filter_view *view, uint64_t hash)
{
    const struct table t = table_of_view(view);
    const struct place place = place_of(&t, filter_mix(hash, view->seed));
    return bucket_has(&t, place.bucket, place.fingerprint) ||
           bucket_has(&t, other_bucket(&t, place), place.fingerprint);
}

static void cuckoo_story(const struct filter_view *view, uint64_t hash, struct buf *out)
{
    const struct table t = table_of_view(view);
    const struct place place = place_of(&t, filter_mix(hash, view->seed));
    const uint64_t other = other_bucket(&t, place);
    const bool one = bucket_has(&t, place.bucket, place.fingerprint),
               two = bucket_has(&t, other, place.fingerprint);
    buf_printf(out, "fingerprint 0x%x of %u bits; buckets %llu and %llu: ", place.fingerprint,
               t.width, (unsigned long long)place.bucket, (unsigned long long)other);
    buf_text(out, one ? "the first has it" : two ? "the second has it" : "neither has it");
}

static void cuckoo_prefetch(const struct filter_view *view, uint64_t hash)
{
    const struct table t = table_of_view(view);
    const struct place place = place_of(&t, filter_mix(hash, view->seed));
    fetch_line(t.payload + (place.bucket * SLOTS * t.width >> 3));
    fetch_line(t.payload + (other_bucket(&t, place) * SLOTS * t.width >> 3));
}

/* Each distinct fingerprint of a bucket is found by a query that begins there, and by one that
 * begins in its other bucket, unless that is the same or has it anyway. */
static double cuckoo_rate(const struct filter_view *view)
{
    const struct table t = table_of_view(view);
    uint64_t states = 0;
    for (uint64_t bucket = 0; bucket < t.buckets; bucket++)
        for (unsigned slot = 0; slot < SLOTS; slot++) {
            const struct place place = {bucket, slot_of(&t, bucket, slot)};
            if (!place.fingerprint || slot_find(&t, bucket, place.fingerprint) < slot)
                continue;
            const uint64_t other = other_bucket(&t, place);
            states++;
            if (other != bucket && !bucket_has(&t, other, place.fingerprint))
                states++;
        }
    return (double)states / ((double)t.buckets * (ldexp(1, (int)t.width) - 1));
}

static void cuckoo_describe(const struct filter_view *view, tamiz_filter_info *info)
{
    const struct table t = table_of_view(view);
    uint64_t taken = 0;
    for (uint64_t bucket = 0; bucket < t.buckets; bucket++)
        for (unsigned slot = 0; slot < SLOTS; slot++)
            taken += slot_of(&t, bucket, slot) != 0;
    info->hashes = 2;
    info->fingerprint_bits = t.width;
    info->fill = (double)taken / ((double)t.buckets * SLOTS);
}

static tamiz_status cuckoo_add(struct op *op, struct filter_live *live, uint64_t hash)
{
    const struct table t = table_of(live->view.parameters, live->payload);
    if (!table_add(&t, filter_mix(hash, live->view.seed)))
        return op_fail(op, TAMIZ_NO_SPACE, "filter cuckoo: full with %llu keys in %llu slots",
                       (unsigned long long)live->view.keys, (unsigned long long)t.buckets * SLOTS);
    live->view.keys++;
    return TAMIZ_OK;
}

static tamiz_status cuckoo_remove(struct op *op, struct filter_live *live, uint64_t hash)
{
    (void)op;
    const struct table t = table_of(live->view.parameters, live->payload);
    struct place place = place_of(&t, filter_mix(hash, live->view.seed));
    unsigned slot = slot_find(&t, place.bucket, place.fingerprint);
    if (slot == SLOTS) {
        place.bucket = other_bucket(&t, place);
        slot = slot_find(&t, place.bucket, place.fingerprint);
    }
    if (slot == SLOTS)
        return TAMIZ_NOT_FOUND;
    slot_write(&t, place.bucket, slot, 0);
    live->view.keys -= live->view.keys > 0;
    return TAMIZ_OK;
}

const struct filter_family filter_cuckoo = {
    .name = "cuckoo",
    .id = 12,
    .version = 1,
    .attempts = ATTEMPTS,
    .plan = cuckoo_plan,
    .build = cuckoo_build,
    .open = cuckoo_open,
    .may_contain = cuckoo_may_contain,
    .prefetch = cuckoo_prefetch,
    .story = cuckoo_story,
    .rate = cuckoo_rate,
    .describe = cuckoo_describe,
    .add = cuckoo_add,
    .remove = cuckoo_remove,
    .spare_percent = 6,
};
