/* SPDX-License-Identifier: MIT
 *
 * A walk over a block's entries, which keeps what neighbours share: the restart of their group, and
 * a key that stands in two parts put together.
 *
 * It goes to any entry by its number, or it steps to the next one. A step is what most of a scan
 * is, so it does little: the next entry begins where this one ends, and what it shares with its
 * restart is in `key` already. It takes plain puts of ordinary sizes; before anything else it stays
 * where it is, and says so.
 */
#ifndef TAMIZ_TABLE_BLOCK_WALK_H
#define TAMIZ_TABLE_BLOCK_WALK_H

#include <assert.h>

#include "base/coding.h"
#include "base/fetch.h"
#include "table/block.h"

struct block_walk {
    const struct block *block; /* borrowed */
    uint32_t entry;            /* where it stands, as all below */
    struct slice at_key;       /* borrowed: the block's, or the walk's until it moves */
    struct slice value;        /* the block's */
    const uint8_t *behind;     /* the entry's end */

    uint32_t group;       /* the one where it stands, where its restart is known; else UINT32_MAX */
    struct slice restart; /* of that group */
    struct buf key;       /* owned */
    size_t kept;          /* bytes of `key` that are that restart's */

    /* Its owner's: no version that it can come to is newer than this stamp; and the address, of
     * which no more is used, of what the next block will be in memory. */
    uint64_t newest;
    const void *following;
};

enum {
    WALK_ROOM = 288,  /* of `key`, from the first entry on: what a step puts together fits */
    WALK_CHUNK = 16,  /* bytes copied at once */
    WALK_AHEAD = 384, /* bytes behind the entry that are fetched at each step */
    WALK_LEAVING = 8, /* entries before the block's end, the next one's head is fetched */
    WALK_HEAD = 6,    /* lines of that */
};
static_assert((int)WALK_CHUNK <= (int)BLOCK_SLACK, "as many bytes behind an entry can be read");

void block_walk_init(struct block_walk *w, const struct alloc *alloc);
/* From now on over `b`; the key that was shown last stays as it is until the walk moves. */
void block_walk_enter(struct block_walk *w, const struct block *b);
/* To entry `i`. TAMIZ_CORRUPTION without words: as block_entry_at; TAMIZ_OUT_OF_MEMORY: then it
 * stands nowhere. */
tamiz_status block_walk_at(struct block_walk *w, uint32_t i, uint64_t *stamp);
/* Of the entry where it stands. */
uint64_t block_walk_stamp(const struct block_walk *w);

/* Starts fetching so many lines, the first of them so many bytes behind. */
static inline void walk_fetch(const void *from, size_t bytes_on, size_t lines)
{
    for (size_t line = 0; line < lines; line++)
        fetch_address((uintptr_t)from + bytes_on + line * FETCH_LINE);
}

/* The head of the next block, where the end of this one is `near`; only the address is used: it may
 * be gone by now. */
static inline void block_walk_fetch_following(const struct block_walk *w, bool near)
{
    if (__builtin_expect(near, 0) && w->following)
        walk_fetch(w->following, 0, WALK_HEAD);
}

/* What a walk forwards touches in a moment: a few entries on, and before the block's end the next
 * one. */
static inline void block_walk_fetch_onwards(const struct block_walk *w)
{
    walk_fetch(w->behind, WALK_AHEAD, 2);
    block_walk_fetch_following(w, w->entry + WALK_LEAVING == w->block->count);
}

/* What a step takes: shared, suffix size, value size and a stamp that says KIND_PUT, in one byte
 * each, the value's size in one or two and the stamp in up to eight. */
struct walk_step {
    size_t shared, suffix_size, value_size;
    const uint8_t *suffix;
};

static inline bool walk_step_read(const uint8_t *at, struct walk_step *s)
{
    const uint32_t head = load_u32(at);
    s->shared = head & 0x7f;
    s->suffix_size = head >> 8 & 0x7f;
    s->value_size = head >> 16 & 0x7f;
    const uint8_t *stamp = at + 3;
    if (__builtin_expect((head & 0x0f808080) != KIND_PUT << 24, 0)) {
        s->value_size |= head >> 24 << 7;
        stamp = at + 4;
        if ((head & 0x80808080) != 0x00800000 || (at[4] & 15) != KIND_PUT)
            return false;
    }
    const uint64_t stops = ~load_u64(stamp) & UINT64_C(0x8080808080808080);
    s->suffix = stamp + (stops ? __builtin_ctzll(stops) / 8 + 1 : 0);
    return stops != 0;
}

/* To the next entry of the block. false: it is none of these, or there is none, or it is damaged;
 * block_walk_at tells. Only while it stands somewhere. */
static inline bool block_walk_step(struct block_walk *w)
{
    const struct block *b = w->block;
    const uint32_t i = w->entry + 1;
    const uint8_t *at = w->behind;
    struct walk_step s;
    if (i >= b->count || !walk_step_read(at, &s))
        return false;
    const uint64_t end = i + 1 < b->count ? block_offset_at(b, i + 1) : b->entries.size;
    const size_t value_at = (size_t)(s.suffix - at) + s.suffix_size;
    if ((size_t)(at - b->entries.data) + value_at + s.value_size != end || end > b->entries.size)
        return false;
    const bool restart = i % BLOCK_GROUP == 0;
    if (s.shared > (restart ? 0 : w->kept))
        return false;
    w->kept = s.shared;
    if (restart) {
        w->group = i / BLOCK_GROUP;
        w->restart = slice_of(s.suffix, s.suffix_size);
        w->kept = s.suffix_size;
    }
    uint8_t *own = w->key.data + s.shared;
    for (size_t done = 0; done < s.suffix_size; done += WALK_CHUNK)
        memcpy(own + done, s.suffix + done, WALK_CHUNK);
    w->entry = i;
    w->at_key = slice_of(w->key.data, s.shared + s.suffix_size);
    w->value = slice_of(at + value_at, s.value_size);
    w->behind = at + value_at + s.value_size;
    block_walk_fetch_onwards(w);
    return true;
}

#endif
