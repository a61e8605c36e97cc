#!/bin/sh
# SPDX-License-Identifier: MIT
# The long forms of the tests of failures: every call, every crash, every allocation, every short sequence; hours. Then a core set
# under valgrind, on the release build.
#
#     sh tools/sweeps.sh [PROGRAM ...]      after sh tools/test.sh; PROGRAM as faults_crash
set -u
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- faults_crash faults_fault faults_memory faults_small faults_options faults_lie db_schedule faults_kill cases_reading cases_merging \
    cases_log cases_manifest cases_opening cases_filters cases_damage db_repair
failed=0
mkdir -p build/sweeps
for name; do
    began=$(date +%s)
    if (cd build/dev/tests && TAMIZ_LONG=1 ./test_"$name") >"build/sweeps/$name.log" 2>&1; then verdict=passed; else verdict=FAILED failed=1; fi
    echo "$name: $verdict in $(($(date +%s) - began)) s"
    grep -E 'calls|faults|refusals|sequences|lies|orders|kills|^again' "build/sweeps/$name.log" | sed 's/^/    /'
done
# Random histories, long: on the release build, where two million steps of each set of options end within the hour.
if [ -x build/release/tests/test_model_model ]; then
    began=$(date +%s)
    if TAMIZ_MODEL_STEPS=2000000 build/release/tests/test_model_model >build/sweeps/model.log 2>&1; then verdict=passed; else verdict=FAILED failed=1; fi
    echo "model_model, 2,000,000 steps a set: $verdict in $(($(date +%s) - began)) s"
else
    echo "model_model: left out, there is no release build of it"
fi
if command -v valgrind >/dev/null 2>&1 && [ -d build/release/tests ]; then
    for name in db_store log_log version_manifest table_block compact_compact cases_reading; do
        if (cd build/release/tests && valgrind -q --error-exitcode=9 --leak-check=full ./test_"$name") >"build/sweeps/$name-valgrind.log" 2>&1; then
            echo "valgrind $name: passed"
        else
            echo "valgrind $name: FAILED"
            failed=1
        fi
    done
else
    echo "valgrind: left out, it is not here or there is no release build"
fi
exit $failed
