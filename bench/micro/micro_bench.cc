// SPDX-License-Identifier: MIT
//
// Google Benchmark over micro.h. One iteration is 1,024 operations (a whole fill for the memtable);
// "each" is the time of one. Sizes go from what stays in the cache
// to what does not. The key is written anew for each operation, which costs about 10 ns.
//
//     build/release/bench/micro/tamiz_micro_bench --benchmark_format=json

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "micro.h"

namespace {

constexpr size_t kBatch = 1024;

struct Free {
    void operator()(struct micro *m) const { micro_free(m); }
};
using Micro = std::unique_ptr<struct micro, Free>;

void Run(benchmark::State &state, const Micro &m, const std::function<uint64_t()> &batch) {
    if (!m) {
        state.SkipWithError("could not be made");
        return;
    }
    for (auto _ : state) {
        const uint64_t sum = batch();
        benchmark::DoNotOptimize(sum);
        if (sum == MICRO_WRONG) {
            state.SkipWithError("a wrong answer");
            return;
        }
    }
    state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kBatch));
    state.counters["each"] = benchmark::Counter(
        static_cast<double>(state.iterations()) * kBatch,
        benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void Hash(benchmark::State &state) {
    const Micro m(micro_hash_new(static_cast<size_t>(state.range(0))));
    Run(state, m, [&] { return micro_hash(m.get(), kBatch); });
}
BENCHMARK(Hash)->Arg(8)->Arg(16)->Arg(64)->Arg(1024);

void Filter(benchmark::State &state, const std::string &policy, bool present, bool many) {
    const Micro m(micro_filter_new(policy.c_str(), static_cast<size_t>(state.range(0))));
    Run(state, m, [&] {
        return many ? micro_filter_ask_many(m.get(), kBatch, present)
                    : micro_filter_ask(m.get(), kBatch, present);
    });
    if (m)
        state.counters["bits"] = micro_filter_bits(m.get());
}

void BlockFind(benchmark::State &state) {
    const Micro m(micro_block_new(static_cast<size_t>(state.range(0))));
    Run(state, m, [&] { return micro_block_find(m.get(), kBatch, static_cast<int>(state.range(1))); });
}
BENCHMARK(BlockFind)->ArgNames({"bytes", "present"})->ArgsProduct({{1024, 4096, 16384}, {0, 1}});

void BlockLowerBound(benchmark::State &state) {
    const Micro m(micro_block_new(static_cast<size_t>(state.range(0))));
    Run(state, m, [&] { return micro_block_lower_bound(m.get(), kBatch); });
}
BENCHMARK(BlockLowerBound)->ArgName("bytes")->Arg(1024)->Arg(4096)->Arg(16384);

void MemtableGet(benchmark::State &state) {
    const Micro m(micro_memtable_new(static_cast<size_t>(state.range(0))));
    Run(state, m,
        [&] { return micro_memtable_get(m.get(), kBatch, static_cast<int>(state.range(1))); });
}
BENCHMARK(MemtableGet)->ArgNames({"keys", "present"})->ArgsProduct({{1000, 50000, 500000}, {0, 1}});

void MemtableFill(benchmark::State &state) {
    const auto count = static_cast<size_t>(state.range(0));
    for (auto _ : state)
        if (micro_memtable_fill(count, static_cast<int>(state.range(1))) == MICRO_WRONG)
            state.SkipWithError("a wrong count");
    state.SetItemsProcessed(state.iterations() * state.range(0));
    state.counters["each"] =
        benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(count),
                           benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(MemtableFill)
    ->ArgNames({"keys", "in_order"})
    ->ArgsProduct({{50000, 500000}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

void IndexFind(benchmark::State &state) {
    const Micro m(micro_index_new(static_cast<size_t>(state.range(0))));
    Run(state, m, [&] { return micro_index_find(m.get(), kBatch); });
}
BENCHMARK(IndexFind)->ArgName("blocks")->Arg(100)->Arg(8000)->Arg(100000)->Arg(1000000);

void RegisterFilters() {
    for (const char *policy : {"bloom:10", "blocked:10", "split:10", "ribbon:10", "bumped:10",
                               "fuse8", "xor8", "cuckoo:12"}) {
        const Micro known(micro_filter_new(policy, 1000));
        if (!known)
            continue;
        for (const bool present : {false, true})
            for (const bool many : {false, true}) {
                const std::string name = std::string("Filter/") + policy +
                                         (present ? "/present" : "/absent") + (many ? "/64" : "");
                benchmark::RegisterBenchmark(
                    name.c_str(),
                    [=](benchmark::State &state) { Filter(state, policy, present, many); })
                    ->ArgName("keys")
                    ->Arg(10000)
                    ->Arg(10000000);
            }
    }
}

}  // namespace

int main(int argc, char **argv) {
    RegisterFilters();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 1;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
