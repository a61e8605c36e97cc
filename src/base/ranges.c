/* SPDX-License-Identifier: MIT */
#include "base/ranges.h"

#include <assert.h>
#include <stdlib.h>

#include "base/coding.h"
#include "base/key.h"
#include "base/skyline.h"

size_t seq_stripe(const uint64_t *snapshots, size_t count, uint64_t seq)
{
    size_t from = 0, to = count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (snapshots[middle] < seq)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* ---- building ---- */

enum { CHUNK_LEAST = 1 << 12, CHUNK_MOST = 1 << 20 };

/* The skylines of all stripes, newest stripe last; covers of one stripe stand together. */
struct pieces {
    struct buf covers; /* struct cover */
    struct buf starts; /* size_t: where each stripe's begin */
};

static const struct cover *covers_of(const struct pieces *p)
{
    return (const struct cover *)(const void *)p->covers.data;
}

static void see_piece(void *ctx, const struct cover *piece)
{
    struct pieces *p = ctx;
    buf_append(&p->covers, piece, sizeof *piece);
}

static int by_seq(const void *a, const void *b)
{
    const struct range_delete *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static int by_key(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;
    return slice_compare(*x, *y);
}

/* `sorted` by sequence: deletes of one stripe stand together. */
static tamiz_status find_pieces(struct op *op, struct arena *arena,
                                const struct range_delete *sorted, size_t n,
                                const uint64_t *snapshots, size_t snapshot_count, struct pieces *p)
{
    for (size_t i = 0; i < n;) {
        const size_t stripe = seq_stripe(snapshots, snapshot_count, sorted[i].seq);
        const size_t start = p->covers.size / sizeof(struct cover);
        const struct skyline *s = NULL;
        for (; i < n && seq_stripe(snapshots, snapshot_count, sorted[i].seq) == stripe; i++) {
            const struct cover c = {sorted[i].from, sorted[i].to, sorted[i].seq, 0};
            s = skyline_add(arena, s, &c);
            if (!s)
                return op_fail_memory(op);
        }
        buf_append(&p->starts, &start, sizeof start);
        skyline_walk(s, see_piece, p);
    }
    return p->covers.failed || p->starts.failed ? op_fail_memory(op) : TAMIZ_OK;
}

/* Every key where a piece begins or ends, ascending and once. */
static tamiz_status find_ends(struct op *op, const struct pieces *p, struct buf *ends)
{
    const size_t n = p->covers.size / sizeof(struct cover);
    for (size_t i = 0; i < n; i++) {
        buf_append(ends, &covers_of(p)[i].from, sizeof(struct slice));
        buf_append(ends, &covers_of(p)[i].to, sizeof(struct slice));
    }
    if (ends->failed)
        return op_fail_memory(op);
    struct slice *list = (struct slice *)(void *)ends->data;
    size_t kept = 0;
    qsort(list, 2 * n, sizeof *list, by_key);
    for (size_t i = 0; i < 2 * n; i++)
        if (kept == 0 || !slice_equal(list[kept - 1], list[i]))
            list[kept++] = list[i];
    ends->size = kept * sizeof *list;
    return TAMIZ_OK;
}

static bool same_seqs(const struct range *a, const struct range *b)
{
    return a->seq_count == b->seq_count &&
           memcmp(a->seqs, b->seqs, a->seq_count * sizeof *a->seqs) == 0;
}

/* Where the one before ends here and has the same sequences, that grows. */
static void put_range(struct ranges *out, struct slice from, struct slice to, size_t seq_count)
{
    struct range *last = out->count ? &out->list[out->count - 1] : NULL;
    const uint64_t *seqs = last ? last->seqs + last->seq_count : out->seqs;
    const struct range fresh = {from, to, seqs, seq_count};
    if (last && slice_equal(last->to, from) && same_seqs(last, &fresh))
        last->to = to;
    else if (seq_count)
        out->list[out->count++] = fresh;
}

/* The stripes' skylines laid over each other: each stretch between two ends has of each stripe at
 * most one piece. */
static tamiz_status lay_over(struct op *op, const struct pieces *p, const struct buf *ends,
                             struct ranges *out)
{
    const struct slice *at = (const struct slice *)(const void *)ends->data;
    const size_t n = ends->size / sizeof *at, stripes = p->starts.size / sizeof(size_t);
    size_t *next = (size_t *)(void *)p->starts.data; /* each stripe's piece that ends above */
    const size_t all = p->covers.size / sizeof(struct cover);
    out->list_room = n;
    out->seqs_room = n * stripes;
    out->list = mem_new_array(out->alloc, out->list_room, sizeof *out->list);
    out->seqs = mem_new_array(out->alloc, out->seqs_room, sizeof *out->seqs);
    size_t *stop = mem_new_array(op->alloc, stripes, sizeof *stop);
    if (out->list && out->seqs && stop) {
        for (size_t s = 0; s < stripes; s++)
            stop[s] = s + 1 < stripes ? next[s + 1] : all;
        for (size_t i = 0; i + 1 < n; i++) {
            const struct range *last = out->count ? &out->list[out->count - 1] : NULL;
            size_t behind = last ? (size_t)(last->seqs - out->seqs) + last->seq_count : 0, had = 0;
            for (size_t s = stripes; s-- > 0;) {
                while (next[s] < stop[s] && slice_compare(covers_of(p)[next[s]].to, at[i]) <= 0)
                    next[s]++;
                if (next[s] < stop[s] && slice_compare(covers_of(p)[next[s]].from, at[i]) <= 0)
                    out->seqs[behind + had++] = covers_of(p)[next[s]].seq;
            }
            put_range(out, at[i], at[i + 1], had);
        }
    }
    mem_free(op->alloc, stop, stripes * sizeof *stop);
    return out->list && out->seqs && stop ? TAMIZ_OK : op_fail_memory(op);
}

tamiz_status ranges_build(struct op *op, const struct alloc *alloc, const struct range_delete *list,
                          size_t n, const uint64_t *snapshots, size_t snapshot_count,
                          struct ranges *out)
{
    *out = (struct ranges){.alloc = alloc};
    if (n == 0)
        return TAMIZ_OK;
    struct arena arena = arena_init(op->alloc, CHUNK_LEAST, CHUNK_MOST);
    struct pieces p = {buf_init(op->alloc), buf_init(op->alloc)};
    struct buf ends = buf_init(op->alloc);
    struct range_delete *sorted = mem_new_array(op->alloc, n, sizeof *sorted);
    tamiz_status st = TAMIZ_OK;
    TRY(sorted ? TAMIZ_OK : op_fail_memory(op));
    memcpy(sorted, list, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_seq);
    TRY(find_pieces(op, &arena, sorted, n, snapshots, snapshot_count, &p));
    TRY(find_ends(op, &p, &ends));
    TRY(lay_over(op, &p, &ends, out));
done:
    mem_free(op->alloc, sorted, n * sizeof *sorted);
    buf_free(&p.covers);
    buf_free(&p.starts);
    buf_free(&ends);
    arena_free(&arena);
    return st;
}

void ranges_free(struct ranges *r)
{
    if (!r->alloc)
        return;
    mem_free(r->alloc, r->list, r->list_room * sizeof *r->list);
    mem_free(r->alloc, r->seqs, r->seqs_room * sizeof *r->seqs);
    *r = (struct ranges){.alloc = r->alloc};
}

/* ---- asking ---- */

size_t ranges_from(const struct ranges *r, struct slice key)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (slice_compare(r->list[middle].to, key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t range_newest(const struct range *r, uint64_t seq_max)
{
    for (size_t i = 0; i < r->seq_count; i++)
        if (r->seqs[i] <= seq_max)
            return r->seqs[i];
    return 0;
}

uint64_t ranges_cover(const struct ranges *r, struct slice key, uint64_t seq_max)
{
    const size_t at = ranges_from(r, key);
    if (at == r->count || slice_compare(r->list[at].from, key) > 0)
        return 0;
    return range_newest(&r->list[at], seq_max);
}

void ranges_list(const struct ranges *r, struct buf *list)
{
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->list[i].seq_count; k++) {
            const struct range_delete one = {r->list[i].from, r->list[i].to, r->list[i].seqs[k]};
            buf_append(list, &one, sizeof one);
        }
}

struct slice range_last_key(struct slice to)
{
    assert(to.size); /* nothing is below the empty key */
    return to.data[to.size - 1] ? to : slice_of(to.data, to.size - 1);
}

/* ---- bytes ---- */

void range_encode(struct buf *out, const struct range *r)
{
    buf_block(out, r->from);
    buf_block(out, r->to);
    buf_varint(out, r->seq_count);
    buf_varint(out, r->seqs[0]);
    for (size_t i = 1; i < r->seq_count; i++)
        buf_varint(out, r->seqs[i - 1] - r->seqs[i]);
}

/* The sequences of one piece behind the `have` there are; false: malformed. */
static bool take_seqs(struct reader *in, uint64_t n, struct buf *seqs)
{
    uint64_t seq = 0;
    if (n == 0 || n > reader_left(in))
        return false;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t v = reader_varint(in);
        if (in->bad || v == 0 || (i ? v >= seq : v > SEQ_MAX))
            return false;
        seq = i ? seq - v : v;
        buf_append(seqs, &seq, sizeof seq);
    }
    return true;
}

static bool take_range(struct reader *in, const struct slice *behind, struct buf *list,
                       struct buf *seqs)
{
    struct range r = {.from = reader_block(in)};
    r.to = reader_block(in);
    const uint64_t seq_count = reader_varint(in);
    if (in->bad || r.to.size > KEY_SIZE_MAX || slice_compare(r.from, r.to) >= 0 ||
        (behind && slice_compare(*behind, r.from) > 0) || !take_seqs(in, seq_count, seqs))
        return false;
    r.seq_count = (size_t)seq_count; /* no more than bytes there are */
    buf_append(list, &r, sizeof r);
    return true;
}

/* The lists become the answer's, whole. */
static tamiz_status hand_over(struct op *op, struct buf *list, struct buf *seqs, struct ranges *out)
{
    out->list_room = out->count = list->size / sizeof *out->list;
    out->seqs_room = seqs->size / sizeof *out->seqs;
    out->list = mem_new_array(out->alloc, out->list_room, sizeof *out->list);
    out->seqs = mem_new_array(out->alloc, out->seqs_room, sizeof *out->seqs);
    if (!out->list || !out->seqs || list->failed || seqs->failed) {
        out->count = 0;
        return op_fail_memory(op);
    }
    if (out->count) {
        memcpy(out->list, list->data, list->size);
        memcpy(out->seqs, seqs->data, seqs->size);
    }
    const uint64_t *at = out->seqs;
    for (size_t i = 0; i < out->count; i++) {
        out->list[i].seqs = at;
        at += out->list[i].seq_count;
    }
    return TAMIZ_OK;
}

tamiz_status ranges_decode(struct op *op, const struct alloc *alloc, struct slice block,
                           struct ranges *out)
{
    struct reader in = reader_of(block);
    struct buf list = buf_init(op->alloc), seqs = buf_init(op->alloc);
    const uint64_t count = reader_varint(&in);
    tamiz_status st = TAMIZ_OK;
    *out = (struct ranges){.alloc = alloc};
    struct slice last = {NULL, 0};
    for (uint64_t i = 0; !in.bad && i < count && !list.failed && !seqs.failed; i++) {
        const size_t at = block.size - reader_left(&in);
        if (!take_range(&in, i ? &last : NULL, &list, &seqs))
            TRY(op_fail(op, TAMIZ_CORRUPTION,
                        "ranges, byte %zu: expected a range behind the one before, with its "
                        "sequences newest first, found none",
                        at));
        if (!list.failed)
            last = ((const struct range *)(const void *)(list.data + list.size))[-1].to;
    }
    if (list.failed || seqs.failed) /* and the loop ended before the block did */
        TRY(op_fail_memory(op));
    if (in.bad || reader_left(&in))
        TRY(op_fail(op, TAMIZ_CORRUPTION,
                    "ranges: expected %llu of them and no more, found %zu bytes behind",
                    (unsigned long long)count, reader_left(&in)));
    TRY(hand_over(op, &list, &seqs, out));
done:
    buf_free(&list);
    buf_free(&seqs);
    return st;
}
