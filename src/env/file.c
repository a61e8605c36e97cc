/* SPDX-License-Identifier: MIT
 *
 * One open file: each call counted by purpose, each refusal a status with path, offset and size.
 *
 * A direct file bypasses the page cache and so takes only whole, aligned units. Whoever reads need
 * not know: what is not aligned goes through a buffer that is, and is counted as what the device
 * was asked for.
 */
#include "env/env.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct file {
    const tamiz_env *env;      /* borrowed: outlives all files */
    const struct alloc *alloc; /* the store's */
    void *handle;
    bool direct;
    char path[];
};

static tamiz_status file_fail(struct op *op, const struct file *file, int64_t error,
                              const char *what)
{
    return op_fail_os(op, (int)error, what, file->path);
}

static tamiz_status file_fail_at(struct op *op, const struct file *file, int64_t error,
                                 const char *what, uint64_t offset, size_t size)
{
    char words[80];
    (void)snprintf(words, sizeof words, "%s %zu bytes at %llu", what, size,
                   (unsigned long long)offset);
    return file_fail(op, file, error, words);
}

static size_t file_bytes(const char *path)
{
    return sizeof(struct file) + strlen(path) + 1;
}

tamiz_status file_open(struct op *op, const tamiz_env *env, const char *path, int flags,
                       struct file **file)
{
    *file = NULL;
    struct file *f = mem_new(op->alloc, file_bytes(path));
    if (!f)
        return op_fail_memory(op);
    *f = (struct file){env, op->alloc, NULL, (flags & TAMIZ_OPEN_DIRECT) != 0};
    memcpy(f->path, path, strlen(path) + 1);
    int error = env->ops->open(env->ctx, path, flags, &f->handle);
    if (error == -EINVAL && f->direct) {
        f->direct = false;
        error = env->ops->open(env->ctx, path, flags & ~TAMIZ_OPEN_DIRECT, &f->handle);
    }
    if (error) {
        mem_free(op->alloc, f, file_bytes(path));
        return op_fail_os(op, error, flags & TAMIZ_OPEN_CREATE ? "create" : "open", path);
    }
    *file = f;
    return TAMIZ_OK;
}

tamiz_status file_close(struct op *op, struct file *file)
{
    if (!file)
        return TAMIZ_OK;
    const int error = file->env->ops->close(file->env->ctx, file->handle);
    const tamiz_status st = error ? file_fail(op, file, error, "close") : TAMIZ_OK;
    mem_free(file->alloc, file, file_bytes(file->path));
    return st;
}

const char *file_path(const struct file *file)
{
    return file->path;
}

bool file_is_direct(const struct file *file)
{
    return file->direct;
}

/* ---- reading ----
 *
 * A direct file is read in whole units of DIRECT_ALIGN into an aligned buffer; the wanted bytes are
 * a part of that:
 *
 *     |<--------- span.size ---------->|
 *     span.offset   offset
 *     |   skip      |<- size ->|       |
 */
struct span {
    uint64_t offset;
    size_t size;
    size_t skip;
    bool bounced; /* through a buffer of ours */
};

static bool aligned(uint64_t n)
{
    return n % DIRECT_ALIGN == 0;
}

/* false: offset and size do not fit in 63 bits, so no file has such bytes. */
static bool span_of(const struct file *file, uint64_t offset, const void *buffer, size_t size,
                    struct span *span)
{
    if (offset > INT64_MAX - 2 * DIRECT_ALIGN || size > INT64_MAX - 2 * DIRECT_ALIGN - offset)
        return false;
    *span = (struct span){offset, size, 0, false};
    if (!file->direct || (aligned(offset) && aligned(size) && aligned((uintptr_t)buffer)))
        return true;
    span->bounced = true;
    span->skip = offset % DIRECT_ALIGN;
    span->offset = offset - span->skip;
    span->size = (span->skip + size + DIRECT_ALIGN - 1) / DIRECT_ALIGN * DIRECT_ALIGN;
    return true;
}

static void count_read(struct op *op, enum io_purpose purpose, const struct span *span)
{
    counter_add(&op->count->io[purpose].reads, 1);
    counter_add(&op->count->io[purpose].read_bytes, span->size);
}

/* Copies the wanted part of what came back; says how many bytes of it there are. */
static size_t span_deliver(const struct span *span, int64_t came, const uint8_t *bounce,
                           void *buffer, size_t size)
{
    size_t there = (size_t)came > span->skip ? (size_t)came - span->skip : 0;
    if (there > size)
        there = size;
    if (span->bounced && there)
        memcpy(buffer, bounce + span->skip, there);
    return there;
}

static int64_t env_read(const struct file *file, uint64_t offset, void *buffer, size_t size)
{
    return file->env->ops->read(file->env->ctx, file->handle, offset, buffer, size);
}

/* The slow half of file_read_some, on its own so that only direct reads pay for the stack. */
static __attribute__((noinline)) int64_t read_bounced(const struct file *file,
                                                      const struct span *span, void *buffer,
                                                      size_t size, size_t *got)
{
    enum { ON_STACK = 4 * DIRECT_ALIGN };
    _Alignas(DIRECT_ALIGN) uint8_t stack[ON_STACK];
    uint8_t *bounce = stack;
    if (span->size > ON_STACK)
        bounce = mem_new_aligned(file->alloc, span->size, DIRECT_ALIGN);
    if (!bounce)
        return -ENOMEM;
    const int64_t came = env_read(file, span->offset, bounce, span->size);
    if (came >= 0)
        *got = span_deliver(span, came, bounce, buffer, size);
    if (bounce != stack)
        mem_free_aligned(file->alloc, bounce, span->size, DIRECT_ALIGN);
    return came;
}

tamiz_status file_read_some(struct op *op, struct file *file, enum io_purpose purpose,
                            uint64_t offset, void *buffer, size_t size, size_t *got)
{
    struct span span;
    *got = 0;
    if (size == 0 || !span_of(file, offset, buffer, size, &span))
        return TAMIZ_OK;
    count_read(op, purpose, &span);
    int64_t came;
    if (span.bounced) {
        came = read_bounced(file, &span, buffer, size, got);
    } else {
        came = env_read(file, offset, buffer, size);
        if (came >= 0)
            *got = span_deliver(&span, came, NULL, buffer, size);
    }
    return came < 0 ? file_fail_at(op, file, came, "read", offset, size) : TAMIZ_OK;
}

static tamiz_status fail_short(struct op *op, const struct file *file, uint64_t offset, size_t size,
                               size_t got)
{
    return op_fail(op, TAMIZ_CORRUPTION, "%s: want %zu bytes at %llu, the file ends after %zu",
                   file->path, size, (unsigned long long)offset, got);
}

tamiz_status file_read(struct op *op, struct file *file, enum io_purpose purpose, uint64_t offset,
                       void *buffer, size_t size)
{
    size_t got;
    const tamiz_status st = file_read_some(op, file, purpose, offset, buffer, size, &got);
    if (st < 0 || got == size)
        return st;
    return fail_short(op, file, offset, size, got);
}

/* ---- many reads at once ---- */

enum { MANY = 64 }; /* requests handed on together: bounds the stack */

/* Some requests of one asker, on their way. */
struct reads {
    struct op *op;
    enum io_purpose purpose;
    struct file_request *requests;
    size_t n;
    size_t first; /* the number of requests[0] for who is told */
    void (*done)(void *ctx, size_t i);
    void *done_ctx;
    struct span spans[MANY];
    tamiz_read_request asked[MANY];
};

static void tell(const struct reads *r, size_t i)
{
    if (r->done)
        r->done(r->done_ctx, r->first + i);
}

/* With an op for one request: same counters, a record of its own that nobody keeps. */
static void read_alone(const struct reads *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct file_request *q = &r->requests[i];
        struct op own;
        op_init(&own, r->op->alloc, r->op->count);
        q->status = file_read(&own, q->file, r->purpose, q->offset, q->buffer, q->size);
        tell(r, i);
    }
}

static tamiz_status request_status(struct op *op, const struct file_request *r,
                                   const struct span *span, const tamiz_read_request *asked)
{
    struct op own;
    op_init(&own, op->alloc, op->count);
    if (asked->result < 0)
        return file_fail_at(&own, r->file, asked->result, "read", r->offset, r->size);
    const size_t got = span_deliver(span, asked->result, asked->buffer, r->buffer, r->size);
    return got == r->size ? TAMIZ_OK : fail_short(&own, r->file, r->offset, r->size, got);
}

static void arrived(void *ctx, size_t i)
{
    const struct reads *r = ctx;
    count_read(r->op, r->purpose, &r->spans[i]);
    r->requests[i].status = request_status(r->op, &r->requests[i], &r->spans[i], &r->asked[i]);
    tell(r, i);
}

/* What each request asks the device for, and the bytes that need a buffer of ours. false: an offset
 * that no file has. */
static bool plan_spans(struct reads *r, size_t *bounce_size)
{
    *bounce_size = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct file_request *q = &r->requests[i];
        struct span *span = &r->spans[i];
        if (!span_of(q->file, q->offset, q->buffer, q->size, span))
            return false;
        if (span->bounced && __builtin_add_overflow(*bounce_size, span->size, bounce_size))
            return false;
    }
    return true;
}

/* The answers are failures until the env gives others. */
static void ask(struct reads *r, uint8_t *bounces)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct file_request *q = &r->requests[i];
        const struct span *span = &r->spans[i];
        r->asked[i] =
            (tamiz_read_request){q->file->handle, span->offset, q->buffer, span->size, -EIO};
        if (span->bounced) {
            r->asked[i].buffer = bounces;
            bounces += span->size;
        }
    }
    const tamiz_env *env = r->requests[0].file->env;
    if (ENV_HAS(env, read_each)) {
        env->ops->read_each(env->ctx, r->asked, r->n, arrived, r);
        return;
    }
    env->ops->read_many(env->ctx, r->asked, r->n);
    for (size_t i = 0; i < r->n; i++)
        arrived(r, i);
}

/* false: not done, no memory for the bounces or a nonsensical offset. */
static bool read_together(struct reads *r)
{
    size_t bounce_size;
    if (!plan_spans(r, &bounce_size))
        return false;
    const struct alloc *alloc = r->op->alloc;
    uint8_t *bounces = bounce_size ? mem_new_aligned(alloc, bounce_size, DIRECT_ALIGN) : NULL;
    if (bounce_size && !bounces)
        return false;
    ask(r, bounces);
    if (bounces)
        mem_free_aligned(alloc, bounces, bounce_size, DIRECT_ALIGN);
    return true;
}

void file_read_each(struct op *op, enum io_purpose purpose, struct file_request *requests, size_t n,
                    void (*done)(void *done_ctx, size_t i), void *done_ctx)
{
    struct reads r; /* large: what is asked is filled in as far as it is used */
    r.op = op;
    r.purpose = purpose;
    r.done = done;
    r.done_ctx = done_ctx;
    for (r.first = 0; r.first < n; r.first += r.n) {
        r.requests = requests + r.first;
        r.n = n - r.first < MANY ? n - r.first : MANY;
        if (r.n == 1 || !ENV_HAS(r.requests[0].file->env, read_many) || !read_together(&r))
            read_alone(&r);
    }
}

void file_read_many(struct op *op, enum io_purpose purpose, struct file_request *requests, size_t n)
{
    file_read_each(op, purpose, requests, n, NULL, NULL);
}

/* ---- writing ---- */

tamiz_status file_write(struct op *op, struct file *file, enum io_purpose purpose, uint64_t offset,
                        const void *data, size_t size)
{
    if (size == 0)
        return TAMIZ_OK;
    counter_add(&op->count->io[purpose].writes, 1);
    counter_add(&op->count->io[purpose].write_bytes, size);
    const int error = file->env->ops->write(file->env->ctx, file->handle, offset, data, size);
    return error ? file_fail_at(op, file, error, "write", offset, size) : TAMIZ_OK;
}

tamiz_status file_sync(struct op *op, struct file *file)
{
    counter_add(&op->count->syncs, 1);
    const int error = file->env->ops->sync(file->env->ctx, file->handle);
    return error ? file_fail(op, file, error, "sync") : TAMIZ_OK;
}

tamiz_status file_truncate(struct op *op, struct file *file, uint64_t size)
{
    const int error = file->env->ops->truncate(file->env->ctx, file->handle, size);
    return error ? file_fail(op, file, error, "truncate") : TAMIZ_OK;
}

tamiz_status file_allocate(struct op *op, struct file *file, uint64_t size)
{
    const int error = file->env->ops->allocate(file->env->ctx, file->handle, size);
    if (error == 0 || error == -ENOTSUP || error == -EOPNOTSUPP || error == -ENOSYS)
        return TAMIZ_OK;
    return file_fail(op, file, error, "allocate");
}

tamiz_status file_size(struct op *op, struct file *file, uint64_t *size)
{
    tamiz_file_info info = {0};
    const int error = file->env->ops->file_info(file->env->ctx, file->handle, &info);
    *size = error ? 0 : info.size;
    return error ? file_fail(op, file, error, "ask for the size of") : TAMIZ_OK;
}

/* ---- mapping ---- */

void *file_map(struct file *file, uint64_t offset, size_t size)
{
    const tamiz_env_ops *ops = file->env->ops;
    void *address = NULL;
    if (!ENV_HAS(file->env, map) || !ENV_HAS(file->env, unmap) ||
        ops->map(file->env->ctx, file->handle, offset, size, &address) != 0)
        return NULL;
    return address;
}

void file_unmap(struct file *file, void *address, size_t size)
{
    if (address)
        file->env->ops->unmap(file->env->ctx, address, size);
}
