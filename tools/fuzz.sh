#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs every fuzz target with libFuzzer, ASan and UBSan. Needs clang with its run-time libraries; left out, and said so, where they are missing.
#
#     sh tools/fuzz.sh [SECONDS] [NAME ...]     10 seconds each, all of them
#
# What is found new goes to build/fuzz/found/NAME, a crash to build/fuzz/NAME-crash-*. Repeat one: build/fuzz/tests/fuzz/fuzz_NAME FILE
set -eu
cd "$(dirname "$0")/.."
command -v clang >/dev/null 2>&1 || { echo "No clang here: fuzzing is left out."; exit 0; }
probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
printf 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { (void)d; (void)n; return 0; }\n' >"$probe/probe.c"
clang -fsanitize=fuzzer,address,undefined "$probe/probe.c" -o "$probe/probe" 2>/dev/null || {
    echo "clang has no libFuzzer here (Debian: libclang-rt-14-dev): fuzzing is left out."
    exit 0
}
seconds=${1:-10}
[ $# -gt 0 ] && shift
cmake -S . -B build/fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=-O1 -g" \
    -DTAMIZ_SANITIZE=address,undefined -DTAMIZ_FUZZ=ON >/dev/null
[ $# -gt 0 ] || set -- $(ls tests/fuzz/*_fuzz.c | sed 's#.*/##; s#_fuzz.c##')
targets=
for name; do targets="$targets fuzz_$name"; done
cmake --build build/fuzz --target $targets
failed=0
for name; do
    found=build/fuzz/found/$name
    mkdir -p "$found"
    seeds=
    for place in "tests/fuzz/corpus/$name" "tests/golden/$name"; do [ ! -d "$place" ] || seeds="$seeds $place"; done
    printf '%-10s ' "$name"
    if build/fuzz/tests/fuzz/fuzz_"$name" -max_total_time="$seconds" -rss_limit_mb=1024 -malloc_limit_mb=64 -timeout=10 \
        -max_len=65536 -artifact_prefix="build/fuzz/$name-" -print_final_stats=1 "$found" $seeds >"build/fuzz/$name.log" 2>&1; then
        sed -n 's/^stat::number_of_executed_units: */runs: /p' "build/fuzz/$name.log"
    else
        echo "FAILED: see build/fuzz/$name.log"
        failed=1
    fi
done
exit $failed
