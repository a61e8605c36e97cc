/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: any bytes as a table file, once as they are and once with their checksums made
 * right. tests/golden/table is a corpus to start from.
 */
#include <stdio.h>

#include "../table/repair.h"
#include "table/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
    struct op op;
    struct counters count;
    tamiz_env *env;
    struct epoch epoch;
    struct file_pool files;
    struct table_world world;
};

static const struct table_read fuzz_read = {
    .level = 0, .use_filter = true, .fill_cache = true, .purpose = IO_DATA};

static void write_file(struct fuzz *f, const uint8_t *data, size_t size)
{
    struct file *file;
    (void)env_remove(&f->op, f->env, "t");
    op_forgive(&f->op);
    if (file_open(&f->op, f->env, "t", TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &file) == TAMIZ_OK) {
        (void)file_write(&f->op, file, IO_META, 0, data, size);
        (void)file_close(&f->op, file);
    }
}

static void get_all(struct fuzz *f, struct table *t)
{
    for (unsigned i = 0; i < 100; i += 7) {
        char text[16];
        (void)snprintf(text, sizeof text, "user%08u", i);
        const struct lookup lookup = lookup_make(slice_of_text(text), 30);
        uint64_t stamp;
        struct slice value;
        struct cached_block *pinned;
        struct epoch_slot *slot = epoch_enter(&f->epoch);
        uint64_t cover;
        bool all;
        (void)table_cover(&f->op, t, &lookup, &cover, &all);
        (void)table_get(&f->op, t, &lookup, &fuzz_read, &stamp, &value, &pinned);
        epoch_leave(slot);
        cached_block_unpin(pinned);
        op_forgive(&f->op);
    }
}

static void ask_all(struct fuzz *f, struct table *t)
{
    for (unsigned i = 0; i < 100; i += 7) {
        char text[16];
        (void)snprintf(text, sizeof text, "user%08u", i);
        const struct slice key = slice_of_text(text);
        const struct read_range range = {true, true, key, key};
        enum table_verdict verdict;
        (void)table_ask_range(&f->op, t, &fuzz_read, &range, &verdict);
        op_forgive(&f->op);
    }
}

static void walk_all(struct fuzz *f, struct table *t)
{
    struct iter *it = table_iter(&f->op, t, &fuzz_read);
    if (!it)
        return;
    for (iter_seek_first(it); it->valid; iter_next(it))
        ;
    for (iter_seek_last(it); it->valid; iter_prev(it))
        ;
    iter_seek(it, slice_of_text("user00000050"), UINT64_MAX);
    iter_seek_before(it, slice_of_text("user00000050"), 0);
    iter_close(it);
}

static void use(struct fuzz *f, const uint8_t *data, size_t size)
{
    write_file(f, data, size);
    struct table *t = table_new(&f->op, &f->world, "t", 1, 0, 0);
    if (!t)
        return;
    tamiz_report report = TAMIZ_REPORT_INIT;
    ask_all(f, t);
    get_all(f, t);
    walk_all(f, t);
    op_forgive(&f->op);
    (void)table_verify(&f->op, t, &report);
    op_forgive(&f->op);
    table_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz f;
    memset(&f, 0, sizeof f);
    op_init(&f.op, &alloc_libc, &f.count);
    f.env = tamiz_env_memory_new();
    if (!f.env || epoch_init(&f.op, &f.epoch, &alloc_libc) != TAMIZ_OK ||
        file_pool_init(&f.op, &f.files, f.env, 4) != TAMIZ_OK)
        return 0;
    struct cache *cache = cache_new(&alloc_libc, &f.epoch, 1 << 16);
    uint8_t *copy = mem_new(&alloc_libc, size);
    f.world = (struct table_world){.env = f.env,
                                   .files = &f.files,
                                   .alloc = &alloc_libc,
                                   .epoch = &f.epoch,
                                   .cache = cache,
                                   .verify = true};
    if (cache && copy) {
        use(&f, data, size);
        if (size)
            memcpy(copy, data, size);
        repair_table(&f.op, copy, size, &alloc_libc);
        use(&f, copy, size);
    }
    mem_free(&alloc_libc, copy, size);
    cache_free(cache);
    epoch_free(&f.epoch);
    file_pool_free(&f.files);
    tamiz_env_memory_free(f.env);
    return 0;
}
