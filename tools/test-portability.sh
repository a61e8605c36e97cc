#!/bin/sh
# SPDX-License-Identifier: MIT
# Filters, formats and golden files on other machines: big-endian s390x, 32-bit ARM and 64-bit ARM (NEON) under qemu-user, and here
# with char signed and unsigned. What a golden file holds was written by a little-endian 64-bit machine; the same bytes must come out everywhere.
#
#     sh tools/test-portability.sh [signed] [unsigned] [s390x] [armhf] [arm64]      all of them
#
# Needs, for the foreign ones, the cross compiler and qemu-user; the libraries are fetched as packages of that machine and unpacked
# below build/portability, nothing of them is installed. What is not there is left out, and said.
set -eu
cd "$(dirname "$0")/.."
. tools/need.sh
top=$PWD/build/portability
tests='^(base_|filter_|log_|table_(golden|block|index|build|table|corrupt)$|version_(manifest|edit|filename)$|mem_memtable$|cases_filters$)'
mkdir -p "$top"
failed=0

# build_and_test NAME CMAKE_ARGUMENTS...
build_and_test() {
    name=$1
    shift
    cmake -S . -B "$top/$name" -G Ninja -DCMAKE_BUILD_TYPE=Debug "$@" >"$top/$name.log" 2>&1 || { tail -n 5 "$top/$name.log"; failed=1; return; }
    targets=
    for source in tests/*/*_test.c; do
        test=$(echo "$source" | sed 's#^tests/##; s#/#_#; s#_test.c$##')
        ! echo "$test" | grep -Eq "$tests" || targets="$targets test_$test"
    done
    cmake --build "$top/$name" --target $targets >>"$top/$name.log" 2>&1 || { tail -n 15 "$top/$name.log"; failed=1; return; }
    ctest --test-dir "$top/$name" -R "$tests" -E '^filter_portable$' --timeout 900 -j 2 >"$top/$name.tests" 2>&1 || failed=1
    printf '%-9s %s\n' "$name" "$(grep 'tests passed' "$top/$name.tests")"
    sed -n '/The following tests FAILED/,/^Errors/p' "$top/$name.tests"
}

# fetch ARCHITECTURE: the libraries as that machine has them, into $top/ARCHITECTURE-root.
fetch() {
    root=$top/$1-root
    [ ! -e "$root/done" ] || return 0
    state=$top/$1-apt
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$root"
    : >"$state/status"
    set -- -qq -o APT::Architecture="$1" -o APT::Architectures="$1" -o Dir::State="$state" -o Dir::State::status="$state/status" \
        -o Dir::State::lists="$state/lists" -o Dir::Cache="$state/cache" -o APT::Sandbox::User=root
    apt-get "$@" update || : # a mirror that changes meanwhile may lack a list that is not needed
    (cd "$state" && apt-get "$@" download libzstd-dev libzstd1 libxxhash-dev libxxhash0 libcmocka-dev libcmocka0) || return 1
    for package in "$state"/*.deb; do dpkg -x "$package" "$root"; done
    : >"$root/done"
}

# foreign ARCHITECTURE TRIPLE QEMU
foreign() {
    wish "gcc-$2" "libc6-dev-$1-cross" qemu-user
    if ! command -v "$2-gcc" >/dev/null 2>&1 || ! command -v "$3" >/dev/null 2>&1; then
        echo "$1: left out, no $2-gcc or no $3"
        return
    fi
    if ! has_apt || ! fetch "$1"; then
        echo "$1: left out, its libraries cannot be had"
        return
    fi
    root=$top/$1-root
    libraries=$root/usr/lib/$2
    cat >"$top/$1.cmake" <<TOOLCHAIN
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER $2-gcc)
set(CMAKE_LINKER /usr/bin/$2-ld)
set(CMAKE_OBJCOPY /usr/bin/$2-objcopy)
set(CMAKE_C_FLAGS_INIT "-I$root/usr/include -I$root/usr/include/$2")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L$libraries -Wl,-rpath-link,$libraries")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-L$libraries -Wl,-rpath-link,$libraries")
set(CMAKE_CROSSCOMPILING_EMULATOR "$3;-L;/usr/$2;-E;LD_LIBRARY_PATH=$libraries")
set(CMAKE_DISABLE_FIND_PACKAGE_Git ON)
TOOLCHAIN
    export PKG_CONFIG_LIBDIR="$libraries/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
    build_and_test "$1" -DCMAKE_TOOLCHAIN_FILE="$top/$1.cmake" -DCMAKE_C_FLAGS_DEBUG=-O1 -DTAMIZ_BENCH=OFF
    unset PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR
}

[ $# -gt 0 ] || set -- signed unsigned s390x armhf arm64
for machine; do
    case $machine in
        signed) build_and_test signed "-DCMAKE_C_FLAGS_DEBUG=-O1 -fsigned-char" ;;
        unsigned) build_and_test unsigned "-DCMAKE_C_FLAGS_DEBUG=-O1 -funsigned-char" ;;
        s390x) foreign s390x s390x-linux-gnu qemu-s390x ;;
        armhf) foreign armhf arm-linux-gnueabihf qemu-arm ;;
        arm64) foreign arm64 aarch64-linux-gnu qemu-aarch64 ;;
        *) echo "usage: sh tools/test-portability.sh [signed] [unsigned] [s390x] [armhf] [arm64]" >&2; exit 2 ;;
    esac
done
exit $failed
