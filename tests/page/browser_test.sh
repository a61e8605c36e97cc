#!/bin/sh
# SPDX-License-Identifier: MIT
# The page in Chromium: verdicts, rates, stories, files, languages, accessibility.
#
#     sh tests/page/browser_test.sh SOURCE_DIRECTORY BUILD_DIRECTORY      status 77: left out, and the output says why
set -eu
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)

leave_out() {
    echo "The page is not tried in a browser: $1"
    exit 77
}
command -v node >/dev/null 2>&1 || leave_out "there is no node here"
chromium=$(command -v "${CHROMIUM:-chromium}") || leave_out "there is no chromium here"
export CHROMIUM="$chromium"
export PAGE_PACKAGES="$source/build/page/node_modules"
for package in playwright-core axe-core esbuild; do
    [ -d "$PAGE_PACKAGES/$package" ] || leave_out "its npm packages are not installed (sh tools/page.sh)"
done
for program in clang wasm-ld; do
    command -v "$program" >/dev/null 2>&1 || leave_out "there is no $program here"
done
[ -f /usr/lib/wasm32-wasi/libc.a ] || leave_out "there is no wasi-libc here"

mkdir -p "$build/page"
[ -f "$build/page/tamiz.wasm" ] || sh "$source/tools/page/wasm.sh" "$build/page/tamiz.wasm"
node "$source/tools/page/build.mjs" "$build/page/tamiz.wasm" "$build/page/lab.html"
node "$source/tests/page/browser_test.mjs" "$build/page/lab.html" "$build/bin/tamiz"
