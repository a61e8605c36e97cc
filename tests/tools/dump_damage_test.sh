#!/bin/sh
# SPDX-License-Identifier: MIT
# Truncated and flipped files of every kind: dump and filter say what they can and end with 0 (what was hit does not
# matter to them), 1 (damage found) or 3, and never by a signal or a sanitizer. TAMIZ_TEST_SEED repeats a run.
set -u
tamiz=$(cd "$2" && pwd)/bin/tamiz
seed=${TAMIZ_TEST_SEED:-1}
echo "TAMIZ_TEST_SEED=$seed"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place" || exit 1
i=0
while [ $i -lt 2000 ]; do echo "key$i"; i=$((i + 1)); done >keys
"$tamiz" -o "memtable=32KiB compression=zstd:1" load store keys >/dev/null || exit 1
"$tamiz" put store unflushed value || exit 1
table=$(ls store/*.sst | head -n 1)
failed=0
runs=0

# try WHAT: dump and filter on the file "damaged".
try() {
    for command in "dump --entries" "--json dump" "filter --no-picture"; do
        runs=$((runs + 1))
        # shellcheck disable=SC2086 # words
        "$tamiz" $command damaged >out 2>err
        rc=$?
        case $rc in
            0 | 1 | 3) ;;
            *) echo "FAILED: $command, $1: status $rc"; head -n 5 err; failed=$((failed + 1)) ;;
        esac
        if grep -q 'ERROR: \|runtime error' err; then
            echo "FAILED: $command, $1"
            grep 'ERROR: \|runtime error' err
            failed=$((failed + 1))
        fi
    done
}

for file in "$table" store/MANIFEST-* store/*.log store/CURRENT; do
    size=$(wc -c <"$file")
    numbers=$(awk -v seed="$seed" -v size="$size" 'BEGIN { srand(seed); for (i = 0; i < 12; i++) printf "%d ", rand() * size }')
    for at in $numbers; do
        head -c "$at" "$file" >damaged
        try "$file cut at $at"
        cp "$file" damaged
        printf '\377' | dd of=damaged bs=1 seek="$at" conv=notrunc 2>/dev/null
        try "$file with 0xff at $at"
    done
done
printf '%d runs, %d failed, seed %s\n' "$runs" "$failed" "$seed"
[ "$failed" = 0 ]
