#!/bin/sh
# SPDX-License-Identifier: MIT
# What the ledger costs: two builds that differ in -DTAMIZ_NO_LEDGER alone, the same store, in memory, taking turns.
# Prints microseconds a read of both, and of the ratios of neighbouring runs the median, its 95 % interval (by ranks) and the
# quartiles. Two minutes, on a machine that is quiet: a run of a second is shorter than most of what disturbs it.
#
#     sh bench/ledger_cost.sh [READS [PAIRS [WORKLOAD]]]      (10000000 60 readmissing)
set -eu
reads=${1:-10000000} pairs=${2:-60} workload=${3:-readmissing}
source=$(cd "$(dirname "$0")/.." && pwd)
place=${TMPDIR:-/tmp}/tamiz-ledger-cost.$$
trap 'rm -rf "$place"' EXIT
mkdir -p "$place"
for build in with without; do
    flags=; [ $build = without ] && flags=-DTAMIZ_NO_LEDGER
    cmake -S "$source" -B "$source/build/ledger-$build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS_RELEASE=-O2 -DNDEBUG" \
        "-DCMAKE_C_FLAGS=$flags" > "$place/log" && cmake --build "$source/build/ledger-$build" --target tamiz_bench -j2 >> "$place/log" ||
        { cat "$place/log"; exit 1; }
done
"$source/build/ledger-with/bench/tamiz_bench" --db "$place/db" --num 1000000 fillrandom > "$place/log"

# one BUILD: microseconds a read.
one() {
    "$source/build/ledger-$1/bench/tamiz_bench" --db "$place/db" --use_existing_db --num 1000000 --reads "$reads" --cache_size 1GiB \
        --warm "$workload" | awk -v w="$workload" '$1 == w { for (i = 1; i < NF; i++) if ($(i + 1) == "ops/sec") print 1e6 / $i }'
}
pair=0
while [ $pair -lt "$pairs" ]; do
    if [ $((pair % 2)) = 0 ]; then with=$(one with) without=$(one without); else without=$(one without) with=$(one with); fi
    echo "$with $without"
    pair=$((pair + 1))
done | awk '{ print $1 / $2, $1, $2 }' | sort -n | awk -v w="$workload" -v r="$reads" '
    { ratio[NR] = $1; a += $2; b += $3 }
    function rank(share) { return ratio[share < 1 ? 1 : share > NR ? NR : int(share + 0.5)] }
    END { half = 0.98 * sqrt(NR); middle = (NR + 1) / 2
          printf "%s, %d reads: %.4f with, %.4f without (us a read, means of %d); ratio %.4f [%.4f, %.4f] (quartiles %.4f, %.4f)\n",
          w, r, a / NR, b / NR, NR, rank(middle), rank(middle - half), rank(middle + half), rank((NR + 3) / 4), rank((3 * NR + 1) / 4) }'
