/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: any bytes as CURRENT, in a directory that has manifest 7. Nothing but exactly
 * its name and a newline leads to it.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/current_fuzz.c \
 *         src/[a-z]*[a-z]/[a-z]*.c -lxxhash -lzstd -pthread -lm
 */
#include <stdlib.h>

#include "version/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool what)
{
    if (!what)
        abort();
}

static void put(struct op *op, const tamiz_env *env, const char *path, struct slice bytes)
{
    struct file *file;
    must(file_open(op, env, path, TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &file) == TAMIZ_OK);
    if (bytes.size)
        must(file_write(op, file, IO_META, 0, bytes.data, bytes.size) == TAMIZ_OK);
    must(file_close(op, file) == TAMIZ_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct counters counters;
    static const char name[] = "MANIFEST-000007\n", words[] = "d/MANIFEST-000007: offset 64: ";
    struct op op;
    struct manifest_state state;
    tamiz_env *env = tamiz_env_memory_new();
    op_init(&op, &alloc_libc, &counters);
    must(env && env_make_directory(&op, env, "d") == TAMIZ_OK);
    put(&op, env, "d/CURRENT", slice_of(data, size));
    put(&op, env, "d/MANIFEST-000007", slice_of("torn", 4));
    const tamiz_status st = manifest_recover(&op, env, &alloc_libc, "d", &state);
    must(st == TAMIZ_CORRUPTION && op.status == st && !state.trees);
    const bool right = slice_equal(slice_of(data, size), slice_of(name, sizeof name - 1));
    must(right == (strncmp(op.text, words, sizeof words - 1) == 0));
    tamiz_env_memory_free(env);
    return 0;
}
