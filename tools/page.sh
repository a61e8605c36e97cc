#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the page: the engine in a browser, one file, build/page/lab.html. Installs what is missing, and says so first.
#
#     sh tools/page.sh           builds it
#     sh tools/page.sh --test    builds it twice, compares, and runs its tests
set -eu
cd "$(dirname "$0")/.."
. tools/need.sh

testing=no
case "${1:-}" in
    --test) testing=yes ;;
    "") ;;
    *) echo "usage: sh tools/page.sh [--test]" >&2; exit 2 ;;
esac

need clang lld wasi-libc libclang-rt-14-dev-wasm32 libxxhash-dev nodejs
command -v npm >/dev/null 2>&1 || need npm
for program in clang wasm-ld node npm; do
    command -v "$program" >/dev/null 2>&1 || { echo "The page needs $program." >&2; exit 3; }
done

# Packages as the lock file has them, and no script of theirs run.
mkdir -p build/page
cp tools/page/package.json tools/page/package-lock.json tools/page/.npmrc build/page/
if ! cmp -s tools/page/package-lock.json build/page/installed-lock.json; then
    (cd build/page && npm ci --ignore-scripts)
    cp tools/page/package-lock.json build/page/installed-lock.json
fi
export PAGE_PACKAGES="$PWD/build/page/node_modules"

sh tools/page/wasm.sh build/page/tamiz.wasm
node tools/page/build.mjs build/page/tamiz.wasm build/page/lab.html
[ "$testing" = yes ] || exit 0

mkdir -p build/page/again
sh tools/page/wasm.sh build/page/again/tamiz.wasm
node tools/page/build.mjs build/page/again/tamiz.wasm build/page/again/lab.html >/dev/null
cmp build/page/lab.html build/page/again/lab.html
echo "Built twice: the same bytes."
need build-essential cmake ninja-build pkg-config libzstd-dev chromium
cmake -S . -B build/page/native -G Ninja -DCMAKE_BUILD_TYPE=Release -DTAMIZ_TESTS=OFF >/dev/null
cmake --build build/page/native --target page_native tamiz-tool
sh tests/page/same_test.sh . build/page/native
sh tests/page/browser_test.sh . build/page/native
