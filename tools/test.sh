#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what is missing, builds, and runs every test; under ten minutes on two cores.
#
#     sh tools/test.sh           gcc: all tests under ASan and UBSan, the threaded ones under TSan; clang: a build
#     sh tools/test.sh --long    also all tests of a release build, and all tests with clang; the long sweeps, other machines,
#                                and the deliberate faults: hours
set -eu
cd "$(dirname "$0")/.."
. tools/need.sh

long=no
case "${1:-}" in
    --long) long=yes ;;
    "") ;;
    *) echo "usage: sh tools/test.sh [--long]" >&2; exit 2 ;;
esac

need build-essential cmake ninja-build pkg-config libxxhash-dev libzstd-dev libcmocka-dev
wish liburing-dev clang python3 parallel wamerican-insane wspanish
wish libclang-rt-14-dev # clang's sanitizers and fuzzer, where they are a package of their own
need_build cmocka

jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
mkdir -p build
results=build/test-results.txt
: >"$results"
broken=0

# step NAME COMMAND...: its output is shown and kept; what ctest says of it goes into the sum. Ends the run where the
# command fails without a test having failed: a build that broke.
step() {
    name=$1
    shift
    printf '\n== %s\n' "$name"
    { "$@" 2>&1 && echo 0 >"build/$name.status" || echo $? >"build/$name.status"; } | tee "build/$name.log"
    status=$(cat "build/$name.status")
    grep -E 'tests passed, [0-9]+ tests failed out of [0-9]+' "build/$name.log" >>"$results" || true
    if [ "$status" != 0 ] && ! grep -q 'tests failed out of' "build/$name.log"; then
        echo "$name: failed before any test" >&2
        exit "$status"
    fi
    [ "$status" = 0 ] || broken=1
}

# suite NAME COMPILER TYPE SANITIZE CTEST_FLAGS: configures, builds and tests as the preset of that name does, with any cmake
# from 3.21 on and any compiler.
suite() {
    cmake -S . -B "build/$1" -G Ninja -DCMAKE_C_COMPILER="$2" -DCMAKE_BUILD_TYPE="$3" \
        "-DCMAKE_C_FLAGS_DEBUG=-O1 -g" -DTAMIZ_WERROR=ON -DTAMIZ_SANITIZE="$4" &&
        cmake --build "build/$1" &&
        ctest --test-dir "build/$1" -j "$jobs" --output-on-failure $5
}

has_workflows() {
    cmake --help 2>/dev/null | grep -q -e '--workflow' || cmake --workflow --list-presets >/dev/null 2>&1
}

export CTEST_PARALLEL_LEVEL="$jobs"
if has_workflows; then
    step dev cmake --workflow --preset dev
    step tsan cmake --workflow --preset tsan
else
    step dev suite dev cc Debug address,undefined ""
    step tsan suite tsan cc Debug thread "-L threads"
fi
if command -v clang >/dev/null 2>&1; then
    if [ "$long" = yes ]; then
        step clang suite clang clang Debug address,undefined ""
    else
        printf '\n== clang: a build, warnings are errors\n'
        cmake -S . -B build/clang -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug \
            "-DCMAKE_C_FLAGS_DEBUG=-O1 -g" -DTAMIZ_WERROR=ON >/dev/null
        cmake --build build/clang
    fi
else
    echo "No clang here: its build is left out."
fi
# Not ctest's: what fails here breaks the run.
plain() {
    printf '\n== %s\n' "$*"
    "$@" || broken=1
}
plain sh tools/fuzz.sh 10
if [ "$long" = yes ]; then
    step release suite release cc Release "" ""
    plain sh tools/sweeps.sh
    plain sh tools/test-portability.sh
    ! command -v python3 >/dev/null 2>&1 || plain python3 tests/mutants/run.py
fi

printf '\n'
cat "$results"
awk -v broken="$broken" '{ for (i = 1; i <= NF; i++) if ($i == "failed" && $(i - 1) == "tests") { failed += $(i - 2); total += $(i + 3) } }
     END { printf "%d passed, %d failed\n", total - failed, failed; exit failed > 0 || total == 0 || broken }' "$results"
