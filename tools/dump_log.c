/* SPDX-License-Identifier: MIT
 *
 * Logs and manifests: records of one kind of file, whose bodies are batches or edits.
 */
#include "dump.h"

#include "log/batch.h"
#include "log/log.h"
#include "version/manifest.h"

typedef tamiz_status body_dump(struct dump *d, struct slice body);

static void header_dump(struct dump *d, const struct log_header *h)
{
    dump_item(d, 0, "header");
    dump_id(d, "file_id", h->file_id);
    dump_number(d, "number", h->number);
    if (h->kind == LOG_WAL)
        dump_number(d, "first_seq", h->first);
    dump_id(d, "boot_id", h->boot_id);
    dump_end(d);
}

static void end_dump(struct dump *d, const struct log_reader *r)
{
    dump_item(d, r->at, "end");
    dump_words(d, "tail", r->end == LOG_END_CLEAN ? "clean" : "torn");
    dump_words(d, "sealed", r->sealed ? "yes" : "no");
    if (r->dropped)
        dump_number(d, "dropped_bytes", r->dropped);
    dump_end(d);
}

static tamiz_status records_dump(struct dump *d, struct log_reader *r, body_dump *dump)
{
    struct slice body;
    tamiz_status st;
    while ((st = log_next(d->op, r, r->header.boot_id, &body)) == TAMIZ_OK) {
        dump_item(d, r->record, "record");
        dump_number(d, "size", body.size);
        dump_end(d);
        if (dump(d, body) < 0) {
            log_tell_where(d->op, r);
            return d->op->status;
        }
    }
    if (st < 0)
        return st;
    end_dump(d, r);
    return TAMIZ_OK;
}

static tamiz_status file_of_records(struct dump *d, struct buf *content, enum log_kind kind,
                                    body_dump *dump)
{
    struct log_reader r = {0};
    bool empty = false;
    tamiz_status st = log_reader_open_bytes(d->op, content, d->path, kind, &r, &empty);
    if (st < 0)
        return st;
    if (!empty) {
        header_dump(d, &r.header);
        st = records_dump(d, &r, dump);
    }
    log_reader_close(&r);
    return st;
}

static tamiz_status batch_dump(struct dump *d, struct slice body)
{
    struct batch_reader r;
    struct batch_write w;
    uint64_t first, count;
    const tamiz_status st = batch_open(d->op, body, &r, &first, &count);
    if (st < 0)
        return st;
    while (batch_next(&r, &w)) {
        dump_item(d, NO_OFFSET,
                  w.kind == KIND_PUT            ? "put"
                  : w.kind == KIND_EXPIRING     ? "put for a time"
                  : w.kind == KIND_RANGE_DELETE ? "delete range"
                                                : "delete");
        dump_number(d, "seq", w.seq);
        if (w.keyspace)
            dump_number(d, "keyspace", w.keyspace);
        dump_bytes(d, w.kind == KIND_RANGE_DELETE ? "from" : "key", w.key);
        if (w.kind == KIND_RANGE_DELETE)
            dump_bytes(d, "to", w.value);
        dump_value(d, w.kind, w.value);
        dump_end(d);
    }
    return TAMIZ_OK;
}

tamiz_status dump_log(struct dump *d, struct buf *content)
{
    return file_of_records(d, content, LOG_WAL, batch_dump);
}

static void table_added(struct dump *d, const struct table_meta *m)
{
    dump_item(d, NO_OFFSET, "add table");
    if (m->keyspace)
        dump_number(d, "keyspace", m->keyspace);
    dump_number(d, "number", m->number);
    dump_id(d, "file_id", m->file_id);
    dump_number(d, "bytes", m->file_size);
    dump_number(d, "level", m->level);
    dump_number(d, "run", m->run);
    dump_number(d, "entries", m->entries);
    dump_number(d, "keys", m->keys);
    dump_number(d, "tombstones", m->tombstones);
    dump_number(d, "seq_min", m->seq_min);
    dump_number(d, "seq_max", m->seq_max);
    dump_number(d, "filter_bytes", m->filter_bytes);
    dump_number(d, "ranges", m->ranges);
    dump_bytes(d, "smallest", m->smallest);
    dump_bytes(d, "largest", m->largest);
    dump_end(d);
}

static void table_removed(struct dump *d, uint64_t keyspace, uint64_t number)
{
    dump_item(d, NO_OFFSET, "remove table");
    dump_number(d, "is", number);
    if (keyspace)
        dump_number(d, "keyspace", keyspace);
    dump_end(d);
}

static void keyspace_item(struct dump *d, const struct manifest_keyspace *k)
{
    dump_item(d, NO_OFFSET, k->dropped ? "drop keyspace" : "make keyspace");
    dump_number(d, "id", k->id);
    if (!k->dropped)
        dump_bytes(d, "name", k->name);
    dump_end(d);
}

static void tree_dump(struct dump *d, const struct tree_edit *t)
{
    if (t->log_number) {
        dump_item(d, NO_OFFSET, "log of keyspace");
        dump_number(d, "keyspace", t->keyspace);
        dump_number(d, "log", t->log_number);
        dump_end(d);
    }
    for (size_t i = 0; i < t->tables.removed_count; i++)
        table_removed(d, t->keyspace, t->tables.removed[i]);
    for (size_t i = 0; i < t->tables.added_count; i++)
        table_added(d, t->tables.added[i]);
}

static void number_item(struct dump *d, bool has, const char *name, uint64_t value)
{
    if (!has)
        return;
    dump_item(d, NO_OFFSET, name);
    dump_number(d, "is", value);
    dump_end(d);
}

static tamiz_status edit_dump(struct dump *d, struct slice body)
{
    struct manifest_decoded decoded;
    const tamiz_status st = manifest_edit_decode(d->op, d->op->alloc, body, &decoded);
    if (st < 0)
        return st;
    const struct manifest_edit *edit = &decoded.edit;
    number_item(d, edit->has_next_file, "next file", edit->next_file);
    number_item(d, edit->has_log_number, "log number", edit->log_number);
    number_item(d, edit->has_last_seq, "last seq", edit->last_seq);
    number_item(d, edit->has_next_run, "next run", edit->next_run);
    number_item(d, edit->has_next_keyspace, "next keyspace", edit->next_keyspace);
    for (size_t i = 0; i < edit->keyspace_count; i++)
        keyspace_item(d, &edit->keyspaces[i]);
    for (size_t i = 0; i < edit->tree_count; i++)
        tree_dump(d, &edit->trees[i]);
    manifest_decoded_free(&decoded);
    return TAMIZ_OK;
}

tamiz_status dump_manifest(struct dump *d, struct buf *content)
{
    return file_of_records(d, content, LOG_MANIFEST, edit_dump);
}
