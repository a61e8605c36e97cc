/* SPDX-License-Identifier: MIT
 *
 * One edit of the manifest as bytes, and back; manifest.h has the fields. A decoder trusts nothing:
 * the checksum of a record says that it is what somebody wrote, not that he was right.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/coding.h"
#include "version/manifest.h"

enum tag {
    TAG_NEXT_FILE = 1,
    TAG_LOG_NUMBER = 2,
    TAG_LAST_SEQ = 3,
    TAG_NEXT_RUN = 4,
    TAG_REMOVED = 5,
    TAG_ADDED = 6,
    TAG_KEYSPACE = 7,
    TAG_KEYSPACE_DROPPED = 8,
    TAG_NEXT_KEYSPACE = 9,
    TAG_KEYSPACE_LOG = 10,
};

/* Counters (next file and run, and what they count) stay below this, so that adding to one never
 * wraps. */
#define COUNTER_MAX (FILE_NUMBER_END - 1)

/* ---- writing ---- */

static void put_number(struct buf *out, enum tag tag, bool has, uint64_t value)
{
    if (!has)
        return;
    buf_varint(out, tag);
    buf_varint(out, value);
}

static void put_table(struct buf *out, const struct table_meta *t, uint64_t keyspace)
{
    const uint64_t numbers[] = {t->file_size,  t->level,   t->run,     t->entries,      t->keys,
                                t->tombstones, t->seq_min, t->seq_max, t->filter_bytes, t->ranges};
    buf_varint(out, TAG_ADDED);
    buf_varint(out, keyspace);
    buf_varint(out, t->number);
    buf_u64(out, t->file_id);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        buf_varint(out, numbers[i]);
    buf_block(out, t->smallest);
    buf_block(out, t->largest);
}

static void put_keyspace(struct buf *out, const struct manifest_keyspace *k)
{
    buf_varint(out, k->dropped ? TAG_KEYSPACE_DROPPED : TAG_KEYSPACE);
    buf_varint(out, k->id);
    if (!k->dropped)
        buf_block(out, k->name);
}

static void put_removed(struct buf *out, const struct tree_edit *t)
{
    for (size_t i = 0; i < t->tables.removed_count; i++) {
        buf_varint(out, TAG_REMOVED);
        buf_varint(out, t->keyspace);
        buf_varint(out, t->tables.removed[i]);
    }
}

static void put_log(struct buf *out, const struct tree_edit *t)
{
    if (!t->log_number)
        return;
    buf_varint(out, TAG_KEYSPACE_LOG);
    buf_varint(out, t->keyspace);
    buf_varint(out, t->log_number);
}

void manifest_edit_encode(struct buf *out, const struct manifest_edit *edit)
{
    put_number(out, TAG_NEXT_FILE, edit->has_next_file, edit->next_file);
    put_number(out, TAG_LOG_NUMBER, edit->has_log_number, edit->log_number);
    put_number(out, TAG_LAST_SEQ, edit->has_last_seq, edit->last_seq);
    put_number(out, TAG_NEXT_RUN, edit->has_next_run, edit->next_run);
    for (size_t t = 0; t < edit->tree_count; t++)
        put_removed(out, &edit->trees[t]);
    for (size_t t = 0; t < edit->tree_count; t++)
        for (size_t i = 0; i < edit->trees[t].tables.added_count; i++)
            put_table(out, edit->trees[t].tables.added[i], edit->trees[t].keyspace);
    for (size_t i = 0; i < edit->keyspace_count; i++)
        put_keyspace(out, &edit->keyspaces[i]);
    put_number(out, TAG_NEXT_KEYSPACE, edit->has_next_keyspace, edit->next_keyspace);
    for (size_t t = 0; t < edit->tree_count; t++)
        put_log(out, &edit->trees[t]);
}

/* ---- reading ---- */

/* A number and whose it is. */
struct of_keyspace {
    uint64_t keyspace, number;
};

struct decoder {
    struct op *op;
    struct reader in;
    size_t size; /* of the whole edit */
    size_t field_at;
};

static tamiz_status fail_range(const struct decoder *d, const char *what, uint64_t least,
                               uint64_t most, uint64_t found)
{
    return op_fail(d->op, TAMIZ_CORRUPTION,
                   "edit, byte %zu: expected %s of %" PRIu64 " to %" PRIu64 ", found %" PRIu64,
                   d->field_at, what, least, most, found);
}

static tamiz_status fail_cut(const struct decoder *d)
{
    return op_fail(d->op, TAMIZ_CORRUPTION,
                   "edit, byte %zu: expected a whole field, found it cut off or a malformed varint "
                   "in %zu bytes",
                   d->field_at, d->size);
}

/* A varint that lies within [least, most]. */
static tamiz_status take_number(struct decoder *d, const char *what, uint64_t least, uint64_t most,
                                uint64_t *out)
{
    *out = reader_varint(&d->in);
    if (d->in.bad)
        return fail_cut(d);
    return *out < least || *out > most ? fail_range(d, what, least, most, *out) : TAMIZ_OK;
}

/* One of the fields that an edit has at most once. */
static tamiz_status take_once(struct decoder *d, const char *what, uint64_t least, uint64_t most,
                              bool *has, uint64_t *out)
{
    if (*has)
        return op_fail(d->op, TAMIZ_CORRUPTION,
                       "edit, byte %zu: expected one field for the %s, found a second", d->field_at,
                       what);
    *has = true;
    return take_number(d, what, least, most, out);
}

static tamiz_status take_key(struct decoder *d, const char *what, struct slice *out)
{
    *out = reader_block(&d->in);
    if (d->in.bad)
        return fail_cut(d);
    return out->size > KEY_SIZE_MAX ? fail_range(d, what, 0, KEY_SIZE_MAX, out->size) : TAMIZ_OK;
}

/* The fields of an added table; keys are borrowed from the body. */
static tamiz_status take_table_fields(struct decoder *d, struct table_meta *t)
{
    tamiz_status st;
    uint64_t level;
    TRY(take_number(d, "a keyspace", 0, COUNTER_MAX, &t->keyspace));
    TRY(take_number(d, "a table's number", 1, COUNTER_MAX, &t->number));
    t->file_id = reader_u64(&d->in);
    if (!d->in.bad && t->file_id == 0)
        return fail_range(d, "a file id", 1, UINT64_MAX, 0);
    TRY(take_number(d, "a table's file size", 1, INT64_MAX, &t->file_size));
    TRY(take_number(d, "a level", 0, TAMIZ_LEVELS - 1, &level));
    t->level = (uint32_t)level;
    TRY(take_number(d, "a run", 0, COUNTER_MAX, &t->run));
    TRY(take_number(d, "a number of entries", 0, INT64_MAX, &t->entries));
    TRY(take_number(d, "a number of keys, at most that of entries,", t->entries ? 1 : 0, t->entries,
                    &t->keys));
    TRY(take_number(d, "a number of tombstones, at most that of entries,", 0, t->entries,
                    &t->tombstones));
    TRY(take_number(d, "a smallest sequence", 0, SEQ_MAX, &t->seq_min));
    TRY(take_number(d, "a largest sequence, not below the smallest,", t->seq_min, SEQ_MAX,
                    &t->seq_max));
    TRY(take_number(d, "bytes of a filter, at most those of the file,", 0, t->file_size,
                    &t->filter_bytes));
    TRY(take_number(d, "a number of range deletes, where there are no entries one at least,",
                    t->entries ? 0 : 1, INT64_MAX, &t->ranges));
    TRY(take_key(d, "a smallest key's size", &t->smallest));
    TRY(take_key(d, "a largest key's size", &t->largest));
done:
    return st;
}

static tamiz_status take_table(struct decoder *d, struct manifest_decoded *out)
{
    struct table_meta fields = {.number = 0}, *meta;
    const tamiz_status st = take_table_fields(d, &fields);
    char a[64], b[64];
    if (st < 0)
        return st;
    if (slice_compare(fields.smallest, fields.largest) > 0)
        return op_fail(d->op, TAMIZ_CORRUPTION,
                       "edit, byte %zu: table %" PRIu64 ": expected a largest key not below the "
                       "smallest, %s, found %s",
                       d->field_at, fields.number, slice_print(fields.smallest, a, sizeof a),
                       slice_print(fields.largest, b, sizeof b));
    if (!buf_reserve(&out->added, sizeof meta))
        return op_fail_memory(d->op);
    meta = table_meta_new(d->op, out->alloc, &fields);
    if (!meta)
        return TAMIZ_OUT_OF_MEMORY;
    buf_append(&out->added, &meta, sizeof meta);
    return TAMIZ_OK;
}

/* A keyspace and a number of that keyspace. */
static tamiz_status take_pair(struct decoder *d, const char *what, struct buf *list)
{
    struct of_keyspace pair;
    tamiz_status st;
    TRY(take_number(d, "a keyspace", 0, COUNTER_MAX, &pair.keyspace));
    TRY(take_number(d, what, 1, COUNTER_MAX, &pair.number));
    buf_append(list, &pair, sizeof pair);
    if (list->failed)
        st = op_fail_memory(d->op);
done:
    return st;
}

static tamiz_status take_keyspace(struct decoder *d, struct manifest_decoded *out, bool dropped)
{
    struct manifest_keyspace k = {.dropped = dropped};
    tamiz_status st;
    TRY(take_number(d, "a keyspace", 1, COUNTER_MAX, &k.id));
    if (!dropped) {
        k.name = reader_block(&d->in);
        if (d->in.bad)
            return fail_cut(d);
        if (k.name.size == 0 || k.name.size > KEYSPACE_NAME_MAX)
            return fail_range(d, "bytes of a keyspace's name", 1, KEYSPACE_NAME_MAX, k.name.size);
        const uint8_t *fault = keyspace_name_fault(k.name);
        if (fault)
            return op_fail(d->op, TAMIZ_CORRUPTION,
                           "edit, byte %zu: expected a keyspace's name without control bytes, "
                           "quotes and backslashes, found 0x%02x",
                           d->field_at, (unsigned)*fault);
    }
    buf_append(&out->keyspaces, &k, sizeof k);
    if (out->keyspaces.failed)
        st = op_fail_memory(d->op);
done:
    return st;
}

static tamiz_status take_field(struct decoder *d, struct manifest_decoded *out)
{
    struct manifest_edit *e = &out->edit;
    const uint64_t tag = reader_varint(&d->in);
    if (d->in.bad)
        return fail_cut(d);
    switch (tag) {
    case TAG_NEXT_FILE:
        return take_once(d, "next file", 1, COUNTER_MAX, &e->has_next_file, &e->next_file);
    case TAG_LOG_NUMBER:
        return take_once(d, "log number", 0, COUNTER_MAX, &e->has_log_number, &e->log_number);
    case TAG_LAST_SEQ:
        return take_once(d, "last sequence", 0, SEQ_MAX, &e->has_last_seq, &e->last_seq);
    case TAG_NEXT_RUN:
        return take_once(d, "next run", 0, COUNTER_MAX, &e->has_next_run, &e->next_run);
    case TAG_REMOVED: return take_pair(d, "a table's number", &out->removed);
    case TAG_ADDED: return take_table(d, out);
    case TAG_KEYSPACE: return take_keyspace(d, out, false);
    case TAG_KEYSPACE_DROPPED: return take_keyspace(d, out, true);
    case TAG_NEXT_KEYSPACE:
        return take_once(d, "next keyspace", 1, COUNTER_MAX, &e->has_next_keyspace,
                         &e->next_keyspace);
    case TAG_KEYSPACE_LOG: return take_pair(d, "a log's number", &out->logs);
    default:
        return op_fail(d->op, TAMIZ_NOT_SUPPORTED,
                       "edit, byte %zu: field %" PRIu64 " is of a newer version than this library "
                       "(it knows 1 to %d)",
                       d->field_at, tag, TAG_KEYSPACE_LOG);
    }
}

/* ---- what was read, by keyspace ---- */

static int pair_order(const void *a, const void *b)
{
    const struct of_keyspace *x = a, *y = b;
    if (x->keyspace != y->keyspace)
        return (x->keyspace > y->keyspace) - (x->keyspace < y->keyspace);
    return (x->number > y->number) - (x->number < y->number);
}

static int meta_order(const void *a, const void *b)
{
    struct table_meta *const *x = a, *const *y = b;
    const struct of_keyspace of_x = {(*x)->keyspace, (*x)->number},
                             of_y = {(*y)->keyspace, (*y)->number};
    return pair_order(&of_x, &of_y);
}

static void sort(struct buf *list, size_t size, int (*order)(const void *a, const void *b))
{
    if (list->size)
        qsort(list->data, list->size / size, size, order);
}

/* Where the three lists stand: all sorted, so that the next keyspace is at the front of one. */
struct grouping {
    const struct of_keyspace *removed, *logs;
    struct table_meta **added;
    size_t removed_count, log_count, added_count;
    size_t r, l, a; /* of each, taken so far */
};

/* UINT64_MAX: all is taken. */
static uint64_t next_keyspace(const struct grouping *g)
{
    uint64_t least = UINT64_MAX;
    if (g->r < g->removed_count)
        least = g->removed[g->r].keyspace;
    if (g->a < g->added_count && g->added[g->a]->keyspace < least)
        least = g->added[g->a]->keyspace;
    if (g->l < g->log_count && g->logs[g->l].keyspace < least)
        least = g->logs[g->l].keyspace;
    return least;
}

static struct tree_edit take_tree(struct grouping *g, uint64_t keyspace)
{
    struct tree_edit tree = {.keyspace = keyspace};
    for (; g->r < g->removed_count && g->removed[g->r].keyspace == keyspace; g->r++)
        tree.tables.removed_count++;
    for (; g->a < g->added_count && g->added[g->a]->keyspace == keyspace; g->a++)
        tree.tables.added_count++;
    for (; g->l < g->log_count && g->logs[g->l].keyspace == keyspace; g->l++)
        tree.log_number = g->logs[g->l].number;
    return tree;
}

/* Of pairs only the numbers; in place. */
static void keep_numbers(struct buf *pairs)
{
    const size_t n = pairs->size / sizeof(struct of_keyspace);
    for (size_t i = 0; i < n; i++) {
        struct of_keyspace pair;
        memcpy(&pair, pairs->data + i * sizeof pair, sizeof pair);
        memcpy(pairs->data + i * sizeof pair.number, &pair.number, sizeof pair.number);
    }
    pairs->size = n * sizeof(uint64_t);
}

static tamiz_status group(struct op *op, struct manifest_decoded *d)
{
    sort(&d->removed, sizeof(struct of_keyspace), pair_order);
    sort(&d->logs, sizeof(struct of_keyspace), pair_order);
    sort(&d->added, sizeof(struct table_meta *), meta_order);
    struct grouping g = {.removed = (const struct of_keyspace *)(const void *)d->removed.data,
                         .logs = (const struct of_keyspace *)(const void *)d->logs.data,
                         .added = (struct table_meta **)(void *)d->added.data,
                         .removed_count = d->removed.size / sizeof(struct of_keyspace),
                         .log_count = d->logs.size / sizeof(struct of_keyspace),
                         .added_count = d->added.size / sizeof(struct table_meta *)};
    for (uint64_t id; (id = next_keyspace(&g)) != UINT64_MAX;) {
        const struct tree_edit tree = take_tree(&g, id);
        buf_append(&d->trees, &tree, sizeof tree);
    }
    if (d->trees.failed)
        return op_fail_memory(op);
    keep_numbers(&d->removed);
    const uint64_t *removed = (const uint64_t *)(const void *)d->removed.data;
    struct tree_edit *trees = (struct tree_edit *)(void *)d->trees.data;
    const size_t n = d->trees.size / sizeof *trees;
    struct table_meta *const *added = g.added;
    for (size_t i = 0; i < n; i++) { /* an empty list has no address */
        struct version_edit *tables = &trees[i].tables;
        if (tables->removed_count) {
            tables->removed = removed;
            removed += tables->removed_count;
        }
        if (tables->added_count) {
            tables->added = added;
            added += tables->added_count;
        }
    }
    d->edit.trees = trees;
    d->edit.tree_count = n;
    return TAMIZ_OK;
}

tamiz_status manifest_edit_decode(struct op *op, const struct alloc *alloc, struct slice body,
                                  struct manifest_decoded *d)
{
    struct decoder in = {op, reader_of(body), body.size, 0};
    tamiz_status st = TAMIZ_OK;
    *d = (struct manifest_decoded){.removed = buf_init(alloc),
                                   .added = buf_init(alloc),
                                   .logs = buf_init(alloc),
                                   .trees = buf_init(alloc),
                                   .keyspaces = buf_init(alloc),
                                   .alloc = alloc};
    while (reader_left(&in.in)) {
        in.field_at = body.size - reader_left(&in.in);
        TRY(take_field(&in, d));
    }
    TRY(group(op, d));
    d->edit.keyspaces = (const struct manifest_keyspace *)(const void *)d->keyspaces.data;
    d->edit.keyspace_count = d->keyspaces.size / sizeof(struct manifest_keyspace);
done:
    if (st < 0)
        manifest_decoded_free(d);
    return st;
}

void manifest_decoded_free(struct manifest_decoded *d)
{
    if (!d->alloc)
        return;
    struct table_meta **added = (struct table_meta **)(void *)d->added.data;
    for (size_t i = 0; i < d->added.size / sizeof *added; i++)
        table_meta_unref(d->alloc, added[i]);
    buf_free(&d->removed);
    buf_free(&d->added);
    buf_free(&d->logs);
    buf_free(&d->trees);
    buf_free(&d->keyspaces);
    d->edit = (struct manifest_edit){.has_next_file = false};
}
