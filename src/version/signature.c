/* SPDX-License-Identifier: MIT */
#include "version/signature.h"

#include <string.h>

#include "version/filename.h"

enum { MARK = 8 };

enum verdict { NOTHING, FOREIGN, OURS };

struct names {
    struct buf text; /* NUL-terminated, one behind the other; those that filename_parse knows */
};

static void keep(void *ctx, const char *name)
{
    struct names *n = ctx;
    uint64_t number;
    if (filename_parse(name, &number) != FILE_OTHER)
        buf_append(&n->text, name, strlen(name) + 1);
}

static bool begins(const char bytes[MARK], size_t size, const char *with)
{
    return size >= strlen(with) && memcmp(bytes, with, strlen(with)) == 0;
}

static enum verdict judge(enum file_kind kind, const char first[MARK], const char last[MARK],
                          size_t size)
{
    static const char zeros[MARK];
    switch (kind) {
    case FILE_MANIFEST:
    case FILE_LOG:
        if (begins(first, size, "TAMIZLOG"))
            return OURS;
        break;
    case FILE_TABLE:
        if (begins(first, size, "TAMIZTAB") || begins(last, size, "TAMIZTAB"))
            return OURS;
        break;
    case FILE_LOCK:
        if (begins(first, size, "pid "))
            return NOTHING;
        break;
    case FILE_CURRENT:
    case FILE_CURRENT_NEW:
        if (begins(first, size, "MANIFEST"))
            return NOTHING;
        break;
    case FILE_OTHER: break;
    }
    return memcmp(first, zeros, size) == 0 ? NOTHING : FOREIGN;
}

static tamiz_status look_at(struct op *op, const tamiz_env *env, const char *path,
                            enum file_kind kind, enum verdict *verdict)
{
    struct file *file = NULL;
    char first[MARK] = {0}, last[MARK] = {0};
    uint64_t size = 0;
    size_t got = 0, got_last = 0;
    tamiz_status st;
    TRY(file_open(op, env, path, TAMIZ_OPEN_READ, &file));
    TRY(file_size(op, file, &size));
    TRY(file_read_some(op, file, IO_META, 0, first, MARK, &got));
    if (size >= MARK)
        TRY(file_read_some(op, file, IO_META, size - MARK, last, MARK, &got_last));
    *verdict = judge(kind, first, last, got);
done:;
    const tamiz_status closed = file_close(op, file);
    return st < 0 ? st : closed;
}

tamiz_status store_signature(struct op *op, const tamiz_env *env, const char *directory)
{
    struct names names = {buf_init(op->alloc)};
    char stranger[FILE_NAME_MAX] = "";
    enum verdict verdict = NOTHING;
    tamiz_status st;
    TRY(env_list(op, env, directory, keep, &names));
    TRY(names.text.failed ? op_fail_memory(op) : TAMIZ_OK);
    for (size_t at = 0; at < names.text.size && verdict != OURS;) {
        const char *name = (const char *)names.text.data + at;
        uint64_t number;
        const enum file_kind kind = filename_parse(name, &number);
        char *path = filename_path(op->alloc, directory, kind, number);
        st = path ? look_at(op, env, path, kind, &verdict) : op_fail_memory(op);
        mem_free_text(op->alloc, path);
        if (st < 0)
            goto done;
        if (verdict == FOREIGN && !*stranger)
            memcpy(stranger, name, strlen(name) + 1);
        at += strlen(name) + 1;
    }
    if (names.text.size == 0)
        st = op_fail(op, TAMIZ_NOT_FOUND, "%s: no store here", directory);
    else if (verdict != OURS && *stranger)
        st = op_fail(op, TAMIZ_NOT_FOUND, "%s: no store of tamiz: %s is somebody else's", directory,
                     stranger);
done:
    buf_free(&names.text);
    return st;
}
