/* SPDX-License-Identifier: MIT
 *
 * The filter seam. The whole design is one sentence: build(hashes) makes one contiguous, immutable
 * image; open(image) makes a view; the view answers. The image is file format, cache entry, golden
 * file and fuzz input at once; a view allocates nothing and needs no close.
 *
 * A family file holds only its idea. The chores live in filter.c: header, checksum, sorting out
 * equal hashes, dispatch. A face that is NULL is not offered.
 */
#ifndef TAMIZ_FILTER_FILTER_H
#define TAMIZ_FILTER_FILTER_H

#include "base/buf.h"
#include "base/op.h"
#include "tamiz/filter.h"

enum { FILTER_HEADER_SIZE = 64, FILTER_ALIGN = 64 };

struct filter_family;
struct filter_live;

/* What a family asks for and gets: filled in by plan(), stored in the header, seen again by open().
 */
struct filter_plan {
    uint64_t keys;          /* distinct hashes                                    */
    uint64_t payload_bytes; /* exact                                              */
    double expected_fpr;
    uint32_t parameters[4];            /* the family's own, documented in docs/format/filter.md */
    uint64_t seed;                     /* hashes are mixed with it; 0 at the first attempt      */
    const tamiz_filter_family *custom; /* of the policy */
};

/* An opened image: borrows its bytes. Plain value, copied freely. 64 bytes of what the hot path
 * needs, kept together. */
struct filter_view {
    const struct filter_family *family; /* NULL: no filter, answers maybe */
    const uint8_t *payload;             /* FILTER_ALIGN aligned           */
    uint64_t payload_bytes;
    uint64_t keys;
    double expected_fpr;
    uint32_t parameters[4];
    union {
        uint64_t seed;
        const tamiz_filter_family *custom; /* where family is the embedder's own */
    };
};

struct filter_family {
    const char *name;
    uint16_t id;      /* on disk */
    uint8_t version;  /* newest this code writes and reads */
    bool unmixed;     /* builds from raw hashes: a layout that others defined */
    uint8_t attempts; /* seeds to try; 0: a build cannot fail */
    /* Arithmetic: what a filter of `keys` distinct hashes under `policy` would be.
     * TAMIZ_INVALID_ARGUMENT with words. */
    tamiz_status (*plan)(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                         struct filter_plan *plan);
    /* Distinct hashes, mixed with plan->seed (family.h), ascending. Into plan->payload_bytes bytes,
     * zeroed and aligned. TAMIZ_NOT_SUPPORTED: not with this seed; filter.c tries others, so many
     * times. */
    tamiz_status (*build)(struct op *op, struct filter_plan *plan, const uint64_t *mixed, size_t n,
                          uint8_t *payload);
    /* For families that take hashes in any order, and a repeat changes nothing: the same payload
     * from raw hashes. Those that seemed to be in it already go to `seen`, and their number is the
     * answer; with more than `room` of them it may stop. SIZE_MAX: not with this seed; filter.c
     * tries a few others. NULL: not offered. */
    size_t (*build_loose)(const struct alloc *alloc, const struct filter_plan *plan,
                          const uint64_t *hashes, size_t n, uint8_t *payload, uint64_t *seen,
                          size_t room);
    /* Checks once all that the queries rely on. TAMIZ_CORRUPTION with words. */
    tamiz_status (*open)(struct op *op, struct filter_view *view);
    bool (*may_contain)(const struct filter_view *view, uint64_t hash);
    /* NULL: the wrapper loops. */
    void (*may_contain_many)(const struct filter_view *view, const uint64_t *hashes, size_t n,
                             bool *maybe);
    /* The rate of this very image, as its bits are. NULL: what plan() says is exact. */
    double (*rate)(const struct filter_view *view);
    /* Starts fetching the lines that may_contain will touch. NULL: nothing to gain. */
    void (*prefetch)(const struct filter_view *view, uint64_t hash);
    void (*describe)(const struct filter_view *view,
                     tamiz_filter_info *info); /* fill, hashes, fingerprint_bits */
    /* One query in words, for explanations: the places it looks at and what they say. */
    void (*story)(const struct filter_view *view, uint64_t hash, struct buf *out);
    /* The same family in another way, for machines that have what it takes; NULL: none. The best
     * that is usable answers and builds loosely; all give the same answers and bytes. */
    const struct filter_family *better;
    bool (*usable)(void); /* of such a one */
    /* For kinds that change; NULL: built once. See tamiz_filter_add and _remove for what they say.
     * They keep live->view.keys. */
    tamiz_status (*add)(struct op *op, struct filter_live *live, uint64_t hash);
    tamiz_status (*remove)(struct op *op, struct filter_live *live, uint64_t hash);
    uint8_t spare_percent; /* capacity beyond what was asked that `add` needs to reach it */
};

/* A filter that changes: an image of its own, of which the header is behind, and its view. */
struct filter_live {
    struct filter_view view;
    uint8_t *payload; /* view.payload, to write to */
    uint8_t *image;   /* owned, from mem_new_aligned */
    size_t size;
};

/* Empty, for `capacity` hashes. TAMIZ_NOT_SUPPORTED: a kind that is built once. */
tamiz_status filter_live_new(struct op *op, const tamiz_filter_policy *policy, uint64_t capacity,
                             struct filter_live *live);
/* Takes over `image`, from mem_new_aligned with FILTER_ALIGN, whatever happens; checks it. */
tamiz_status filter_live_adopt(struct op *op, uint8_t *image, size_t size,
                               const tamiz_filter_family *custom, struct filter_live *live);
/* More room for the payload, the new part zeroed; live->payload moves. */
tamiz_status filter_live_grow(struct op *op, struct filter_live *live, uint64_t payload_bytes);
/* Brings the header of `image`, a copy of the view's, up to date with what was added. */
void filter_header_refresh(const struct filter_view *view, uint8_t *image);
void filter_live_free(struct op *op, struct filter_live *live);

/* By name or number on disk; NULL: unknown. "none" is no family. */
const struct filter_family *filter_family_by_name(const char *name);
const struct filter_family *filter_family_by_id(uint16_t id);
/* All, for laws that hold for each: index from 0, NULL ends. */
const struct filter_family *filter_family_at(size_t index);

/* Of a family and its better ones, the best that this machine can run. */
const struct filter_family *filter_family_best(const struct filter_family *family);

/* Words for what is wrong with a policy; OK for "none" too. */
tamiz_status filter_policy_check(struct op *op, const tamiz_filter_policy *policy);

/* An image over `hashes` (any order, repeats allowed) appended to `image`. With the policy "none":
 * nothing, OK. A construction that fails for the family's own reasons is TAMIZ_NOT_SUPPORTED: the
 * caller goes on with no filter (and forgives the op). */
tamiz_status filter_image_build(struct op *op, const tamiz_filter_policy *policy,
                                const uint64_t *hashes, size_t n, struct buf *image);
/* The same into memory of its own, FILTER_ALIGN aligned, freed by mem_free_aligned(alloc, *image,
 * *size, FILTER_ALIGN). "none" is a header with no payload here. *image is NULL on failure. */
tamiz_status filter_image_make(struct op *op, const tamiz_filter_policy *policy,
                               const uint64_t *hashes, size_t n, uint8_t **image, size_t *size);
/* What an image would be, with no hashes: fills all of `plan`. *family is NULL for "none". */
tamiz_status filter_plan_make(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                              struct filter_plan *plan, const struct filter_family **family);
/* Checks header, checksum and payload; the view borrows `image`, which begins at a multiple of
 * FILTER_ALIGN. TAMIZ_CORRUPTION or TAMIZ_NOT_SUPPORTED with words; *view is then one that answers
 * maybe. */
tamiz_status filter_view_open(struct op *op, struct slice image, struct filter_view *view);
/* The same where the image may be of the embedder's own family, `custom`; NULL: none registered.
 * `custom` outlives the view. */
tamiz_status filter_view_open_custom(struct op *op, struct slice image,
                                     const tamiz_filter_family *custom, struct filter_view *view);

static inline bool filter_view_may_contain(const struct filter_view *view, uint64_t hash)
{
    return !view->family || view->family->may_contain(view, hash);
}

static inline void filter_view_prefetch(const struct filter_view *view, uint64_t hash)
{
    if (view->family && view->family->prefetch)
        view->family->prefetch(view, hash);
}

/* Why the filter says what it says of `hash`, in words: probed bits, or fingerprint and slots. */
void filter_view_story(const struct filter_view *view, uint64_t hash, struct buf *out);

void filter_view_may_contain_many(const struct filter_view *view, const uint64_t *hashes, size_t n,
                                  bool *maybe);
/* What its header says: no bit of it is looked at. */
void filter_view_header(const struct filter_view *view, tamiz_filter_info *info);
void filter_view_info(const struct filter_view *view, tamiz_filter_info *info);

#endif
