// SPDX-License-Identifier: MIT
//
// tamiz's filters beside RocksDB's own, in one process: the same keys of 8 bytes, the hashing of a
// key counted on both sides, one after the other in every repeat. CPU time; the least counts. Keys
// are handed over as each interface wants them: RocksDB's builder takes one after the other, its
// reader one or a batch; tamiz hashes an array (tamiz_hash_many) to build and for a batch, and one
// key (tamiz_hash) for a single question.
//
//     tamiz_compare_rocksdb [--keys N,N,…] [--repeat N]
//
// A row is a pair at about the same rate; the ratios are RocksDB's time over tamiz's, so 2 is twice
// as fast.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <rocksdb/filter_policy.h>
#include <rocksdb/slice.h>
#include <rocksdb/status.h>
#include <rocksdb/table.h>

#include "measure.h"
#include "tamiz/filter.h"

// RocksDB's public headers hand these two out and leave them undeclared. In the order of their
// virtual functions in 7.8.
namespace rocksdb
{
class FilterBitsBuilder
{
  public:
    virtual ~FilterBitsBuilder() = default;
    virtual void AddKey(const Slice &key) = 0;
    virtual size_t EstimateEntriesAdded() = 0;
    virtual Slice Finish(std::unique_ptr<const char[]> *owner) = 0;
    virtual Slice Finish(std::unique_ptr<const char[]> *owner, Status *status) = 0;
    virtual Status MaybePostVerify(const Slice &content) = 0;
    virtual size_t ApproximateNumEntries(size_t bytes) = 0;
};
class FilterBitsReader
{
  public:
    virtual ~FilterBitsReader() = default;
    virtual bool MayMatch(const Slice &key) = 0;
    virtual void MayMatch(int count, Slice **keys, bool *maybe) = 0;
};
} // namespace rocksdb

namespace
{

constexpr size_t queries = 1 << 20, batch = 32;

struct Times {
    double build = 0, present = 0, absent = 0, batch = 0, bits = 0, rate = 0;
};

struct Input {
    std::vector<uint64_t> members, present, absent;
    explicit Input(size_t n) : members(n), present(queries), absent(queries)
    {
        for (size_t i = 0; i < n; i++)
            members[i] = measure_random(1, i);
        for (size_t i = 0; i < queries; i++) {
            present[i] = members[measure_random(2, i) % n];
            absent[i] = measure_random(3, i);
        }
    }
};

void keep_least(double &best, double now)
{
    if (best == 0 || now < best)
        best = now;
}

template <typename F> double time_of(F &&work, double count)
{
    const double start = measure_now_ns();
    work();
    return (measure_now_ns() - start) / count;
}

volatile uint64_t sink;

// What both sides must be able to do.
class Side
{
  public:
    virtual ~Side() = default;
    virtual void build(const std::vector<uint64_t> &members) = 0;
    virtual uint64_t ask(const std::vector<uint64_t> &keys) const = 0;
    virtual uint64_t ask_batches(const std::vector<uint64_t> &keys) const = 0;
    virtual size_t bytes() const = 0;
};

class Rocks final : public Side
{
  public:
    explicit Rocks(const rocksdb::FilterPolicy *policy) : policy_(policy)
    {
    }

    void build(const std::vector<uint64_t> &members) override
    {
        rocksdb::BlockBasedTableOptions table;
        rocksdb::FilterBuildingContext context(table);
        std::unique_ptr<rocksdb::FilterBitsBuilder> builder(
            policy_->GetBuilderWithContext(context));
        for (const uint64_t &key : members)
            builder->AddKey(slice_of(key));
        content_ = builder->Finish(&owner_);
        reader_.reset(policy_->GetFilterBitsReader(content_));
    }

    uint64_t ask(const std::vector<uint64_t> &keys) const override
    {
        uint64_t found = 0;
        for (const uint64_t &key : keys)
            found += reader_->MayMatch(slice_of(key));
        return found;
    }

    uint64_t ask_batches(const std::vector<uint64_t> &keys) const override
    {
        uint64_t found = 0;
        rocksdb::Slice slices[batch], *pointers[batch];
        bool maybe[batch];
        for (size_t j = 0; j < batch; j++)
            pointers[j] = &slices[j];
        for (size_t i = 0; i < queries; i += batch) {
            for (size_t j = 0; j < batch; j++)
                slices[j] = slice_of(keys[i + j]);
            reader_->MayMatch(static_cast<int>(batch), pointers, maybe);
            for (size_t j = 0; j < batch; j++)
                found += maybe[j];
        }
        return found;
    }

    size_t bytes() const override
    {
        return content_.size();
    }

  private:
    static rocksdb::Slice slice_of(const uint64_t &key)
    {
        return rocksdb::Slice(reinterpret_cast<const char *>(&key), sizeof key);
    }

    std::unique_ptr<const rocksdb::FilterPolicy> policy_;
    std::unique_ptr<const char[]> owner_;
    rocksdb::Slice content_;
    std::unique_ptr<rocksdb::FilterBitsReader> reader_;
};

class Tamiz final : public Side
{
  public:
    explicit Tamiz(const char *text)
    {
        if (tamiz_filter_policy_parse(text, &policy_) != TAMIZ_OK)
            std::exit(2);
    }
    ~Tamiz() override
    {
        tamiz_filter_free(filter_);
    }
    Tamiz(const Tamiz &) = delete;
    Tamiz &operator=(const Tamiz &) = delete;

    void build(const std::vector<uint64_t> &members) override
    {
        hashes_.resize(members.size()); // kept from build to build, as a store does
        tamiz_hash_many(members.data(), sizeof members[0], members.size(), hashes_.data());
        tamiz_filter_free(filter_);
        if (tamiz_filter_build(&policy_, hashes_.data(), hashes_.size(), &filter_) != TAMIZ_OK)
            std::exit(3);
    }

    uint64_t ask(const std::vector<uint64_t> &keys) const override
    {
        uint64_t found = 0;
        for (const uint64_t &key : keys)
            found += tamiz_filter_may_contain_key(filter_, &key, sizeof key);
        return found;
    }

    uint64_t ask_batches(const std::vector<uint64_t> &keys) const override
    {
        uint64_t found = 0, hashes[batch];
        bool maybe[batch];
        for (size_t i = 0; i < queries; i += batch) {
            tamiz_hash_many(&keys[i], sizeof keys[0], batch, hashes);
            tamiz_filter_may_contain_many(filter_, hashes, batch, maybe);
            for (size_t j = 0; j < batch; j++)
                found += maybe[j];
        }
        return found;
    }

    size_t bytes() const override
    {
        tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
        tamiz_filter_info_get(filter_, &info);
        return info.bytes;
    }

  private:
    tamiz_filter_policy policy_{};
    std::vector<uint64_t> hashes_;
    tamiz_filter *filter_ = nullptr;
};

void measure_once(Side &side, const Input &in, Times &t)
{
    const double n = static_cast<double>(in.members.size());
    // Small filters are built one after the other, as a compaction does, till as many keys are in
    // them as there are queries: a build of 40 us alone would be a measurement of cold caches.
    const size_t rounds = in.members.size() < queries ? queries / in.members.size() : 1;
    keep_least(t.build, time_of(
                            [&] {
                                for (size_t i = 0; i < rounds; i++)
                                    side.build(in.members);
                            },
                            n * static_cast<double>(rounds)));
    keep_least(t.present, time_of([&] { sink += side.ask(in.present); }, queries));
    keep_least(t.absent, time_of([&] { sink += side.ask(in.absent); }, queries));
    keep_least(t.batch, time_of([&] { sink += side.ask_batches(in.absent); }, queries));
    t.bits = static_cast<double>(side.bytes()) * 8 / n;
    t.rate = static_cast<double>(side.ask(in.absent)) / queries;
}

void print_side(const char *name, size_t n, const Times &t)
{
    std::printf("%-22s %9zu %7.3f %8.4f%% %7.2f%% %7.1f %7.1f %7.1f %7.1f\n", name, n, t.bits,
                t.rate * 100, (t.bits / -std::log2(t.rate) - 1) * 100, t.build, t.present, t.absent,
                t.batch);
}

void compare(const char *rocks_name, const rocksdb::FilterPolicy *policy, const char *text,
             const Input &in, unsigned repeat)
{
    Rocks rocks(policy);
    Tamiz tamiz(text);
    Times r, t;
    for (unsigned i = 0; i < repeat; i++) {
        measure_once(rocks, in, r);
        measure_once(tamiz, in, t);
    }
    print_side(rocks_name, in.members.size(), r);
    print_side(text, in.members.size(), t);
    std::printf("%-22s %9s %7s %9s %8s %6.2fx %6.2fx %6.2fx %6.2fx\n", "  ratio", "", "", "", "",
                r.build / t.build, r.present / t.present, r.absent / t.absent, r.batch / t.batch);
    std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv)
{
    std::string keys = "10000,100000,1000000,10000000";
    unsigned repeat = 5;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--keys") == 0)
            keys = argv[i + 1];
        else if (std::strcmp(argv[i], "--repeat") == 0)
            repeat = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
    }
    std::printf("%-22s %9s %7s %9s %8s %7s %7s %7s %7s\n", "filter", "keys", "bits/key", "rate",
                "over", "build", "present", "absent", "batch32");
    for (char *part = std::strtok(keys.data(), ","); part; part = std::strtok(nullptr, ",")) {
        const Input in(std::strtoull(part, nullptr, 10));
        compare("rocksdb bloom 10", rocksdb::NewBloomFilterPolicy(10), "blocked:10", in, repeat);
        compare("rocksdb ribbon 10", rocksdb::NewRibbonFilterPolicy(10), "ribbon:fpr=0.0095", in,
                repeat);
        compare("rocksdb ribbon 10", rocksdb::NewRibbonFilterPolicy(10), "bumped:fpr=0.0095", in,
                repeat);
    }
    return 0;
}
