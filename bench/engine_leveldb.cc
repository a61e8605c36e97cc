// SPDX-License-Identifier: MIT
//
// LevelDB with its Bloom filter and a cache of the common size; everything else is its default. It
// has one background thread, no direct I/O and no multi_get.

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "engine_leveldb_kin.h"

namespace {

struct Names {
    using Iterator = leveldb::Iterator;
    using Slice = leveldb::Slice;
    using Status = leveldb::Status;
};
using Same = Kin<Names>;

int Answer(const leveldb::Status &status, const char *what) { return Same::Answer(status, what); }
leveldb::Slice SliceOf(const void *data, size_t size) { return Same::SliceOf(data, size); }

struct Store {
    std::unique_ptr<leveldb::Cache> cache;
    std::unique_ptr<const leveldb::FilterPolicy> filter;
    std::unique_ptr<leveldb::DB> db;  // goes first
};

struct Session {
    Store *store;
    std::string value;
};

int Open(const engine_options *o, void **out) {
    auto store = std::make_unique<Store>();
    leveldb::Options options;
    *out = nullptr;
    if (o->zstd || o->direct)
        return engine_fail("options", "LevelDB 1.23 has neither zstd nor direct I/O");
    store->cache.reset(leveldb::NewLRUCache(o->cache));
    options.create_if_missing = o->create;
    options.write_buffer_size = o->memtable;
    options.block_size = o->block;
    options.block_cache = store->cache.get();
    options.compression = leveldb::kNoCompression;
    options.max_open_files = 50000;
    if (o->filter_bits > 0)
        store->filter.reset(leveldb::NewBloomFilterPolicy(static_cast<int>(o->filter_bits)));
    options.filter_policy = store->filter.get();
    leveldb::DB *db = nullptr;
    const leveldb::Status status = leveldb::DB::Open(options, o->path, &db);
    if (!status.ok())
        return engine_fail("open", status.ToString().c_str());
    store->db.reset(db);
    *out = store.release();
    return ENGINE_OK;
}

int Close(void *p) {
    delete static_cast<Store *>(p);
    return ENGINE_OK;
}

void *SessionOpen(void *store) { return new Session{static_cast<Store *>(store), {}}; }
void SessionClose(void *session) { delete static_cast<Session *>(session); }

int Put(void *p, const void *key, size_t key_size, const void *value, size_t value_size,
        bool sync) {
    leveldb::WriteOptions options;
    options.sync = sync;
    return Answer(static_cast<Session *>(p)->store->db->Put(options, SliceOf(key, key_size),
                                                            SliceOf(value, value_size)),
                  "put");
}

int Remove(void *p, const void *key, size_t key_size) {
    return Answer(static_cast<Session *>(p)->store->db->Delete(leveldb::WriteOptions(),
                                                               SliceOf(key, key_size)),
                  "delete");
}

int Get(void *p, const void *key, size_t key_size, void *buffer, size_t capacity, size_t *size) {
    Session *s = static_cast<Session *>(p);
    const leveldb::Status status =
        s->store->db->Get(leveldb::ReadOptions(), SliceOf(key, key_size), &s->value);
    if (!status.ok())
        return Answer(status, "get");
    *size = Same::CopyOut(s->value, buffer, capacity);
    return ENGINE_OK;
}

void *IterOpen(void *p) {
    return static_cast<Session *>(p)->store->db->NewIterator(leveldb::ReadOptions());
}

int Compact(void *p) {
    static_cast<Store *>(p)->db->CompactRange(nullptr, nullptr);
    return ENGINE_OK;
}

// There is no call for a flush: a compaction of a range without keys does it.
int Flush(void *p) {
    const leveldb::Slice none("~~~~");
    static_cast<Store *>(p)->db->CompactRange(&none, &none);
    return ENGINE_OK;
}

void Counts(void *, engine_counts *c) { *c = engine_counts{0, 0, 0, false}; }

char *Describe(void *p) {
    std::string text;
    static_cast<Store *>(p)->db->GetProperty("leveldb.stats", &text);
    return strdup(text.c_str());
}

const char *Version() {
    static const std::string text =
        std::to_string(leveldb::kMajorVersion) + "." + std::to_string(leveldb::kMinorVersion);
    return text.c_str();
}

}  // namespace

extern "C" const engine engine_leveldb;
extern "C" const engine engine_leveldb = {
    .name = "leveldb",
    .version = Version,
    .check = nullptr,
    .open = Open,
    .close = Close,
    .session_open = SessionOpen,
    .session_close = SessionClose,
    .put = Put,
    .remove = Remove,
    .remove_range = nullptr,
    .get = Get,
    .multi_get = nullptr,
    .iter_open = IterOpen,
    .prefix_open = nullptr,
    .iter_seek = Same::IterSeek,
    .iter_seek_first = Same::IterSeekFirst,
    .iter_seek_last = Same::IterSeekLast,
    .iter_next = Same::IterNext,
    .iter_prev = Same::IterPrev,
    .iter_valid = Same::IterValid,
    .iter_key = Same::IterKey,
    .iter_value = Same::IterValue,
    .iter_close = Same::IterClose,
    .flush = Flush,
    .settled = nullptr,
    .compact = Compact,
    .counts = Counts,
    .describe = Describe,
};
