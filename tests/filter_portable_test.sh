#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The filters on other machines: the golden images come out the same with char signed and unsigned,
# on a big-endian machine and on ARM. Those two need a cross compiler and qemu's user mode and are
# left out, aloud, where they are not installed (Debian: gcc-s390x-linux-gnu gcc-aarch64-linux-gnu
# qemu-user).
#
#   filter_portable_test.sh SOURCE BUILD

set -eu
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# xxHash is used as a header only, and is the same for all machines.
header=$(pkg-config --variable=includedir libxxhash)
mkdir "$work/include"
cp "$header"/xxhash.h "$work/include/"
[ ! -f "$header/xxh3.h" ] || cp "$header/xxh3.h" "$work/include/"

# portable NAME RUNNER COMPILER FLAGS...
portable() {
    name=$1 runner=$2
    shift 2
    "$@" -std=c17 -O2 -DTAMIZ_VERSION='""' -I"$source/include" -I"$source/src" -I"$source/tests" \
        -I"$work/include" "$source"/tests/filter/portable.c "$source"/src/base/*.c \
        "$source"/src/filter/*.c -o "$work/$name" -lm
    # shellcheck disable=SC2086 # nothing, or the name of a program
    $runner "$work/$name" "$source/tests/golden/filter"
    echo "$name: the same bytes and answers"
}

portable signed-char "" cc -fsigned-char
portable unsigned-char "" cc -funsigned-char
for machine in s390x aarch64; do
    if command -v $machine-linux-gnu-gcc >/dev/null && command -v qemu-$machine >/dev/null; then
        portable $machine qemu-$machine $machine-linux-gnu-gcc -static
    else
        echo "$machine: not tried, no cross compiler or no qemu"
    fi
done
