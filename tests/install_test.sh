#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs into an empty directory and builds an embedder's programs against it, in C and in C++, by find_package and by
# pkg-config; and sees that the libraries show no name but tamiz_*.
set -eu
build=$2
source=$(cd "$1" && pwd)
cc=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
sanitize=$(sed -n 's/^TAMIZ_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt")
generator=$(sed -n 's/^CMAKE_GENERATOR:[A-Z]*=//p' "$build/CMakeCache.txt")
case "$cc" in
    *clang*) cxx=clang++ ;;
    *) cxx=c++ ;;
esac
command -v $cxx >/dev/null 2>&1 || { echo "no C++ compiler here: left out"; exit 77; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cmake --install "$build" --prefix "$place/usr" >/dev/null

# find_package
cmake -S "$source/tests/consumer" -B "$place/build" -G "$generator" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER=$cxx \
    -DCMAKE_PREFIX_PATH="$place/usr" >"$place/log" 2>&1 && cmake --build "$place/build" >>"$place/log" 2>&1 ||
    { cat "$place/log"; exit 1; }
for program in store_c_tamiz store_cxx_tamiz store_c_tamiz-shared store_cxx_tamiz-shared; do
    "$place/build/$program" "$place/store"
    [ ! -e "$place/store" ] || { echo "$program: destroy left something"; exit 1; }
done
"$place/build/filter_tamiz-filter"
"$place/build/filter_tamiz-filter-shared"

# pkg-config
PKG_CONFIG_PATH=$(dirname "$(find "$place/usr" -name tamiz.pc)")
export PKG_CONFIG_PATH
flags=
[ -z "$sanitize" ] || flags="-fsanitize=$sanitize"
lib=$(dirname "$PKG_CONFIG_PATH")
# shellcheck disable=SC2046,SC2086 # lists of flags
"$cc" -std=c17 $flags "$source/tests/consumer/store.c" -o "$place/shared" $(pkg-config --define-variable=prefix="$place/usr" --cflags --libs tamiz)
LD_LIBRARY_PATH=$lib "$place/shared" "$place/store"
# shellcheck disable=SC2046,SC2086
"$cc" -std=c17 $flags "$source/tests/consumer/store.c" -o "$place/static" $(pkg-config --define-variable=prefix="$place/usr" --cflags tamiz) \
    "$lib/libtamiz.a" $(pkg-config --static --libs-only-l tamiz | sed 's/-ltamiz //')
"$place/static" "$place/store"
# shellcheck disable=SC2046,SC2086
"$cc" -std=c17 $flags "$source/tests/consumer/filter.c" -o "$place/filter" $(pkg-config --define-variable=prefix="$place/usr" --cflags --libs tamiz-filter)
LD_LIBRARY_PATH=$lib "$place/filter"

# names (those of a sanitizer are the compiler's)
for library in libtamiz.a libtamiz-filter.a; do
    stray=$(nm -g --defined-only "$lib/$library" | awk 'NF == 3 { print $3 }' | grep -Ev '^(tamiz_|__odr_asan|__asan|__ubsan|__tsan)' || true)
    [ -z "$stray" ] || { echo "$library shows:"; echo "$stray"; exit 1; }
done
for library in libtamiz.so libtamiz-filter.so; do
    stray=$(nm -D --defined-only "$lib/$library" | awk 'NF == 3 { print $3 }' | grep -Ev '^(tamiz_|_init$|_fini$|__odr_asan|__asan|__ubsan|__tsan)' || true)
    [ -z "$stray" ] || { echo "$library shows:"; echo "$stray"; exit 1; }
done
echo "installed, found both ways, from C and C++, static and shared; only tamiz_ names"
