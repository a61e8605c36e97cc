#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds a release and runs the main job on real words: how many device reads does a filter save?
#
#     sh tools/demo.sh
#
# Keys are the words of Debian's wamerican-insane, probes those of wspanish, most of them absent. Other lists, one word a
# line: TAMIZ_KEYS=FILE TAMIZ_PROBES=FILE. TAMIZ_FILTERS=bloom:10,... chooses filters, TAMIZ_SEED=N the order.
set -eu
cd "$(dirname "$0")/.."
. tools/need.sh

keys=${TAMIZ_KEYS:-/usr/share/dict/american-english-insane}
probes=${TAMIZ_PROBES:-/usr/share/dict/spanish}

need build-essential cmake ninja-build pkg-config libxxhash-dev libzstd-dev
wish liburing-dev
[ -n "${TAMIZ_KEYS:-}" ] || wish wamerican-insane
[ -n "${TAMIZ_PROBES:-}" ] || wish wspanish
need_build

echo "Building a release in build/demo"
cmake -S . -B build/demo -G Ninja -DCMAKE_BUILD_TYPE=Release -DTAMIZ_TESTS=OFF >/dev/null
cmake --build build/demo --target tamiz-tool >build/demo/build.log 2>&1 || { cat build/demo/build.log >&2; exit 3; }

set -- lab avoided-reads --dir build/demo --seed "${TAMIZ_SEED:-1}" --report build/demo/avoided-reads.html
if [ -r "$keys" ]; then set -- "$@" --keys "$keys"; else echo "No word list $keys: keys are made up. TAMIZ_KEYS=FILE gives one."; fi
if [ -r "$probes" ]; then set -- "$@" --probes "$probes"; else echo "No word list $probes: probes are made up. TAMIZ_PROBES=FILE gives one."; fi
[ -z "${TAMIZ_FILTERS:-}" ] || set -- "$@" --filters "$TAMIZ_FILTERS"

printf '\n$ build/demo/bin/tamiz'
printf ' %s' "$@"
printf '\n\n'
build/demo/bin/tamiz "$@"
printf '\nThe same as a page: build/demo/avoided-reads.html\n'
