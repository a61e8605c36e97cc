#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds the stores that tamiz is compared with, as release libraries for this very machine.
#
# Debian's packages of RocksDB and LevelDB are compiled with live assertions (thousands of call
# sites), so their times would flatter tamiz. This script takes the same versions as Debian
# *source* packages and builds them with optimisation, without assertions and with
# -march=native, as static libraries, into a directory outside the tree. It needs no root: apt
# gets a configuration of its own in which the machine's own Debian sources also give sources.
#
#   PREFIX/include, PREFIX/lib      what `cmake -DTAMIZ_PEERS=PREFIX` looks for
#   PREFIX/built/NAME               a mark: this peer is finished (version and flags inside)
#
# Running it again builds only what is missing. RocksDB takes about an hour on two slow cores.
#
#   sh bench/peers.sh [--prefix DIR] [--jobs N] [rocksdb leveldb lmdb wiredtiger]

set -eu

prefix=${XDG_CACHE_HOME:-$HOME/.cache}/tamiz-peers
jobs=2
peers=
while [ $# -gt 0 ]; do
    case $1 in
    --prefix) prefix=${2:?--prefix wants a directory}; shift 2 ;;
    --jobs) jobs=${2:?--jobs wants a number}; shift 2 ;;
    rocksdb | leveldb | lmdb | wiredtiger) peers="$peers $1"; shift ;;
    *) echo "usage: peers.sh [--prefix DIR] [--jobs N] [rocksdb leveldb lmdb wiredtiger]" >&2; exit 2 ;;
    esac
done
[ -n "$peers" ] || peers="lmdb leveldb wiredtiger rocksdb"

mkdir -p "$prefix/src" "$prefix/include" "$prefix/lib" "$prefix/built"
prefix=$(cd "$prefix" && pwd)
optimise="-O3 -march=native -DNDEBUG"

say() { printf 'peers: %s\n' "$*"; }

need() {
    missing=
    for package; do
        dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
    done
    [ -z "$missing" ] && return 0
    say "installing:$missing"
    if [ "$(id -u)" = 0 ]; then
        # shellcheck disable=SC2086 # a list of words
        apt-get install -y --no-install-recommends $missing
    else
        # shellcheck disable=SC2086
        sudo apt-get install -y --no-install-recommends $missing
    fi
}

# The machine's own lines for its distribution, once more as deb-src: both of apt's formats, and
# only suites that carry the distribution's code name (third parties often have no sources).
write_source_list() {
    code=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")
    out=$prefix/apt/parts
    rm -rf "$out" && mkdir -p "$out" "$prefix/apt/lists/partial"
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -f "$file" ] || continue
        awk -v code="$code" 'BEGIN { RS = ""; ORS = "\n\n" }
            $0 ~ ("Suites:[^\n]*[ ]" code "([-\n ]|$)") {
                sub(/Types:[^\n]*/, "Types: deb-src"); print }' "$file"
    done >"$out/tamiz-peers.sources"
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
        awk -v code="$code" '$1 == "deb" { for (i = 2; i <= NF; i++)
            if ($i == code || index($i, code "-") == 1) { $1 = "deb-src"; print; break } }' \
            >"$out/tamiz-peers.list" || true
}

apt_with_sources() {
    apt-get -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$prefix/apt/parts" \
        -o Dir::State::Lists="$prefix/apt/lists" -o APT::Sandbox::User=root \
        -o Dir::Cache::srcpkgcache= -o Dir::Cache::pkgcache= "$@"
}

# fetch NAME: unpacks the newest source package of that name to $prefix/src/NAME.
fetch() {
    [ -d "$prefix/src/$1" ] && return 0
    if [ ! -f "$prefix/apt/ready" ]; then
        write_source_list && apt_with_sources update && touch "$prefix/apt/ready" || return 1
    fi
    say "fetching the source of $1"
    work=$prefix/src/fetch-$1
    rm -rf "$work" && mkdir -p "$work"
    (cd "$work" && apt_with_sources source --download-only "$1" &&
        dpkg-source --no-check -x ./*.dsc unpacked) &&
        mv "$work/unpacked" "$prefix/src/$1"
}

version_of() { (cd "$prefix/src/$1" && dpkg-parsechangelog -S Version); }

# finish NAME WHAT: the mark that this peer is there, and what it is.
finish() {
    printf '%s %s\n' "$1" "$2" >"$prefix/built/$1"
    say "built $1 $2"
}

build_rocksdb() {
    need libzstd-dev liblz4-dev
    cmake -S "$prefix/src/rocksdb" -B "$prefix/src/rocksdb-build" -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DPORTABLE=OFF \
        -DROCKSDB_BUILD_SHARED=OFF -DWITH_TESTS=OFF -DWITH_TOOLS=OFF -DWITH_CORE_TOOLS=OFF \
        -DWITH_BENCHMARK_TOOLS=OFF -DWITH_GFLAGS=OFF -DWITH_ZSTD=ON -DWITH_LZ4=ON \
        -DWITH_SNAPPY=OFF -DFAIL_ON_WARNINGS=OFF -DUSE_RTTI=ON
    cmake --build "$prefix/src/rocksdb-build" --parallel "$jobs" --target rocksdb
    cp "$prefix/src/rocksdb-build/librocksdb.a" "$prefix/lib/"
    rm -rf "$prefix/include/rocksdb"
    cp -r "$prefix/src/rocksdb/include/rocksdb" "$prefix/include/"
    finish rocksdb "$(version_of rocksdb), CMAKE_BUILD_TYPE=Release, -march=native, static"
}

build_leveldb() {
    cmake -S "$prefix/src/leveldb" -B "$prefix/src/leveldb-build" -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_CXX_FLAGS_RELEASE="$optimise" -DLEVELDB_BUILD_TESTS=OFF \
        -DLEVELDB_BUILD_BENCHMARKS=OFF -DBUILD_SHARED_LIBS=OFF -DHAVE_SNAPPY=OFF
    cmake --build "$prefix/src/leveldb-build" --parallel "$jobs" --target leveldb
    cp "$prefix/src/leveldb-build/libleveldb.a" "$prefix/lib/"
    rm -rf "$prefix/include/leveldb"
    cp -r "$prefix/src/leveldb/include/leveldb" "$prefix/include/"
    finish leveldb "$(version_of leveldb), $optimise, static"
}

build_lmdb() {
    dir=$prefix/src/lmdb/libraries/liblmdb
    [ -d "$dir" ] || dir=$prefix/src/lmdb
    make -C "$dir" -j "$jobs" liblmdb.a XCFLAGS="$optimise"
    cp "$dir/liblmdb.a" "$prefix/lib/"
    cp "$dir/lmdb.h" "$prefix/include/"
    finish lmdb "$(version_of lmdb), $optimise, static"
}

build_wiredtiger() {
    need autoconf automake libtool
    (
        cd "$prefix/src/wiredtiger"
        [ -x configure ] || sh ./autogen.sh
        [ -f Makefile ] || CFLAGS="$optimise" ./configure --disable-shared --enable-static
        make -j "$jobs" libwiredtiger.la wiredtiger.h
    )
    cp "$prefix/src/wiredtiger/.libs/libwiredtiger.a" "$prefix/lib/"
    cp "$prefix/src/wiredtiger/wiredtiger.h" "$prefix/include/"
    finish wiredtiger "$(version_of wiredtiger), $optimise, static"
}

# Where a mirror lacks the source: Debian's binary package. WiredTiger's assertions are off unless
# it is configured with --enable-diagnostic, which the package is not.
take_wiredtiger_package() {
    say "no source of wiredtiger to be had: taking the binary package"
    work=$prefix/src/wiredtiger-package
    rm -rf "$work" && mkdir -p "$work"
    (cd "$work" && apt-get download libwiredtiger-dev libwiredtiger0 &&
        for file in ./*.deb; do dpkg-deb -x "$file" unpacked; done)
    find "$work/unpacked" -name libwiredtiger.a -exec cp {} "$prefix/lib/" \;
    cp "$work/unpacked/usr/include/wiredtiger.h" "$prefix/include/"
    finish wiredtiger "$(dpkg-deb -f "$work"/libwiredtiger-dev_*.deb Version), as packaged"
}

build() {
    if [ "$1" = wiredtiger ] && ! fetch wiredtiger; then
        take_wiredtiger_package
    else
        fetch "$1"
        "build_$1"
    fi
}

need cmake make g++ dpkg-dev
failed=
for peer in $peers; do
    if [ -f "$prefix/built/$peer" ]; then
        say "have $(cat "$prefix/built/$peer")"
        continue
    fi
    # Not as a condition: there, the shell would go on after a command that failed.
    set +e
    (set -e && build "$peer")
    status=$?
    set -e
    if [ "$status" != 0 ]; then
        say "could not build $peer"
        failed="$failed $peer"
    fi
done
[ -z "$failed" ] || { say "missing:$failed"; exit 1; }
