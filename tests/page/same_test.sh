#!/bin/sh
# SPDX-License-Identifier: MIT
# The WebAssembly build and the native one make the same bytes: filters of every kind, and tables with them.
#
#     sh tests/page/same_test.sh SOURCE_DIRECTORY BUILD_DIRECTORY      status 77: left out, and the output says why
set -eu
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)

leave_out() {
    echo "The page's build is not compared: $1"
    exit 77
}
for program in node clang wasm-ld; do
    command -v "$program" >/dev/null 2>&1 || leave_out "there is no $program here"
done
[ -f /usr/lib/wasm32-wasi/libc.a ] || leave_out "there is no wasi-libc here"
[ -f "$(clang --target=wasm32-wasi -print-resource-dir)/lib/wasi/libclang_rt.builtins-wasm32.a" ] || leave_out "there is no libclang-rt for wasm32 here"
[ -f /usr/include/xxhash.h ] || leave_out "xxhash.h is not in /usr/include"
node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 18 ? 1 : 0)' || leave_out "node is older than 18"

mkdir -p "$build/page"
sh "$source/tools/page/wasm.sh" "$build/page/tamiz.wasm"
node "$source/tests/page/same.mjs" "$build/page/tamiz.wasm" "$build/bin/page_native"
