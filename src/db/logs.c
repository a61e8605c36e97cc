/* SPDX-License-Identifier: MIT */
#include "db/logs.h"

#include <assert.h>

/* Reserved at a time, so that an append seldom changes the file's metadata. */
enum { LOG_ALLOCATE = 1 << 20 };

tamiz_status store_new_log(struct op *op, struct store *s, uint64_t last_seq)
{
    assert(mutex_held(&s->log_mutex));
    tamiz_status st = TAMIZ_OK;
    char *path = NULL;
    if (s->log_count == s->log_capacity) {
        const size_t capacity = s->log_capacity ? s->log_capacity * 2 : 8;
        struct store_log *grown = mem_resize(&s->alloc, s->logs, s->log_capacity * sizeof *grown,
                                             capacity * sizeof *grown);
        if (!grown)
            return op_fail_memory(op);
        s->logs = grown;
        s->log_capacity = capacity;
    }
    struct store_log fresh = {.number = store_next_file(s), .last_seq = last_seq};
    struct log_header header = {.kind = LOG_WAL,
                                .number = fresh.number,
                                .first = last_seq + 1,
                                .boot_id = env_boot_id(s->env)};
    TRY(env_random_u64(op, s->env, &header.file_id));
    path = store_path(op, s, FILE_LOG, fresh.number);
    TRY(path ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    TRY(log_create(op, s->env, &s->alloc, path, IO_LOG, &header, LOG_ALLOCATE, &fresh.writer));
    /* Its name is durable before anything is in it: a log that is missing is never from a crash. */
    st = env_sync_directory(op, s->env, s->directory);
    if (st == TAMIZ_OK) {
        s->logs[s->log_count++] = fresh;
        atomic_store_explicit(&s->stray_log, false, memory_order_relaxed);
        atomic_store_explicit(&s->active_log, fresh.number, memory_order_relaxed);
    } else {
        /* Its name may be durable nevertheless, and its removal not. Records behind its first
         * sequence in an older log would then look like those of a group that failed. */
        atomic_store_explicit(&s->stray_log, true, memory_order_relaxed);
        (void)log_close(op, &fresh.writer);
        (void)env_remove(op, s->env, path);
    }
done:
    mem_free_text(&s->alloc, path);
    return st;
}

tamiz_status store_switch_log(struct op *op, struct store *s, uint64_t *number)
{
    mutex_lock(&s->log_mutex);
    const tamiz_status st = store_new_log(op, s, store_active_log(s)->last_seq);
    if (st == TAMIZ_OK)
        *number = store_active_log(s)->number;
    mutex_unlock(&s->log_mutex);
    return st;
}

tamiz_status store_sync_logs(struct op *op, struct store *s)
{
    assert(mutex_held(&s->log_mutex));
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; i < s->log_count; i++) {
        struct store_log *log = &s->logs[i];
        if (log->writer.durable < log->writer.end)
            TRY(log_sync(op, &log->writer));
    }
    atomic_store_explicit(&s->last_sync_ns, env_monotonic_ns(s->env), memory_order_relaxed);
done:
    return st;
}

/* Takes the oldest log off the list where it is below `keep_from`. */
static bool detach_log(struct store *s, uint64_t keep_from, struct store_log *log)
{
    mutex_lock(&s->log_mutex);
    const bool found = s->log_count > 1 && s->logs[0].number < keep_from;
    if (found) {
        *log = s->logs[0];
        s->log_count--;
        memmove(s->logs, s->logs + 1, s->log_count * sizeof *s->logs);
    }
    mutex_unlock(&s->log_mutex);
    return found;
}

/* Removing a large file takes the system a tenth of a second and more: no writer waits for it. */
void store_drop_logs(struct op *op, struct store *s)
{
    struct store_log log;
    mutex_lock(&s->install_mutex);
    const uint64_t keep_from = s->state.log_number;
    mutex_unlock(&s->install_mutex);
    while (detach_log(s, keep_from, &log)) {
        /* Its writes are in durable tables: what fails here costs a file that the next open
         * removes. */
        (void)log_close(op, &log.writer);
        op_forgive(op);
        char *path = store_path(op, s, FILE_LOG, log.number);
        if (path)
            (void)env_remove(op, s->env, path);
        op_forgive(op);
        mem_free_text(&s->alloc, path);
    }
}
