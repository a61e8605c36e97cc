/* SPDX-License-Identifier: MIT
 *
 * Many reads at once, by io_uring: one system call hands all of them to the kernel, so that the
 * device works on them side by side.
 *
 * Making a ring costs more than a small batch of reads saves, so rings are kept. The real env is
 * static and has no place of its own for them, hence the one thing in the library that is neither
 * constant nor a store's: a fixed pool of RINGS, belonging to the process like its descriptors do.
 * It holds no state anybody could observe but speed. A ring is claimed for one batch with one
 * compare-and-swap; where all are taken, the batch uses pread. They are made when first needed and
 * live as long as the process, one descriptor each.
 *
 * A forked child must not touch its parent's rings: claims and rings carry the process's id, so a
 * child finds claims of threads that it does not have void, and makes rings of its own. It does not
 * close the inherited ones: it may have done that itself, and the number be another file by now.
 *
 * Whatever goes wrong here, the request is repeated with pread, whose answer counts.
 */
#define _GNU_SOURCE /* for liburing.h */
#include "env/fs_posix.h"

#if defined(TAMIZ_HAVE_URING)

#include <errno.h>
#include <liburing.h>
#include <stdatomic.h>
#include <unistd.h>

enum { RINGS = 4, RING_ENTRIES = 64, SEND_AHEAD = 8, WAKE_FOR = 4, READ_MOST = 1 << 30 };

struct ring {
    _Atomic int claimed_by; /* process, or 0 */
    int made_by;            /* process, or 0: not made. Guarded by the claim, as is the next */
    struct io_uring uring;
};

static struct ring rings[RINGS];

static struct ring *ring_claim(int self)
{
    for (size_t i = 0; i < RINGS; i++) {
        int claimed = atomic_load_explicit(&rings[i].claimed_by, memory_order_relaxed);
        if (claimed != self &&
            atomic_compare_exchange_strong_explicit(&rings[i].claimed_by, &claimed, self,
                                                    memory_order_acquire, memory_order_relaxed))
            return &rings[i];
    }
    return NULL;
}

static void ring_release(struct ring *ring)
{
    atomic_store_explicit(&ring->claimed_by, 0, memory_order_release);
}

/* 0 or a negative errno. */
static int ring_make(struct ring *ring, int self)
{
    if (ring->made_by == self)
        return 0;
    ring->made_by = 0;
    const int error = io_uring_queue_init(RING_ENTRIES, &ring->uring, 0);
    if (error)
        return error;
    const int kept = io_uring_ring_dontfork(&ring->uring);
    if (kept) {
        io_uring_queue_exit(&ring->uring);
        return kept;
    }
    ring->made_by = self;
    return 0;
}

static void ring_unmake(struct ring *ring)
{
    io_uring_queue_exit(&ring->uring);
    ring->made_by = 0;
}

/* Continues what came short and repeats what failed. */
static void finish_with_pread(tamiz_read_request *r)
{
    size_t done = r->result > 0 ? (size_t)r->result : 0;
    if (done == r->size || (done && posix_is_direct(r->file) && done % POSIX_DIRECT_ALIGN != 0))
        return;
    const int64_t more =
        posix_read(NULL, r->file, r->offset + done, (uint8_t *)r->buffer + done, r->size - done);
    r->result = more < 0 ? more : (int64_t)done + more;
}

/* One batch under way: at most RING_ENTRIES requests, and who is told of each. */
struct batch {
    tamiz_read_request *requests;
    size_t n;
    size_t first; /* the number of requests[0] for who is told */
    void (*done)(void *ctx, size_t i);
    void *done_ctx;
    bool ended[RING_ENTRIES];
};

static void request_end(struct batch *b, size_t i)
{
    b->ended[i] = true;
    finish_with_pread(&b->requests[i]);
    b->done(b->done_ctx, b->first + i);
}

/* Takes `n` answers. Waits for a few at a time, so that the caller works on those while the device
 * is at the others, and is not woken for each. */
static int ring_reap(struct ring *ring, struct batch *b, size_t n)
{
    while (n) {
        struct io_uring_cqe *cqe;
        const size_t few = io_uring_cq_ready(&ring->uring) ? 1 : n < WAKE_FOR ? n : WAKE_FOR;
        const int error = io_uring_wait_cqe_nr(&ring->uring, &cqe, (unsigned)few);
        if (error == -EINTR || error == -EAGAIN)
            continue;
        if (error)
            return error;
        const size_t i = io_uring_cqe_get_data64(cqe);
        b->requests[i].result = cqe->res;
        io_uring_cqe_seen(&ring->uring, cqe);
        request_end(b, i);
        n--;
    }
    return 0;
}

/* Sends what was written since the last time; *sent grows. */
static int ring_send(struct ring *ring, size_t written, size_t *sent)
{
    while (*sent < written) {
        const int taken = io_uring_submit(&ring->uring);
        if (taken > 0)
            *sent += (size_t)taken;
        else if (taken != -EINTR)
            return taken ? taken : -EIO;
    }
    return 0;
}

/* Requests that got no answer keep the negative result they came with. The first few are sent
 * ahead: to send one takes the kernel a tenth of the time that the device is at it, and that would
 * wait for all. */
static int ring_read(struct ring *ring, struct batch *b)
{
    size_t sent = 0;
    int error = 0;
    for (size_t i = 0; i < b->n && !error; i++) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
        if (!sqe) {
            error = -EBUSY;
            break;
        }
        const tamiz_read_request *r = &b->requests[i];
        const unsigned size = r->size < READ_MOST ? (unsigned)r->size : READ_MOST;
        io_uring_prep_read(sqe, posix_fd(r->file), r->buffer, size, r->offset);
        io_uring_sqe_set_data64(sqe, i);
        if (i + 1 == SEND_AHEAD || i + 1 == b->n)
            error = ring_send(ring, i + 1, &sent);
    }
    const int reaped = ring_reap(ring, b, sent); /* the kernel has these buffers */
    return error ? error : reaped;
}

static void read_batch(struct batch *b)
{
    const int self = (int)getpid();
    struct ring *ring = b->n > 1 ? ring_claim(self) : NULL;
    for (size_t i = 0; i < b->n; i++)
        b->requests[i].result = -EIO;
    if (ring) {
        if (ring_make(ring, self) == 0 && ring_read(ring, b) != 0)
            ring_unmake(ring); /* what it holds unsent must not be sent with a later batch */
        ring_release(ring);
    }
    for (size_t i = 0; i < b->n; i++)
        if (!b->ended[i])
            request_end(b, i);
}

void posix_read_each(void *ctx, tamiz_read_request *requests, size_t n,
                     void (*done)(void *done_ctx, size_t i), void *done_ctx)
{
    (void)ctx;
    for (size_t at = 0; at < n; at += RING_ENTRIES) {
        struct batch b = {.requests = requests + at,
                          .n = n - at < RING_ENTRIES ? n - at : RING_ENTRIES,
                          .first = at,
                          .done = done,
                          .done_ctx = done_ctx};
        read_batch(&b);
    }
}

static void nobody(void *ctx, size_t i)
{
    (void)ctx;
    (void)i;
}

void posix_read_many(void *ctx, tamiz_read_request *requests, size_t n)
{
    posix_read_each(ctx, requests, n, nobody, NULL);
}

const char *posix_read_many_name(void *ctx)
{
    (void)ctx;
    const int self = (int)getpid();
    struct ring *ring = ring_claim(self);
    if (!ring)
        return "io_uring"; /* all in use just now */
    const int error = ring_make(ring, self);
    ring_release(ring);
    switch (-error) {
    case 0: return "io_uring";
    case EPERM: return "pread (io_uring: Operation not permitted)";
    case ENOSYS: return "pread (io_uring: Function not implemented)";
    case ENOMEM: return "pread (io_uring: Cannot allocate memory)";
    case EMFILE: return "pread (io_uring: Too many open files)";
    default: return "pread (io_uring: not available)";
    }
}

#else

void posix_read_many(void *ctx, tamiz_read_request *requests, size_t n)
{
    for (size_t i = 0; i < n; i++)
        requests[i].result = posix_read(ctx, requests[i].file, requests[i].offset,
                                        requests[i].buffer, requests[i].size);
}

void posix_read_each(void *ctx, tamiz_read_request *requests, size_t n,
                     void (*done)(void *done_ctx, size_t i), void *done_ctx)
{
    for (size_t i = 0; i < n; i++) {
        posix_read_many(ctx, &requests[i], 1);
        done(done_ctx, i);
    }
}

const char *posix_read_many_name(void *ctx)
{
    (void)ctx;
    return "pread (built without io_uring)";
}

#endif
