/* SPDX-License-Identifier: MIT
 *
 * Backups: a directory of numbered copies of one store, DIRECTORY/000001 and on. Each is a whole
 * store whose table files are its own or shared with the backup before it; so there is no format
 * to describe, no chain to replay, and none depends on another. A table is known again by its
 * number and by the random id in its header.
 */
#include <stdio.h>
#include <stdlib.h>

#include "db/checkpoint.h"
#include "db/options.h"

enum { BACKUP_NAME = 24 };

/* Exactly as we write it: six digits or more. */
static bool backup_name(const char *name, uint64_t *number)
{
    char ours[BACKUP_NAME];
    char *end;
    if (*name < '0' || *name > '9')
        return false;
    *number = strtoull(name, &end, 10);
    (void)snprintf(ours, sizeof ours, "%06llu", (unsigned long long)*number);
    return *number && *number < FILE_NUMBER_END && strcmp(ours, name) == 0;
}

static void see_backup(void *ctx, const char *name)
{
    uint64_t *newest = ctx;
    uint64_t number;
    if (backup_name(name, &number) && number > *newest)
        *newest = number;
}

/* "DIRECTORY/000007", owned. */
static char *backup_path(const struct alloc *alloc, const char *directory, uint64_t number)
{
    struct buf path = buf_init(alloc);
    buf_printf(&path, "%s/%06llu", directory, (unsigned long long)number);
    buf_u8(&path, 0);
    char *text = path.failed ? NULL : mem_text(alloc, (const char *)path.data);
    buf_free(&path);
    return text;
}

/* The number of the newest one; 0: none. They get their names when they are whole. */
static tamiz_status newest_backup(struct op *op, const tamiz_env *env, const char *directory,
                                  uint64_t *number)
{
    *number = 0;
    return env_list(op, env, directory, see_backup, number);
}

static tamiz_status backup_make(struct op *op, struct tamiz *db, const char *directory,
                                tamiz_backup_info *info)
{
    struct store *s = db->store;
    struct copy_done done = {0};
    struct copy_plan plan = {.own_files = true};
    char *path = NULL, *previous = NULL;
    uint64_t newest = 0;
    bool exists;
    tamiz_file_info at;
    tamiz_status st;
    TRY(env_path_info(op, s->env, directory, &exists, &at));
    if (!exists)
        TRY(env_make_directory(op, s->env, directory));
    TRY(newest_backup(op, s->env, directory, &newest));
    path = backup_path(&s->alloc, directory, newest + 1);
    previous = newest ? backup_path(&s->alloc, directory, newest) : NULL;
    TRY(path && (previous || !newest) ? TAMIZ_OK : op_fail_memory(op));
    plan.path = path;
    plan.previous = previous;
    TRY(checkpoint_make(op, db, &plan, &done));
    info->number = newest + 1;
    info->tables_kept = done.tables_linked;
    info->tables_copied = done.tables_copied;
    info->bytes_copied = done.bytes_copied + done.log_bytes;
done:
    mem_free_text(&s->alloc, path);
    mem_free_text(&s->alloc, previous);
    return st;
}

/* The caller's, of an older library perhaps: it is told as much as it has room for. NULL is fine.
 */
static tamiz_status check_info(const tamiz_backup_info *info)
{
    if (info && info->struct_size < sizeof info->struct_size)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "info: not from TAMIZ_BACKUP_INFO_INIT");
    return TAMIZ_OK;
}

static void tell_info(tamiz_backup_info *info, const tamiz_backup_info *made)
{
    const size_t first = sizeof info->struct_size;
    if (!info)
        return;
    const size_t size = info->struct_size < sizeof *made ? info->struct_size : sizeof *made;
    memcpy((char *)info + first, (const char *)made + first, size - first);
}

tamiz_status tamiz_backup(tamiz *db, const char *directory, tamiz_backup_info *info)
{
    tamiz_backup_info made = TAMIZ_BACKUP_INFO_INIT;
    tamiz_status st = store_check(db);
    if (st == TAMIZ_OK)
        st = check_info(info);
    if (st != TAMIZ_OK)
        return st;
    struct store *s = db->store;
    if (!directory || !*directory)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "directory: %s", directory ? "empty" : "NULL");
    if (s->options.read_only)
        return op_refuse(TAMIZ_READ_ONLY,
                         "%s: opened read-only: only who holds the lock can make a backup",
                         s->directory);
    struct op op;
    char *taken = NULL;
    struct epoch_slot *slot = epoch_enter_at(&s->epoch, db->slots);
    epoch_stay_outside(slot);
    op_init(&op, &s->alloc, &slot->count);
    TRY(checkpoint_path(&op, s, directory, &taken));
    TRY(backup_make(&op, db, taken, &made));
    counter_add(&op.count->backups, 1);
done:
    tell_info(info, &made);
    st = op_publish(&op, st);
    epoch_leave(slot);
    mem_free_text(&s->alloc, taken);
    store_collect(s);
    return st;
}

/* Which one: *path is its directory, owned. TAMIZ_NOT_FOUND: there is none, or not that one. */
static tamiz_status find_backup(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                                const char *directory, uint64_t *number, char **path)
{
    tamiz_status st = TAMIZ_OK;
    bool exists = false;
    tamiz_file_info info;
    *path = NULL;
    TRY(env_path_info(op, env, directory, &exists, &info));
    if (exists && *number == 0)
        TRY(newest_backup(op, env, directory, number));
    *path = backup_path(alloc, directory, *number);
    TRY(*path ? TAMIZ_OK : op_fail_memory(op));
    TRY(env_path_info(op, env, *path, &exists, &info));
    if (!exists || !*number) {
        op_fail(op, TAMIZ_NOT_FOUND, "%s: no such backup", *path);
        st = TAMIZ_NOT_FOUND;
    }
done:
    return st;
}

/* `backup` is open, for reading only: nobody writes there. */
static tamiz_status restore_from(tamiz *backup, const char *path, tamiz_backup_info *info)
{
    struct store *s = backup->store;
    struct op op;
    struct copy_done done = {0};
    struct copy_plan plan = {.own_files = true};
    char *taken = NULL;
    struct epoch_slot *slot = epoch_enter(&s->epoch);
    epoch_stay_outside(slot);
    op_init(&op, &s->alloc, &slot->count);
    tamiz_status st;
    TRY(checkpoint_path(&op, s, path, &taken));
    plan.path = taken;
    TRY(checkpoint_make(&op, backup, &plan, &done));
    info->tables_copied = done.tables_copied;
    info->bytes_copied = done.bytes_copied + done.log_bytes;
done:
    st = op_publish(&op, st);
    epoch_leave(slot);
    mem_free_text(&s->alloc, taken);
    return st;
}

tamiz_status tamiz_restore(const char *directory, uint64_t number, const char *path,
                           const tamiz_options *options, tamiz_backup_info *info)
{
    tamiz_backup_info made = TAMIZ_BACKUP_INFO_INIT;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    struct counters nowhere = {0};
    struct op op;
    char *from = NULL;
    tamiz *backup = NULL;
    tamiz_status st = check_info(info);
    if (st != TAMIZ_OK)
        return st;
    if (!directory || !*directory || !path || !*path)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "restore: want a directory and a path");
    st = options_take(options, &o);
    if (st != TAMIZ_OK)
        return st;
    o.read_only = true;
    o.error_if_exists = false;
    op_init(&op, &alloc_libc, &nowhere);
    st = op_publish(&op, find_backup(&op, o.env, &alloc_libc, directory, &number, &from));
    if (st == TAMIZ_OK)
        st = tamiz_open(from, &o, &backup);
    mem_free_text(&alloc_libc, from);
    if (st != TAMIZ_OK)
        return st;
    made.number = number;
    st = restore_from(backup, path, &made);
    tell_info(info, &made);
    const tamiz_status closed = tamiz_close(backup); /* it was only read */
    return st != TAMIZ_OK ? st : closed;
}
