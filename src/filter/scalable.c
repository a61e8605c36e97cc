/* SPDX-License-Identifier: MIT
 *
 * The scalable Bloom filter, for when nobody knows how many keys will come: layers of plain ones.
 * When the newest has its keys, a layer twice as large and twice as exact is put behind it.
 *
 *     layer 0   | n keys,  rate p/2 |
 *     layer 1   | 2n keys, rate p/4        |
 *     layer 2   | 4n keys, rate p/8                        |          a query asks all
 *
 * The rates of all layers add up to less than p, however many there will be. It costs: a layer's
 * keys need 1.44 bits more each than those of the layer before, and a query looks at every layer.
 * A key that the filter takes for known already is not added again.
 *
 * P. Almeida, C. Baquero, N. Preguica, D. Hutchison, "Scalable Bloom filters", IPL 101(6), 2007.
 *
 *   payload: the layers, oldest first. Each: keys (8 bytes), capacity (8), bits / 8 (8), k (4),
 *   36 bytes of 0; then its bits, a multiple of 64 bytes.
 *   parameters: [0] layers; [2],[3] the rate promised for all, an IEEE double, low and high half.
 */
#include <math.h>

#include "filter/family.h"
#include "filter/theory.h"

enum { HEAD_BYTES = 64, LINE_BYTES = 64, LAYERS_MAX = 40, K_MAX = 64 };
#define DEFAULT_RATE 0.01

struct layer {
    uint64_t keys, capacity, bytes;
    unsigned k;
    const uint8_t *bits;
};

/* `at` is where a head begins that was checked. */
static inline struct layer layer_read(const uint8_t *at)
{
    return (struct layer){load_u64(at), load_u64(at + 8), load_u64(at + 16), load_u32(at + 24),
                          at + HEAD_BYTES};
}

static void layer_write(uint8_t *at, const struct layer *layer)
{
    store_u64(at, layer->keys);
    store_u64(at + 8, layer->capacity);
    store_u64(at + 16, layer->bytes);
    store_u32(at + 24, layer->k);
}

/* The layer of that number, sized for `capacity` keys at its share of the promise. */
static struct layer layer_for(uint64_t capacity, double promise, unsigned number)
{
    const double rate = ldexp(promise, -(int)number - 1);
    const double n = (double)capacity, per_key = theory_bloom_bits_for(n, rate);
    const double lines = fmin(ceil(n * per_key / 8 / LINE_BYTES), 1e15);
    return (struct layer){.capacity = capacity,
                          .bytes = (uint64_t)lines * LINE_BYTES,
                          .k = tamiz_bloom_hashes(n * per_key, n)};
}

static double promise_for(const tamiz_filter_policy *policy)
{
    if (policy->fpr > 0)
        return policy->fpr;
    if (policy->bits_per_key > 0) /* of the first layer, which has half of the promise */
        return fmin(2 * exp(-policy->bits_per_key * LN2 * LN2), 0.999);
    return DEFAULT_RATE;
}

static double promise_of(const uint32_t parameters[4])
{
    const uint64_t bits = parameters[2] | (uint64_t)parameters[3] << 32;
    double promise;
    memcpy(&promise, &bits, sizeof promise);
    return promise;
}

static tamiz_status scalable_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                                  struct filter_plan *plan)
{
    const double promise = promise_for(policy);
    const struct layer layer = layer_for(keys ? keys : 1, promise, 0);
    uint64_t bits;
    memcpy(&bits, &promise, sizeof bits);
    if (layer.bytes > FILTER_PAYLOAD_MAX - HEAD_BYTES)
        return filter_too_large(op, keys, (double)layer.bytes * 8 / (double)keys);
    plan->payload_bytes = HEAD_BYTES + layer.bytes;
    plan->parameters[0] = 1;
    plan->parameters[2] = (uint32_t)bits;
    plan->parameters[3] = (uint32_t)(bits >> 32);
    plan->expected_fpr = theory_line_fpr((double)keys, (double)layer.bytes * 8, layer.k);
    return TAMIZ_OK;
}

static void set_all(uint8_t *bits, uint64_t bytes, unsigned k, uint64_t mixed)
{
    for (; k; k--, mixed *= FILTER_MULTIPLIER) {
        const uint64_t bit = mul_high(mixed, bytes * 8);
        bits[bit >> 3] |= (uint8_t)(1u << (bit & 7));
    }
}

static bool layer_holds(const struct layer *layer, uint64_t mixed)
{
    for (unsigned k = layer->k; k; k--, mixed *= FILTER_MULTIPLIER) {
        const uint64_t bit = mul_high(mixed, layer->bytes * 8);
        if (!(layer->bits[bit >> 3] >> (bit & 7) & 1))
            return false;
    }
    return true;
}

static tamiz_status scalable_build(struct op *op, struct filter_plan *plan, const uint64_t *mixed,
                                   size_t n, uint8_t *payload)
{
    (void)op;
    struct layer layer = layer_for(plan->keys ? plan->keys : 1, promise_of(plan->parameters), 0);
    layer.keys = n;
    layer_write(payload, &layer);
    for (size_t i = 0; i < n; i++)
        set_all(payload + HEAD_BYTES, layer.bytes, layer.k, mixed[i]);
    return TAMIZ_OK;
}

/* Every head is checked here, once; afterwards they are walked without. A capacity that its bits
 * could not serve would make the next layer immense. */
static tamiz_status scalable_open(struct op *op, struct filter_view *view)
{
    const double promise = promise_of(view->parameters);
    uint64_t at = 0;
    unsigned layers = 0;
    if (!(promise > 0 && promise < 1) || view->parameters[0] > LAYERS_MAX)
        return op_fail(op, TAMIZ_CORRUPTION, "filter scalable: %u layers for a rate of %g",
                       view->parameters[0], promise);
    while (layers < view->parameters[0] && view->payload_bytes - at >= HEAD_BYTES) {
        const struct layer layer = layer_read(view->payload + at);
        const uint64_t left = view->payload_bytes - at - HEAD_BYTES;
        if (layer.bytes == 0 || layer.bytes % LINE_BYTES || layer.bytes > left || layer.k < 1 ||
            layer.k > K_MAX || layer.capacity == 0 || layer.capacity > layer.bytes * 8)
            break;
        at += HEAD_BYTES + layer.bytes;
        layers++;
    }
    if (layers == 0 || layers != view->parameters[0] || at != view->payload_bytes)
        return op_fail(op, TAMIZ_CORRUPTION, "filter scalable: layer %u of %u, at %llu, is damaged",
                       layers, view->parameters[0], (unsigned long long)at);
    return TAMIZ_OK;
}

static bool holds(const struct filter_view *view, uint64_t mixed)
{
    for (uint64_t at = 0; at < view->payload_bytes;) {
        const struct layer layer = layer_read(view->payload + at);
        if (layer_holds(&layer, mixed))
            return true;
        at += HEAD_BYTES + layer.bytes;
    }
    return false;
}

static bool scalable_may_contain(const struct filter_view *view, uint64_t hash)
{
    return holds(view, filter_mix(hash, view->seed));
}

static double scalable_rate(const struct filter_view *view)
{
    double none = 1;
    for (uint64_t at = 0; at < view->payload_bytes;) {
        const struct layer layer = layer_read(view->payload + at);
        const double fill =
            (double)filter_count_bits(layer.bits, layer.bytes) / (double)(layer.bytes * 8);
        none *= 1 - theory_power(fill, layer.k);
        at += HEAD_BYTES + layer.bytes;
    }
    return 1 - none;
}

static void scalable_describe(const struct filter_view *view, tamiz_filter_info *info)
{
    uint64_t set = 0, bytes = 0;
    unsigned k = 0;
    for (uint64_t at = 0; at < view->payload_bytes;) {
        const struct layer layer = layer_read(view->payload + at);
        set += filter_count_bits(layer.bits, layer.bytes);
        bytes += layer.bytes;
        k += layer.k;
        at += HEAD_BYTES + layer.bytes;
    }
    info->hashes = k;
    info->fill = (double)set / (double)(bytes * 8);
}

/* Where the newest layer begins. */
static uint64_t newest_of(const struct filter_view *view)
{
    uint64_t newest = 0;
    for (uint64_t at = 0; at < view->payload_bytes;) {
        newest = at;
        at += HEAD_BYTES + layer_read(view->payload + at).bytes;
    }
    return newest;
}

/* A layer twice as large behind the newest. */
static tamiz_status layer_append(struct op *op, struct filter_live *live, uint64_t capacity)
{
    const unsigned number = live->view.parameters[0];
    const uint64_t at = live->view.payload_bytes;
    if (number == LAYERS_MAX)
        return op_fail(op, TAMIZ_NO_SPACE, "filter scalable: %u layers are full", number);
    const struct layer layer = layer_for(capacity, promise_of(live->view.parameters), number);
    const tamiz_status st = filter_live_grow(op, live, at + HEAD_BYTES + layer.bytes);
    if (st != TAMIZ_OK)
        return st;
    layer_write(live->payload + at, &layer);
    live->view.parameters[0]++;
    return TAMIZ_OK;
}

static tamiz_status scalable_add(struct op *op, struct filter_live *live, uint64_t hash)
{
    const uint64_t mixed = filter_mix(hash, live->view.seed);
    if (holds(&live->view, mixed))
        return TAMIZ_OK;
    uint64_t at = newest_of(&live->view);
    struct layer layer = layer_read(live->payload + at);
    if (layer.keys >= layer.capacity) {
        const tamiz_status st = layer_append(op, live, layer.capacity * 2);
        if (st != TAMIZ_OK)
            return st;
        at = newest_of(&live->view);
        layer = layer_read(live->payload + at);
    }
    set_all(live->payload + at + HEAD_BYTES, layer.bytes, layer.k, mixed);
    layer.keys++;
    layer_write(live->payload + at, &layer);
    live->view.keys++;
    return TAMIZ_OK;
}

const struct filter_family filter_scalable = {
    .name = "scalable",
    .id = 14,
    .version = 1,
    .plan = scalable_plan,
    .build = scalable_build,
    .open = scalable_open,
    .may_contain = scalable_may_contain,
    .rate = scalable_rate,
    .describe = scalable_describe,
    .add = scalable_add,
};
