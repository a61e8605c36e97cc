#!/bin/sh
# SPDX-License-Identifier: MIT
# Branches that the suite takes in recovery, manifest, log, compaction and filter code, by gcov. A line a file, and in
# build/coverage/*.gcov each line with how often it ran ("#####": never; "branch N never executed").
#
#     sh tools/coverage.sh
set -eu
cd "$(dirname "$0")/.."
cmake -S . -B build/coverage -G Ninja -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=-O0 -g --coverage" >/dev/null
targets=
for source in tests/db/*_test.c tests/log/*_test.c tests/version/*_test.c tests/compact/*_test.c tests/filter/*_test.c tests/cases/*_test.c \
    tests/faults/*_test.c; do
    targets="$targets test_$(echo "$source" | sed 's#^tests/##; s#/#_#; s#_test.c$##')"
done
cmake --build build/coverage --target $targets >/dev/null
find build/coverage -name '*.gcda' -exec rm -f {} +
(cd build/coverage/tests && for target in $targets; do [ "$target" = test_faults_kill ] || ./"$target" >/dev/null 2>&1 || echo "$target is red"; done)
cd build/coverage
for floor in db log version compact filter; do
    for source in ../../src/"$floor"/*.c; do
        object=CMakeFiles/tamiz_$floor.dir/src/$floor/$(basename "$source").gcda
        case $floor/$(basename "$source") in
            db/recover.c | db/install.c | db/write.c | db/logs.c | db/room.c | db/background.c | db/rewrite.c | db/asked.c | db/repair.c | log/* | version/* | compact/* | filter/*) ;;
            *) continue ;;
        esac
        [ -e "$object" ] || continue
        gcov -b -o "$(dirname "$object")" "$object" 2>/dev/null | awk -v name="$floor/$(basename "$source")" '
            /^File/ { mine = index($0, name) > 0 }
            mine && /^Lines executed/ { split($0, a, /[:% ]+/); lines = a[3] }
            mine && /^Taken at least once/ { split($0, a, /[:% ]+/); printf "%-28s lines %6.1f %%   branches taken %6.1f %% of %d\n", name, lines, a[5], a[7]; mine = 0 }'
    done
done
