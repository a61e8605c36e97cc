#!/bin/sh
# SPDX-License-Identifier: MIT
# The engine as WebAssembly: every floor but what needs a system (fs_posix.c, posix_lock.c, uring.c, thread.c), without zstd.
# Linked with wasm-ld itself: the clang driver would run wasm-opt where it finds one, and the bytes would change.
#
#     sh tools/page/wasm.sh OUT.wasm [clang]
set -eu
out=$(realpath -m "$1")
clang=${2:-clang}
cd "$(dirname "$0")/../.."
sysroot=/usr/lib/wasm32-wasi
builtins=$("$clang" --target=wasm32-wasi -print-resource-dir)/lib/wasi/libclang_rt.builtins-wasm32.a
objects="$out.d"
version=$(sed -n 's/^project(tamiz VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
rm -rf "$objects"
mkdir -p "$objects/include"
# xxHash is headers alone; the rest of the system's include directory is not for this target.
for header in xxhash.h xxh3.h; do
    ln -s "/usr/include/$header" "$objects/include/$header"
done
for source in src/*/*.c tools/page/*.c; do
    case "$source" in
        src/env/fs_posix.c | src/env/posix_lock.c | src/env/uring.c | src/env/thread.c) continue ;;
    esac
    printf '%s\n' "$source"
done | LC_ALL=C sort >"$objects/sources"
# -ffile-prefix-map and no debug information: the same bytes in any directory.
xargs -P "${PAGE_JOBS:-2}" -I {} sh -c '
    "$1" --target=wasm32-wasi -std=c17 -O2 -DNDEBUG -DTAMIZ_NO_ZSTD "-DTAMIZ_VERSION=\"$4\"" -fvisibility=hidden \
        -ffunction-sections -fdata-sections -ffp-contract=off -Wall -Wextra -Werror \
        -Iinclude -Isrc -Itools/page -I"$3/include" -c "$2" -o "$3/$(echo "$2" | tr / -).o"
' sh "$clang" {} "$objects" "$version" <"$objects/sources"
wasm-ld --no-entry --gc-sections --strip-all -z stack-size=1048576 -o "$out" \
    $(sed "s,/,-,g; s,^,$objects/,; s,\$,.o,"  "$objects/sources") \
    -L"$sysroot" -lc -lm "$builtins"
rm -rf "$objects"
