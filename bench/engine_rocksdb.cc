// SPDX-License-Identifier: MIT
//
// RocksDB, configured for point reads: full Bloom filters in memory with their tables, the hash
// index inside data blocks, whole-key filter in the memtable, no statistics unless asked for. Its
// level sizes and triggers are its own defaults.

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine_leveldb_kin.h"

namespace {

struct Names {
    using Iterator = rocksdb::Iterator;
    using Slice = rocksdb::Slice;
    using Status = rocksdb::Status;
};
using Same = Kin<Names>;

int Answer(const rocksdb::Status &status, const char *what) { return Same::Answer(status, what); }
rocksdb::Slice SliceOf(const void *data, size_t size) { return Same::SliceOf(data, size); }

struct Store {
    std::unique_ptr<rocksdb::DB> db;
    rocksdb::Options options;
    rocksdb::WriteOptions write, write_sync;
    rocksdb::ReadOptions read;
};

struct Session {
    Store *store;
    rocksdb::PinnableSlice value;
    std::vector<rocksdb::PinnableSlice> values;
    std::vector<rocksdb::Slice> keys;
    std::vector<rocksdb::Status> statuses;
};

void SetTableOptions(const engine_options &o, rocksdb::Options *options) {
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(o.cache);
    table.block_size = o.block;
    table.format_version = 5;
    if (o.filter_bits > 0)
        table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(o.filter_bits));
    table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
    options->table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
}

int Open(const engine_options *o, void **out) {
    auto store = std::make_unique<Store>();
    rocksdb::Options &options = store->options;
    *out = nullptr;
    options.create_if_missing = o->create;
    options.write_buffer_size = o->memtable;
    options.max_background_jobs = static_cast<int>(o->threads);
    options.compression = o->zstd ? rocksdb::kZSTD : rocksdb::kNoCompression;
    options.compression_opts.level = 1;
    options.use_direct_reads = o->direct;
    options.use_direct_io_for_flush_and_compaction = o->direct;
    options.memtable_whole_key_filtering = true;
    options.memtable_prefix_bloom_size_ratio = 0.02;
    options.max_open_files = -1;
    options.stats_dump_period_sec = 0;
    if (o->counts)
        options.statistics = rocksdb::CreateDBStatistics();
    SetTableOptions(*o, &options);
    if (o->extra[0]) {
        rocksdb::Options changed;
        const rocksdb::Status status =
            rocksdb::GetOptionsFromString(rocksdb::ConfigOptions(), options, o->extra, &changed);
        if (!status.ok())
            return engine_fail("options", status.ToString().c_str());
        options = changed;
    }
    store->write_sync.sync = true;
    rocksdb::DB *db = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(options, o->path, &db);
    if (!status.ok())
        return engine_fail("open", status.ToString().c_str());
    store->db.reset(db);
    *out = store.release();
    return ENGINE_OK;
}

int Close(void *p) {
    std::unique_ptr<Store> store(static_cast<Store *>(p));
    return Answer(store->db->Close(), "close");
}

void *SessionOpen(void *store) { return new Session{static_cast<Store *>(store), {}, {}, {}, {}}; }

void SessionClose(void *session) { delete static_cast<Session *>(session); }

int Put(void *p, const void *key, size_t key_size, const void *value, size_t value_size,
        bool sync) {
    Store *store = static_cast<Session *>(p)->store;
    return Answer(store->db->Put(sync ? store->write_sync : store->write, SliceOf(key, key_size),
                                 SliceOf(value, value_size)),
                  "put");
}

int Remove(void *p, const void *key, size_t key_size) {
    Store *store = static_cast<Session *>(p)->store;
    return Answer(store->db->Delete(store->write, SliceOf(key, key_size)), "delete");
}

int RemoveRange(void *p, const void *from, size_t from_size, const void *to, size_t to_size) {
    Store *store = static_cast<Session *>(p)->store;
    return Answer(store->db->DeleteRange(store->write, store->db->DefaultColumnFamily(),
                                         SliceOf(from, from_size), SliceOf(to, to_size)),
                  "delete_range");
}

int Get(void *p, const void *key, size_t key_size, void *buffer, size_t capacity, size_t *size) {
    Session *s = static_cast<Session *>(p);
    s->value.Reset();
    const rocksdb::Status status = s->store->db->Get(
        s->store->read, s->store->db->DefaultColumnFamily(), SliceOf(key, key_size), &s->value);
    if (!status.ok())
        return Answer(status, "get");
    *size = Same::CopyOut(s->value, buffer, capacity);
    return ENGINE_OK;
}

int MultiGet(void *p, size_t n, const void *const keys[], const size_t key_sizes[],
             void *const buffers[], size_t capacity, size_t sizes[]) {
    Session *s = static_cast<Session *>(p);
    if (s->keys.size() < n) {
        s->keys.resize(n);
        s->values = std::vector<rocksdb::PinnableSlice>(n);
        s->statuses.resize(n);
    }
    for (size_t i = 0; i < n; i++)
        s->keys[i] = SliceOf(keys[i], key_sizes[i]);
    s->store->db->MultiGet(s->store->read, s->store->db->DefaultColumnFamily(), n, s->keys.data(),
                           s->values.data(), s->statuses.data());
    for (size_t i = 0; i < n; i++) {
        sizes[i] = SIZE_MAX;
        if (s->statuses[i].ok()) {
            sizes[i] = Same::CopyOut(s->values[i], buffers[i], capacity);
        } else if (!s->statuses[i].IsNotFound()) {
            return Answer(s->statuses[i], "multi_get");
        }
        s->values[i].Reset();
    }
    return ENGINE_OK;
}

void *IterOpen(void *p) {
    Store *store = static_cast<Session *>(p)->store;
    return store->db->NewIterator(store->read);
}

int Flush(void *p) {
    return Answer(static_cast<Store *>(p)->db->Flush(rocksdb::FlushOptions()), "flush");
}

int Compact(void *p) {
    rocksdb::CompactRangeOptions options;
    return Answer(static_cast<Store *>(p)->db->CompactRange(options, nullptr, nullptr), "compact");
}

void Counts(void *p, engine_counts *c) {
    const auto &statistics = static_cast<Store *>(p)->options.statistics;
    for (const char *part : {"rocksdb.block-cache-usage", "rocksdb.cur-size-all-mem-tables",
                             "rocksdb.estimate-table-readers-mem"}) {
        uint64_t bytes = 0;
        if (static_cast<Store *>(p)->db->GetIntProperty(part, &bytes))
            c->memory_bytes += bytes;
    }
    c->known = statistics != nullptr;
    if (!statistics)
        return;
    c->device_reads = statistics->getTickerCount(rocksdb::BLOCK_CACHE_DATA_MISS);
    c->device_read_bytes = statistics->getTickerCount(rocksdb::BLOCK_CACHE_DATA_BYTES_INSERT);
}

char *Describe(void *p) {
    std::string text;
    static_cast<Store *>(p)->db->GetProperty("rocksdb.levelstats", &text);
    return strdup(text.c_str());
}

const char *Version() {
    static const std::string text = rocksdb::GetRocksVersionAsString();
    return text.c_str();
}

}  // namespace

extern "C" const engine engine_rocksdb;
extern "C" const engine engine_rocksdb = {
    .name = "rocksdb",
    .version = Version,
    .check = nullptr,
    .open = Open,
    .close = Close,
    .session_open = SessionOpen,
    .session_close = SessionClose,
    .put = Put,
    .remove = Remove,
    .remove_range = RemoveRange,
    .get = Get,
    .multi_get = MultiGet,
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
