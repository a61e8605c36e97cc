#!/bin/sh
# SPDX-License-Identifier: MIT
# Which branches of recovery, manifest, log, compaction and filter code the suite takes, by gcov; a line a file. Those never taken
# are in tests/coverage.txt, each under the reason why. What is in it and taken, or not in it and never taken, fails.
#
#     sh tools/coverage.sh             builds, runs, compares: about four minutes on two cores
#     sh tools/coverage.sh --write     and writes tests/coverage.txt anew; what has no reason yet stands under "?"
#
# What counts frequencies, for minutes, is left out. Assertions are compiled out: their other branch is never to be taken. The sweep
# of refused allocations runs in its long form, so that what only memory can make fail was seen to fail.
set -eu
cd "$(dirname "$0")/.."
. tools/need.sh
need build-essential cmake ninja-build pkg-config libxxhash-dev libzstd-dev libcmocka-dev python3
build=build/coverage
cmake -S . -B "$build" -G Ninja -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=-O0 -g --coverage -DNDEBUG" >/dev/null
targets=
for source in tests/*/*_test.c; do
    targets="$targets test_$(echo "$source" | sed 's#^tests/##; s#/#_#; s#_test.c$##')"
done
# shellcheck disable=SC2086 # a list of words
cmake --build "$build" --target $targets >"$build/build.log" || { tail -n 20 "$build/build.log"; exit 1; }
find "$build" -name '*.gcda' -exec rm -f {} +
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
red=0
ctest --test-dir "$build" -j "$jobs" --timeout 600 -R '^(base|cases|compact|db|env|faults|filter|honesty|log|mem|model|table|trust|version)_' \
    -E '^(filter_portable|trust_.*|faults_kill|honesty_.*(members|avoided))$' >"$build/tests.log" 2>&1 || red=1
(cd "$build/tests" && TAMIZ_LONG=1 ./test_faults_memory) >"$build/memory.log" 2>&1 || red=1
[ "$red" = 0 ] || grep -E 'Failed|\*\*\*|^again' "$build/tests.log" "$build/memory.log" || true
python3 tools/coverage.py "$build" "$@" || red=1
exit $red
