/* SPDX-License-Identifier: MIT
 *
 * A workload is a row of a table: how the next request is made up, and whether it begins with an
 * empty store. Requests are made up 512 at a time, outside the measured stretch, and then carried
 * out one after the other; one clock reading ends an operation and begins the next. CPU time is
 * read around the stretch.
 */
#define _GNU_SOURCE
#include "workload.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process.h"

enum { RANGE_KEYS = 100 }; /* that a range delete takes, where nothing else is asked for */

enum { CHUNK = 512, BATCH_MAX = 256, SCAN_TIMED = 64, WRITE_BYTES_MAX = 1 << 20 };

enum action {
    DO_PUT,
    DO_PUT_SYNC,
    DO_DELETE,
    DO_DELETE_RANGE,
    DO_GET,
    DO_GET_ABSENT,
    DO_SCAN,
    DO_PREFIX,
    DO_PREFIX_ABSENT,
    DO_MODIFY
};

struct request {
    enum action action;
    uint32_t length; /* of a scan, or of a range */
    uint64_t index;  /* the key's number in the store */
    uint8_t key[KEY_SIZE];
};

struct thread;

struct workload {
    const char *name;
    const char *help;
    void (*make)(struct thread *t, uint64_t i, struct request *request);
    int (*special)(struct thread *t); /* instead: does all of its own */
    bool fresh;                       /* begins with an empty store                          */
    bool writes;                      /* grows or changes it: wait until settled afterwards  */
    bool mixed;                       /* writes and reads: begins warm as those that only read */
    bool multi;                       /* gets are put together into multi_gets               */
    bool own_clock;                   /* one thread, counted once                             */
    uint32_t divisor;                 /* of the number of operations: slow ones do fewer     */
};

/* One run of one workload. */
struct round {
    struct bench *bench;
    const struct workload *workload;
    unsigned threads;
    unsigned parameter; /* behind the colon; 0: none */
    uint64_t ops;
    struct permutation order; /* over the keys that are stored */
    struct permutation scramble;
    struct zipf zipf;
    _Atomic bool stop;   /* readers are done: so is the writer beside them */
    _Atomic bool failed; /* somebody told why */
};

struct thread {
    struct round *round;
    struct bench *bench;
    const struct workload *workload;
    unsigned number;
    bool beside; /* the writer beside readers */
    void *session;
    void *iter;
    struct random random;
    uint64_t begin, end; /* operations of this thread */
    struct request requests[CHUNK];
    uint8_t *values; /* to be written: CHUNK of them, or one where they are large */
    size_t values_room;
    uint8_t *buffers;  /* read: BATCH_MAX of them */
    uint64_t inserted; /* keys behind those that were there */
    uint64_t ops, found, bytes, wall_ns, cpu_ns, sum;
    uint64_t begun_ns, whole_ns, whole_cpu_ns; /* with what is not measured */
    struct histogram latency;
};

static int fail(struct thread *t, const char *what, uint64_t index)
{
    if (!atomic_exchange(&t->round->failed, true))
        fprintf(stderr, "%s: %s: %s (key %llu): %s\n", t->bench->engine->name,
                t->round->workload->name, what, (unsigned long long)index, engine_error());
    return -1;
}

/* ---- making up requests: one function a kind of workload */

static void request_key(struct request *q, enum action action, uint64_t index)
{
    q->action = action;
    q->index = index;
    key_write(2 * index + (action == DO_GET_ABSENT || action == DO_PREFIX_ABSENT), q->key);
}

static uint64_t any_index(struct thread *t)
{
    return random_below(&t->random, t->bench->stored);
}

static uint64_t hot_index(struct thread *t)
{
    return permutation_at(&t->round->scramble, zipf_next(&t->round->zipf, &t->random));
}

static void make_fillseq(struct thread *t, uint64_t i, struct request *q)
{
    (void)t;
    request_key(q, DO_PUT, i);
}

static void make_fillrandom(struct thread *t, uint64_t i, struct request *q)
{
    request_key(q, DO_PUT, permutation_at(&t->round->order, i % t->round->order.count));
}

static void make_fillsync(struct thread *t, uint64_t i, struct request *q)
{
    request_key(q, DO_PUT_SYNC, permutation_at(&t->round->order, i));
}

static void make_deleterandom(struct thread *t, uint64_t i, struct request *q)
{
    request_key(q, DO_DELETE, permutation_at(&t->round->order, i));
}

/* So many neighbours from any key on, whether others went before or not. */
static void make_deleterange(struct thread *t, uint64_t i, struct request *q)
{
    request_key(q, DO_DELETE_RANGE, permutation_at(&t->round->order, i));
    q->length = t->round->parameter ? t->round->parameter : RANGE_KEYS;
}

static void make_readrandom(struct thread *t, uint64_t i, struct request *q)
{
    (void)i;
    request_key(q, DO_GET, any_index(t));
}

static void make_readmissing(struct thread *t, uint64_t i, struct request *q)
{
    (void)i;
    request_key(q, DO_GET_ABSENT, any_index(t));
}

static void make_readhot(struct thread *t, uint64_t i, struct request *q)
{
    (void)i;
    request_key(q, DO_GET, hot_index(t));
}

static void make_seekrandom(struct thread *t, uint64_t i, struct request *q)
{
    (void)i;
    request_key(q, DO_SCAN, any_index(t));
    q->length = t->round->parameter ? t->round->parameter : t->bench->settings.seek_nexts;
}

/* The prefix is the whole key: one entry has it, or none. */
static void make_prefixrandom(struct thread *t, uint64_t i, struct request *q)
{
    (void)i;
    request_key(q, DO_PREFIX, any_index(t));
}

static void make_prefixmissing(struct thread *t, uint64_t i, struct request *q)
{
    (void)i;
    request_key(q, DO_PREFIX_ABSENT, any_index(t));
}

static void make_ycsb(struct thread *t, struct request *q, unsigned reads, enum action other)
{
    request_key(q, random_below(&t->random, 100) < reads ? DO_GET : other, hot_index(t));
}

static void make_ycsb_a(struct thread *t, uint64_t i, struct request *q)
{
    (void)i;
    make_ycsb(t, q, 50, DO_PUT);
}

static void make_ycsb_b(struct thread *t, uint64_t i, struct request *q)
{
    (void)i;
    make_ycsb(t, q, 95, DO_PUT);
}

static void make_ycsb_c(struct thread *t, uint64_t i, struct request *q)
{
    (void)i;
    make_ycsb(t, q, 100, DO_PUT);
}

/* The j-th key that a thread inserts behind all that were there; each thread has its own range. */
static uint64_t inserted_index(const struct thread *t, uint64_t j)
{
    return t->bench->stored + ((uint64_t)t->number << 40) + j;
}

static void make_insert(struct thread *t, struct request *q)
{
    request_key(q, DO_PUT, inserted_index(t, t->inserted++));
}

/* D: the newest are the most wanted. A thread looks at what it inserted itself, which is there by
 * then: requests are carried out in order. */
static void make_ycsb_d(struct thread *t, uint64_t i, struct request *q)
{
    (void)i;
    if (random_below(&t->random, 100) >= 95) {
        make_insert(t, q);
        return;
    }
    const uint64_t age = zipf_next(&t->round->zipf, &t->random);
    if (age < t->inserted)
        request_key(q, DO_GET, inserted_index(t, t->inserted - 1 - age));
    else
        request_key(q, DO_GET, t->bench->stored - 1 - (age - t->inserted) % t->bench->stored);
}

static void make_ycsb_e(struct thread *t, uint64_t i, struct request *q)
{
    (void)i;
    if (random_below(&t->random, 100) >= 95) {
        make_insert(t, q);
        return;
    }
    request_key(q, DO_SCAN, hot_index(t));
    q->length = 1 + (uint32_t)random_below(&t->random, 100);
}

static void make_ycsb_f(struct thread *t, uint64_t i, struct request *q)
{
    (void)i;
    make_ycsb(t, q, 50, DO_MODIFY);
}

/* ---- carrying them out */

static int check_value(struct thread *t, uint64_t index, const uint8_t *value, size_t size)
{
    if (size != t->bench->settings.value_size || !value_right(index, value, size))
        return fail(t, "a value with other bytes than were written", index);
    t->found++;
    t->bytes += KEY_SIZE + size;
    return 0;
}

static int do_get(struct thread *t, const struct request *q)
{
    const size_t room = t->bench->settings.value_size;
    size_t size = 0;
    switch (t->bench->engine->get(t->session, q->key, KEY_SIZE, t->buffers, room, &size)) {
    case ENGINE_OK:
        if (q->action == DO_GET_ABSENT)
            return fail(t, "a key that was never written is found", q->index);
        return check_value(t, q->index, t->buffers, size);
    case ENGINE_ABSENT:
        if (q->action != DO_GET_ABSENT && !t->bench->deleted)
            return fail(t, "a key that was written is not found", q->index);
        return 0;
    default: return fail(t, "get fails", q->index);
    }
}

static int do_put(struct thread *t, const struct request *q, const uint8_t *value)
{
    const size_t size = t->bench->settings.value_size;
    t->bytes += KEY_SIZE + size;
    if (t->bench->engine->put(t->session, q->key, KEY_SIZE, value, size,
                              q->action == DO_PUT_SYNC) != ENGINE_OK)
        return fail(t, "put fails", q->index);
    return 0;
}

static int do_modify(struct thread *t, const struct request *q, const uint8_t *value)
{
    return do_get(t, q) == 0 ? do_put(t, q, value) : -1;
}

static inline uint64_t word_at(const uint8_t *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
    return word;
}

/* Every byte is looked at, the last ones twice where the size is no multiple. */
static uint64_t touch(const uint8_t *data, size_t size)
{
    uint64_t sum[4] = {0};
    size_t i = 0;
    for (; i + 32 <= size; i += 32)
        for (size_t lane = 0; lane < 4; lane++)
            sum[lane] += word_at(data + i + 8 * lane);
    for (; i + 8 <= size; i += 8)
        sum[0] += word_at(data + i);
    if (i < size && size >= 8)
        sum[1] += word_at(data + size - 8);
    for (; size < 8 && i < size; i++)
        sum[1] += data[i];
    return sum[0] + sum[1] + sum[2] + sum[3];
}

/* A key as a number of two words, which orders as its bytes do. */
struct place {
    uint64_t high, low;
};
static_assert(KEY_SIZE == 2 * sizeof(uint64_t), "a key is two words");

static inline uint64_t ordered_word(const uint8_t *data)
{
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? word_at(data)
                                                  : __builtin_bswap64(word_at(data));
}

static inline struct place place_of(const uint8_t key[KEY_SIZE])
{
    return (struct place){ordered_word(key), ordered_word(key + 8)};
}

static inline int place_order(struct place a, struct place b)
{
    return a.high != b.high ? (a.high > b.high) - (a.high < b.high)
                            : (a.low > b.low) - (a.low < b.low);
}

/* The entry under the iterator; keys go up (or down) from the one before. What is done to each
 * entry is little: it is no engine's work, and is measured with all of them. */
static int take_entry(struct thread *t, struct place *last, int direction, bool first)
{
    const struct engine *e = t->bench->engine;
    size_t key_size, size;
    const uint8_t *key = e->iter_key(t->iter, &key_size);
    const uint8_t *value = e->iter_value(t->iter, &size);
    if (key_size != KEY_SIZE || size != t->bench->settings.value_size)
        return fail(t, "a scan meets an entry of another size", 0);
    const struct place place = place_of(key);
    if (!first && place_order(place, *last) != direction)
        return fail(t, "a scan goes back", key_read(key) / 2);
    if (first && !value_right(key_read(key) / 2, value, size))
        return fail(t, "a scan meets other bytes than were written", key_read(key) / 2);
    *last = place;
    t->sum ^= touch(value, size);
    t->bytes += KEY_SIZE + size;
    return 0;
}

/* A short scan opens an iterator of its own, as db_bench's does: it sees what was written. */
static int do_scan(struct thread *t, const struct request *q)
{
    const struct engine *e = t->bench->engine;
    struct place last = {0};
    uint32_t n = 0;
    int result = 0;
    size_t size;
    t->iter = e->iter_open(t->session);
    if (!t->iter)
        return fail(t, "no iterator", q->index);
    e->iter_seek(t->iter, q->key, KEY_SIZE);
    if (!t->bench->deleted &&
        (!e->iter_valid(t->iter) || memcmp(e->iter_key(t->iter, &size), q->key, KEY_SIZE) != 0))
        result = fail(t, "a seek does not find its key", q->index);
    for (; n < q->length && result == 0 && e->iter_valid(t->iter); n++) {
        result = take_entry(t, &last, 1, n == 0);
        e->iter_next(t->iter);
    }
    e->iter_close(t->iter);
    t->iter = NULL;
    t->found++;
    return result;
}

static int do_prefix(struct thread *t, const struct request *q)
{
    const struct engine *e = t->bench->engine;
    struct place last = {0};
    size_t size;
    int result = 0;
    t->iter =
        e->prefix_open ? e->prefix_open(t->session, q->key, KEY_SIZE) : e->iter_open(t->session);
    if (!t->iter)
        return fail(t, "no iterator", q->index);
    e->iter_seek(t->iter, q->key, KEY_SIZE);
    const bool found =
        e->iter_valid(t->iter) && memcmp(e->iter_key(t->iter, &size), q->key, KEY_SIZE) == 0;
    if (found && q->action == DO_PREFIX_ABSENT)
        result = fail(t, "a prefix that no key has is found", q->index);
    else if (!found && q->action == DO_PREFIX && !t->bench->deleted)
        result = fail(t, "a prefix that a key has is not found", q->index);
    else if (found)
        result = take_entry(t, &last, 1, true);
    e->iter_close(t->iter);
    t->iter = NULL;
    t->found += found;
    return result;
}

static int do_delete_range(struct thread *t, const struct request *q)
{
    uint8_t end[KEY_SIZE];
    key_write(2 * (q->index + q->length), end);
    t->bytes += 2 * KEY_SIZE;
    if (!t->bench->engine->remove_range)
        return fail(t, "has no range deletes: at", q->index);
    if (t->bench->engine->remove_range(t->session, q->key, KEY_SIZE, end, KEY_SIZE) < 0)
        return fail(t, "delete_range fails", q->index);
    return 0;
}

static int do_request(struct thread *t, size_t i)
{
    const struct request *q = &t->requests[i];
    const size_t size = t->bench->settings.value_size;
    const uint8_t *value = t->values + (i * size) % t->values_room;
    switch (q->action) {
    case DO_PUT:
    case DO_PUT_SYNC: return do_put(t, q, value);
    case DO_GET:
    case DO_GET_ABSENT: return do_get(t, q);
    case DO_SCAN: return do_scan(t, q);
    case DO_PREFIX:
    case DO_PREFIX_ABSENT: return do_prefix(t, q);
    case DO_MODIFY: return do_modify(t, q, value);
    case DO_DELETE_RANGE: return do_delete_range(t, q);
    case DO_DELETE: break;
    }
    t->bytes += KEY_SIZE;
    if (t->bench->engine->remove(t->session, q->key, KEY_SIZE) < 0)
        return fail(t, "delete fails", q->index);
    return 0;
}

static int check_multi(struct thread *t, const struct request *q, size_t n, const size_t *sizes)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *value = t->buffers + i * t->bench->settings.value_size;
        const bool found = sizes[i] != SIZE_MAX;
        if (found && q[i].action == DO_GET_ABSENT)
            return fail(t, "a key that was never written is found", q[i].index);
        if (!found && q[i].action == DO_GET && !t->bench->deleted)
            return fail(t, "a key that was written is not found", q[i].index);
        if (found && check_value(t, q[i].index, value, sizes[i]) != 0)
            return -1;
    }
    return 0;
}

static int do_multi(struct thread *t, size_t first, size_t n)
{
    const void *keys[BATCH_MAX];
    void *buffers[BATCH_MAX];
    size_t key_sizes[BATCH_MAX], sizes[BATCH_MAX];
    const size_t room = t->bench->settings.value_size;
    for (size_t i = 0; i < n; i++) {
        keys[i] = t->requests[first + i].key;
        key_sizes[i] = KEY_SIZE;
        buffers[i] = t->buffers + i * room;
    }
    if (t->bench->engine->multi_get(t->session, n, keys, key_sizes, buffers, room, sizes) !=
        ENGINE_OK)
        return fail(t, "multi_get fails", t->requests[first].index);
    return check_multi(t, &t->requests[first], n, sizes);
}

static unsigned batch_of(const struct thread *t)
{
    const unsigned batch = t->round->parameter ? t->round->parameter : t->bench->settings.batch;
    return batch < 1 ? 1 : batch > BATCH_MAX ? BATCH_MAX : batch;
}

/* ---- one thread */

/* Keys and values of the next stretch, made before it is timed. */
static void thread_make(struct thread *t, uint64_t i, size_t n)
{
    const size_t size = t->bench->settings.value_size;
    for (size_t k = 0; k < n; k++) {
        struct request *q = &t->requests[k];
        t->workload->make(t, i + k, q);
        if (q->action == DO_PUT || q->action == DO_PUT_SYNC || q->action == DO_MODIFY)
            value_write(q->index, t->bench->generation, t->values + (k * size) % t->values_room,
                        size);
    }
}

static int thread_do(struct thread *t, size_t n)
{
    const size_t step = t->workload->multi ? batch_of(t) : 1;
    const uint64_t cpu = thread_cpu_ns(), begin = now_ns();
    uint64_t last = begin;
    int result = 0;
    for (size_t i = 0; i < n && result == 0; i += step) {
        result = step == 1 ? do_request(t, i) : do_multi(t, i, n - i < step ? n - i : step);
        const uint64_t now = now_ns();
        histogram_add(&t->latency, now - last, 1);
        last = now;
    }
    t->wall_ns += last - begin;
    t->cpu_ns += thread_cpu_ns() - cpu;
    t->ops += n;
    return result;
}

/* Puts a second of the writer beside; 0: as many as it can. */
static uint64_t rate_of(const struct thread *t)
{
    return t->beside ? t->bench->settings.write_rate : 0;
}

static size_t chunk_of(const struct thread *t)
{
    const size_t fit = t->values_room / t->bench->settings.value_size;
    const uint64_t rate = rate_of(t), tick = rate / 1000 ? rate / 1000 : 1; /* a millisecond's */
    size_t most = fit < CHUNK ? fit : CHUNK;
    if (rate && tick < most)
        most = (size_t)tick;
    const size_t step = t->workload->multi ? batch_of(t) : 1;
    return most - most % step ? most - most % step : step;
}

/* Not before the moment at which operation `i` is due. */
static void thread_wait(const struct thread *t, uint64_t i)
{
    const uint64_t rate = rate_of(t);
    if (rate == 0)
        return;
    const double due = (double)t->begun_ns + (double)(i - t->begin) * 1e9 / (double)rate;
    const double now = (double)now_ns();
    const uint64_t left = due > now ? (uint64_t)(due - now) : 0;
    const struct timespec time = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
    if (left)
        (void)nanosleep(&time, NULL);
}

static void *thread_run(void *ctx)
{
    struct thread *t = ctx;
    const uint64_t cpu = thread_cpu_ns();
    t->begun_ns = now_ns();
    const size_t chunk = chunk_of(t);
    if (t->workload->special) {
        (void)t->workload->special(t);
    } else {
        for (uint64_t i = t->begin; i < t->end && !atomic_load(&t->round->failed);) {
            const size_t n = t->end - i < chunk ? (size_t)(t->end - i) : chunk;
            thread_make(t, i, n);
            thread_wait(t, i);
            if (thread_do(t, n) != 0 || (t->beside && atomic_load(&t->round->stop)))
                break;
            i += n;
        }
    }
    t->whole_cpu_ns = thread_cpu_ns() - cpu;
    t->whole_ns = now_ns() - t->begun_ns;
    return NULL;
}

static int thread_begin(struct thread *t, struct round *round, unsigned number)
{
    const size_t size = round->bench->settings.value_size;
    *t = (struct thread){.round = round, .bench = round->bench, .workload = round->workload};
    t->number = number;
    t->random.state = mix64(round->bench->settings.seed + 7919 * number + 1);
    t->begin = round->ops * number / round->threads;
    t->end = round->ops * (number + 1) / round->threads;
    t->values_room = size * CHUNK < WRITE_BYTES_MAX ? size * CHUNK : WRITE_BYTES_MAX / size * size;
    t->values_room = t->values_room ? t->values_room : size;
    t->values = malloc(t->values_room);
    t->buffers = malloc(size * BATCH_MAX);
    t->session = round->bench->engine->session_open(round->bench->store);
    if (!t->values || !t->buffers || !t->session)
        return fail(t, "no session", 0);
    return 0;
}

static void thread_end(struct thread *t)
{
    if (t->session)
        t->bench->engine->session_close(t->session);
    free(t->values);
    free(t->buffers);
}

/* ---- workloads that are no streams of requests */

static int scan_all(struct thread *t, bool forward)
{
    const struct engine *e = t->bench->engine;
    struct place last = {0};
    const uint64_t cpu = thread_cpu_ns(), begin = now_ns();
    uint64_t before = begin;
    t->iter = e->iter_open(t->session);
    if (!t->iter)
        return fail(t, "no iterator", 0);
    (forward ? e->iter_seek_first : e->iter_seek_last)(t->iter);
    for (bool first = true; t->ops < t->end && e->iter_valid(t->iter); first = false) {
        if (take_entry(t, &last, forward ? 1 : -1, first) != 0)
            break;
        (forward ? e->iter_next : e->iter_prev)(t->iter);
        if (++t->ops % SCAN_TIMED == 0) {
            const uint64_t now = now_ns();
            histogram_add(&t->latency, (now - before) / SCAN_TIMED, SCAN_TIMED);
            before = now;
        }
    }
    e->iter_close(t->iter);
    t->wall_ns = now_ns() - begin;
    t->cpu_ns = thread_cpu_ns() - cpu;
    t->found = t->ops;
    if (!t->bench->deleted && t->ops < t->end)
        return fail(t, "a scan ends before all keys were seen", t->ops);
    return 0;
}

static int run_readseq(struct thread *t)
{
    return scan_all(t, true);
}

static int run_readreverse(struct thread *t)
{
    return scan_all(t, false);
}

static int run_compact(struct thread *t)
{
    const uint64_t begin = now_ns(), cpu = thread_cpu_ns();
    if (t->bench->engine->compact && t->bench->engine->compact(t->bench->store) != ENGINE_OK)
        return fail(t, "compact fails", 0);
    t->wall_ns = now_ns() - begin;
    t->cpu_ns = thread_cpu_ns() - cpu;
    t->ops = 1;
    histogram_add(&t->latency, t->wall_ns, 1);
    return 0;
}

/* Opens the store that was closed, and gets one key. The session is given back first. */
static int run_open(struct thread *t)
{
    struct bench *b = t->bench;
    for (int i = 0; i < 5; i++) {
        b->engine->session_close(t->session);
        t->session = NULL;
        if (bench_close(b) != 0)
            return fail(t, "close fails", 0);
        const uint64_t begin = now_ns(), cpu = thread_cpu_ns();
        if (bench_open(b, false) != 0 || !(t->session = b->engine->session_open(b->store)))
            return fail(t, "open fails", 0);
        make_readrandom(t, 0, &t->requests[0]);
        if (do_get(t, &t->requests[0]) != 0)
            return -1;
        const uint64_t took = now_ns() - begin;
        histogram_add(&t->latency, took, 1);
        t->wall_ns += took;
        t->cpu_ns += thread_cpu_ns() - cpu;
        t->ops++;
    }
    b->warmed = false;
    return 0;
}

/* What the device itself can do, for fillsync to be measured against: as many bytes as a log record
 * of one put, behind each other in a file whose room is there, each synced. */
static int run_devicesync(struct thread *t)
{
    enum { RECORD = 152, ROOM = 1 << 20 };
    char path[4096];
    uint8_t record[RECORD];
    memset(record, 'r', sizeof record);
    (void)snprintf(path, sizeof path, "%s/devicesync", t->bench->settings.store.path);
    const int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    bool ok = file >= 0 && posix_fallocate(file, 0, ROOM) == 0 && fsync(file) == 0;
    const uint64_t begin = now_ns(), cpu = thread_cpu_ns();
    for (uint64_t before = begin; ok && t->ops < t->end; t->ops++) {
        const off_t at = (off_t)(t->ops * RECORD % (ROOM - RECORD));
        ok = pwrite(file, record, RECORD, at) == RECORD && fdatasync(file) == 0;
        const uint64_t now = now_ns();
        histogram_add(&t->latency, now - before, 1);
        before = now;
    }
    t->wall_ns = now_ns() - begin;
    t->cpu_ns = thread_cpu_ns() - cpu;
    if (file >= 0)
        (void)close(file);
    (void)unlink(path);
    return ok ? 0 : fail(t, "the plain loop's file", t->ops);
}

static const struct workload writer_beside = {.name = "writer", .make = make_fillrandom};

static const struct workload workloads[] = {
    {"fillseq", "put all keys in order, into an empty store", .make = make_fillseq, .fresh = true,
     .writes = true},
    {"fillrandom", "put all keys in random order, into an empty store", .make = make_fillrandom,
     .fresh = true, .writes = true},
    {"fillsync", "put num / 100 random keys, each synced, into an empty store",
     .make = make_fillsync, .fresh = true, .divisor = 100},
    {"devicesync", "append and fdatasync num / 100 times: the device's own rate",
     .special = run_devicesync, .fresh = true, .own_clock = true, .divisor = 100},
    {"overwrite", "put all keys again in random order", .make = make_fillrandom, .writes = true},
    {"deleterandom", "delete all keys in random order", .make = make_deleterandom, .writes = true},
    {"deleterange", "delete ranges of :N keys (100) from random keys on", .make = make_deleterange,
     .writes = true, .divisor = 100},
    {"readrandom", "get keys that are there", .make = make_readrandom},
    {"readmissing", "get keys that are not there, each between two that are",
     .make = make_readmissing},
    {"readhot", "get keys that are there, zipf 0.99", .make = make_readhot},
    {"multiget", "multi_get of :N keys that are there", .make = make_readrandom, .multi = true},
    {"multigetmissing", "multi_get of :N keys that are not there", .make = make_readmissing,
     .multi = true},
    {"seekrandom", "seek a key and read it and what follows, :N entries", .make = make_seekrandom,
     .divisor = 4},
    {"prefixrandom", "scan a prefix that one key has", .make = make_prefixrandom, .divisor = 4},
    {"prefixmissing", "scan a prefix that no key has, between two that are there",
     .make = make_prefixmissing, .divisor = 4},
    {"readseq", "read everything in order", .special = run_readseq, .own_clock = true},
    {"readreverse", "read everything backwards", .special = run_readreverse, .own_clock = true},
    {"readwhilewriting", "readrandom beside one thread that overwrites", .make = make_readrandom},
    {"ycsba", "half gets, half puts, zipf 0.99", .make = make_ycsb_a, .writes = true,
     .mixed = true},
    {"ycsbb", "95 % gets, 5 % puts, zipf 0.99", .make = make_ycsb_b, .writes = true, .mixed = true},
    {"ycsbc", "gets, zipf 0.99", .make = make_ycsb_c},
    {"ycsbd", "95 % gets of the newest keys, 5 % inserts", .make = make_ycsb_d, .writes = true,
     .mixed = true},
    {"ycsbe", "95 % scans of up to 100 entries, 5 % inserts", .make = make_ycsb_e, .writes = true,
     .mixed = true, .divisor = 10},
    {"ycsbf", "half gets, half get and put of the same key, zipf 0.99", .make = make_ycsb_f,
     .writes = true, .mixed = true},
    {"compact", "merge everything", .special = run_compact, .own_clock = true},
    {"open", "open the store and get one key, five times", .special = run_open, .own_clock = true},
};
enum { WORKLOADS = sizeof workloads / sizeof workloads[0] };

void workload_list(void)
{
    for (size_t i = 0; i < WORKLOADS; i++)
        printf("  %-17s %s\n", workloads[i].name, workloads[i].help);
}

/* ---- one round */

static const struct workload *workload_parse(const char *text, struct round *round)
{
    const size_t name = strcspn(text, ":@");
    const char *parameter = strchr(text, ':'), *threads = strchr(text, '@');
    round->parameter = parameter ? (unsigned)strtoul(parameter + 1, NULL, 10) : 0;
    if (threads)
        round->threads = (unsigned)strtoul(threads + 1, NULL, 10);
    for (size_t i = 0; i < WORKLOADS; i++)
        if (strlen(workloads[i].name) == name && memcmp(workloads[i].name, text, name) == 0)
            return &workloads[i];
    return NULL;
}

static void outcome_add(struct outcome *o, const struct thread *t)
{
    o->ops += t->ops;
    o->found += t->found;
    o->bytes += t->bytes;
    o->seconds += (double)t->wall_ns / 1e9 / o->threads;
    o->thread_cpu_us += (double)t->cpu_ns / 1e3;
    histogram_merge(&o->latency, &t->latency);
}

static int threads_run(struct round *round, struct thread *threads, unsigned count)
{
    pthread_t ids[64];
    unsigned started = 0;
    for (; started < count; started++)
        if (pthread_create(&ids[started], NULL, thread_run, &threads[started]) != 0)
            break;
    for (unsigned i = 0; i < started; i++) {
        if (threads[i].beside)
            atomic_store(&round->stop, true);
        (void)pthread_join(ids[i], NULL);
    }
    return started == count && !atomic_load(&round->failed) ? 0 : -1;
}

/* Reads all blocks once, in order, and one key in eight, so that a cache that keeps scans apart
 * has them too. */
static int warm_up(struct round *round)
{
    struct thread *t = calloc(1, sizeof *t);
    int result = t ? thread_begin(t, round, 0) : -1;
    if (result == 0) {
        t->begin = 0;
        t->end = round->bench->stored;
        result = scan_all(t, true);
        for (uint64_t i = 0; i < round->bench->stored && result == 0; i += 8) {
            request_key(&t->requests[0], DO_GET, i);
            result = do_get(t, &t->requests[0]);
        }
    }
    if (t)
        thread_end(t);
    free(t);
    round->bench->warmed = result == 0;
    return result;
}

/* A store that was opened anew in between counts from 0 again. */
static uint64_t since(uint64_t after, uint64_t before)
{
    return after >= before ? after - before : after;
}

/* Threads, the one beside them included, from begin to end. */
static int round_measure(struct round *round, struct thread *threads, unsigned count,
                         struct outcome *o)
{
    struct bench *b = round->bench;
    struct engine_counts before = {0}, after = {0};
    for (unsigned i = 0; i < count; i++)
        if (thread_begin(&threads[i], round, i) != 0)
            return -1;
    if (count > round->threads) {
        threads[round->threads].beside = true;
        threads[round->threads].workload = &writer_beside;
        threads[round->threads].begin = 0;
        threads[round->threads].end = UINT64_MAX;
    }
    if (b->engine->counts)
        b->engine->counts(b->store, &before);
    const struct process_io io_before = process_io_now();
    const uint64_t cpu = cpu_ns();
    const int result = threads_run(round, threads, count);
    uint64_t background_ns = cpu_ns() - cpu;
    const struct process_io io_after = process_io_now();
    if (b->engine->counts)
        b->engine->counts(b->store, &after);
    for (unsigned i = 0; i < count; i++) {
        background_ns -= threads[i].whole_cpu_ns < background_ns ? threads[i].whole_cpu_ns : 0;
        if (!threads[i].beside) {
            outcome_add(o, &threads[i]);
        } else {
            o->other_ops = threads[i].ops;
            o->other_seconds = (double)threads[i].whole_ns / 1e9;
        }
    }
    o->cpu_us = o->thread_cpu_us + (double)background_ns / 1e3;
    o->counts.known = after.known;
    o->counts.memory_bytes = after.memory_bytes;
    o->counts.device_reads = since(after.device_reads, before.device_reads);
    o->counts.device_read_bytes = since(after.device_read_bytes, before.device_read_bytes);
    o->kernel_known = io_after.known;
    o->kernel_read_bytes = io_after.read_bytes - io_before.read_bytes;
    o->kernel_write_bytes = io_after.write_bytes - io_before.write_bytes;
    return result;
}

/* A fill is over when compaction has settled: flushed, and nothing moves in the background. */
static int round_settle(struct round *round, struct outcome *o)
{
    struct bench *b = round->bench;
    const struct process_io before = process_io_now();
    const uint64_t cpu = cpu_ns(), begin = now_ns();
    if (b->engine->flush && b->engine->flush(b->store) != ENGINE_OK) {
        fprintf(stderr, "%s: flush fails: %s\n", b->engine->name, engine_error());
        return -1;
    }
    o->settle_seconds =
        (double)(now_ns() - begin) / 1e9 + wait_until_idle(b->engine->settled, b->store);
    o->cpu_us += (double)(cpu_ns() - cpu) / 1e3;
    o->kernel_write_bytes += process_io_now().write_bytes - before.write_bytes;
    return 0;
}

/* Above the number of keys, the permutation would repeat itself: the operations wrap around. */
static void round_prepare(struct round *round)
{
    struct bench *b = round->bench;
    const struct bench_settings *s = &b->settings;
    const struct workload *w = round->workload;
    const uint64_t keys = w->fresh ? s->num : b->stored;
    const bool whole = w->fresh || w->writes || w->own_clock;
    round->ops = whole || s->ops == 0 ? keys : s->ops;
    if (w->writes && !w->fresh && s->ops)
        round->ops = s->ops;
    if (w->divisor)
        round->ops = round->ops / w->divisor ? round->ops / w->divisor : 1;
    if (w->own_clock)
        round->threads = 1;
    round->order = permutation_make(keys, mix64(s->seed + b->generation));
    round->scramble = permutation_make(keys, 42);
    round->zipf = zipf_make(keys, 0.99);
}

static int round_run(struct round *round, struct outcome *o)
{
    struct bench *b = round->bench;
    const struct workload *w = round->workload;
    const bool beside = strcmp(w->name, "readwhilewriting") == 0;
    const unsigned count = round->threads + beside;
    struct thread *threads = calloc(count, sizeof *threads);
    int result = threads ? round_measure(round, threads, count, o) : -1;
    for (unsigned i = 0; threads && i < count; i++)
        thread_end(&threads[i]);
    free(threads);
    if (result == 0 && (w->writes || beside)) {
        result = round_settle(round, o);
        b->generation++;
    }
    o->cpu_us /= o->ops ? (double)o->ops : 1;
    o->thread_cpu_us /= o->ops ? (double)o->ops : 1;
    return result;
}

bool workload_known(const char *text)
{
    struct round round = {.threads = 1};
    return workload_parse(text, &round) && round.threads >= 1 && round.threads <= 63;
}

int workload_run(struct bench *bench, const char *text, struct outcome *o)
{
    struct round round = {.bench = bench, .threads = bench->settings.threads};
    const struct workload *w = round.workload = workload_parse(text, &round);
    *o = (struct outcome){0};
    (void)snprintf(o->name, sizeof o->name, "%s", text);
    if (!w || round.threads < 1 || round.threads > 63) {
        fprintf(stderr, "%s: no such workload\n", text);
        return -1;
    }
    if (w->multi && !bench->engine->multi_get) {
        fprintf(stderr, "%s: %s has no such call\n", text, bench->engine->name);
        return 1;
    }
    if (!w->fresh && bench->stored == 0) {
        fprintf(stderr, "%s: the store is empty: fill it first\n", text);
        return -1;
    }
    if (w->fresh && bench_open(bench, true) != 0)
        return -1;
    bench->stored = w->fresh ? bench->settings.num : bench->stored;
    round_prepare(&round);
    o->threads = round.threads;
    if (!w->fresh && (!w->writes || w->mixed) && !w->special && bench->settings.warm &&
        !bench->warmed && warm_up(&round) != 0)
        return -1;
    const int result = round_run(&round, o);
    if (w->fresh && round.ops < bench->settings.num)
        bench->stored = 0;
    bench->warmed = bench->warmed && !w->writes;
    bench->deleted = bench->deleted || w->make == make_deleterandom || w->make == make_deleterange;
    o->store_bytes = directory_bytes(bench->settings.store.path);
    process_memory(&o->rss_bytes, &o->peak_rss_bytes);
    return result;
}

int bench_open(struct bench *bench, bool fresh)
{
    struct engine_options options = bench->settings.store;
    options.create = fresh;
    if (fresh) {
        if (bench->store && bench_close(bench) != 0)
            return -1;
        if (!directory_empty(options.path)) {
            fprintf(stderr, "%s: can't be emptied\n", options.path);
            return -1;
        }
        bench->generation = 0;
        bench->deleted = bench->warmed = false;
    }
    if (bench->engine->open(&options, &bench->store) != ENGINE_OK) {
        fprintf(stderr, "%s: open fails: %s\n", bench->engine->name, engine_error());
        return -1;
    }
    return 0;
}

int bench_close(struct bench *bench)
{
    void *store = bench->store;
    bench->store = NULL;
    if (!store || bench->engine->close(store) == ENGINE_OK)
        return 0;
    fprintf(stderr, "%s: close fails: %s\n", bench->engine->name, engine_error());
    return -1;
}
