/* SPDX-License-Identifier: MIT */
#include "version/signature.h"

#include <string.h>

#include "version/listing.h"

enum { MARK = 8 };

enum verdict { NOTHING, FOREIGN, OURS };

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

static tamiz_status look_at(struct op *op, const tamiz_env *env, const char *directory,
                            enum file_kind kind, uint64_t number, enum verdict *verdict)
{
    char *path = filename_path(op->alloc, directory, kind, number);
    struct file *file = NULL;
    char first[MARK] = {0}, last[MARK] = {0};
    uint64_t size = 0;
    size_t got = 0, got_last = 0;
    tamiz_status st;
    TRY(path ? TAMIZ_OK : op_fail_memory(op));
    TRY(file_open(op, env, path, TAMIZ_OPEN_READ, &file));
    TRY(file_size(op, file, &size));
    TRY(file_read_some(op, file, IO_META, 0, first, MARK, &got));
    if (size >= MARK)
        TRY(file_read_some(op, file, IO_META, size - MARK, last, MARK, &got_last));
    *verdict = judge(kind, first, last, got);
done:;
    const tamiz_status closed = file_close(op, file);
    mem_free_text(op->alloc, path);
    return st < 0 ? st : closed;
}

tamiz_status store_signature(struct op *op, const tamiz_env *env, const char *directory)
{
    struct listing files;
    char stranger[FILE_NAME_MAX] = "";
    enum verdict verdict = NOTHING;
    tamiz_status st;
    listing_init(&files, op->alloc);
    TRY(listing_take(op, env, directory, &files));
    for (enum file_kind kind = FILE_CURRENT; kind <= FILE_TABLE; kind++)
        for (size_t i = 0; verdict != OURS && i < listing_count(&files, kind); i++) {
            const uint64_t number = listing_numbers(&files, kind)[i];
            TRY(look_at(op, env, directory, kind, number, &verdict));
            if (verdict == FOREIGN && !*stranger)
                filename_format(kind, number, stranger);
        }
    if (listing_is_empty(&files))
        st = op_fail(op, TAMIZ_NOT_FOUND, "%s: no store here", directory);
    else if (verdict != OURS && *stranger)
        st = op_fail(op, TAMIZ_NOT_FOUND, "%s: no store of tamiz: %s is somebody else's", directory,
                     stranger);
done:
    listing_free(&files);
    return st;
}
