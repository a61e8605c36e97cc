/* SPDX-License-Identifier: MIT */
#include "db/snapshot.h"

#include "db/read_options.h"

tamiz_status tamiz_snapshot_take(tamiz *db, tamiz_snapshot **snapshot)
{
    if (!snapshot)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "snapshot: NULL where the handle should go");
    *snapshot = NULL;
    const tamiz_status st = store_check(db);
    if (st != TAMIZ_OK)
        return st;
    struct store *s = db->store;
    struct tamiz_snapshot *taken = mem_new_array(&s->alloc, 1, sizeof *taken);
    if (!taken)
        return op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
    taken->store = s;
    env_point(s->env, "snap.seq");
    mutex_lock(&s->mutex);
    while (s->snapshots_barred)
        store_wait(s, &s->progress, 1000);
    /* Read and registered under one lock: a compaction that starts later sees it, one that started
     * before merges nothing newer. */
    taken->seq = atomic_load_explicit(&s->seq, memory_order_acquire);
    taken->ticket = ++s->snapshots_taken;
    taken->older = s->newest_snapshot;
    if (s->newest_snapshot)
        s->newest_snapshot->newer = taken;
    else
        s->oldest_snapshot = taken;
    s->newest_snapshot = taken;
    mutex_unlock(&s->mutex);
    *snapshot = taken;
    return TAMIZ_OK;
}

void tamiz_snapshot_release(tamiz_snapshot *snapshot)
{
    if (!snapshot)
        return;
    struct store *s = snapshot->store;
    mutex_lock(&s->mutex);
    if (snapshot->older)
        snapshot->older->newer = snapshot->newer;
    else
        s->oldest_snapshot = snapshot->newer;
    if (snapshot->newer)
        snapshot->newer->older = snapshot->older;
    else
        s->newest_snapshot = snapshot->older;
    store_call_work(s); /* versions it held back may go now */
    mutex_unlock(&s->mutex);
    mem_free(&s->alloc, snapshot, sizeof *snapshot);
}

uint64_t snapshot_list(struct store *s, struct buf *out)
{
    mutex_lock(&s->mutex);
    const uint64_t ticket = s->snapshots_taken;
    for (const struct tamiz_snapshot *at = s->oldest_snapshot; at; at = at->newer)
        buf_append(out, &at->seq, sizeof at->seq);
    mutex_unlock(&s->mutex);
    return ticket;
}

bool snapshots_bar(struct store *s, uint64_t ticket)
{
    if (s->newest_snapshot && s->newest_snapshot->ticket > ticket)
        return false;
    s->snapshots_barred = true;
    return true;
}

void snapshots_admit(struct store *s)
{
    s->snapshots_barred = false;
    condition_broadcast(&s->progress);
}

const tamiz_read_options read_options_default = TAMIZ_READ_OPTIONS_INIT;

tamiz_status read_options_resolve(const struct tamiz *db, const tamiz_read_options **options,
                                  tamiz_read_options *room)
{
    const tamiz_read_options *given = *options;
    if (!given) {
        *options = &read_options_default;
        return TAMIZ_OK;
    }
    if (given->struct_size < sizeof given->struct_size)
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "read options: struct_size=%zu: start from TAMIZ_READ_OPTIONS_INIT",
                         given->struct_size);
    if (given->struct_size < sizeof *given) {
        *room = read_options_default;
        memcpy(room, given, given->struct_size);
        *options = given = room;
    }
    if (given->trace && !given->trace->step)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "read options: a trace whose step is NULL");
    if (given->snapshot && given->snapshot->store != db->store)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "%s: the snapshot is of another store",
                         db->store->directory);
    return TAMIZ_OK;
}

uint64_t read_options_seq(const tamiz_read_options *options, uint64_t now)
{
    return options->snapshot ? options->snapshot->seq : now;
}
