#!/bin/sh
# SPDX-License-Identifier: MIT
# The outside world is reached through one place each: memory through base/alloc.c, threads through env/thread.c, files, clocks and
# randomness through env/fs_posix.c (and posix_lock.c, uring.c). And the library never prints, exits, aborts or handles signals. First
# it proves that it would notice.
#
#     sh tests/outside_test.sh [SOURCE_DIRECTORY]
set -eu
source=${1:-$(dirname "$0")/..}

# rule ALLOWED-FILES NAMES: calls of any of NAMES (a regular expression) outside of ALLOWED-FILES are printed.
rule() {
    # Comments and strings are blanked, so that words about a call are none; a member or a longer name is none either.
    for file in $files; do
        case " $1 " in *" $file "*) continue ;; esac
        sed -E 's/"([^"\\]|\\.)*"/""/g; s,//.*,,; s,/\*.*\*/,,; /^ ?\*/d; s,/\*.*,,' "$file" |
            grep -nE "(^|[^A-Za-z0-9_.>])($2)\(" | sed "s,^,$file:," || true
    done
}

check() (
    cd "$1"
    files=$(find src -name '*.[ch]' | sort)
    rule "src/base/alloc.c" 'malloc|calloc|realloc|free|aligned_alloc|posix_memalign|strdup'
    rule "src/env/thread.c src/env/thread.h" 'pthread_[a-z_]+'
    # A condition waits until a moment of the monotonic clock: that is part of pthread's interface.
    rule "src/env/fs_posix.c src/env/posix_lock.c src/env/uring.c src/env/thread.c" \
        'open|openat|fopen|creat|close|read|pread|pread64|write|pwrite|pwrite64|fsync|fdatasync|ftruncate|fallocate|rename|link|unlink|remove|mkdir|rmdir|opendir|readdir|stat|fstat|lstat|flock|fcntl|getrandom|clock_gettime|gettimeofday|time|nanosleep|usleep'
    # A call of a function that only prefetches is left out by gcc: fetch.h says how not.
    rule "src/base/fetch.h" '__builtin_prefetch'
    rule "" 'printf|fprintf|puts|fputs|putchar|perror|exit|_exit|abort|atexit|signal|sigaction|getenv|system'
)

house=$(mktemp -d)
trap 'rm -rf "$house"' EXIT
failed=0
mkdir -p "$house/src/base" "$house/src/env" "$house/src/db"

# expect noticed|fine FILE LINE
expect() {
    printf '%s\n' "$3" >"$house/$2"
    said=$(check "$house")
    [ -z "$said" ] && said=fine || said=noticed
    [ "$said" = "$1" ] || { echo "outside: $2 with '$3': want $1, got $said"; failed=1; }
    rm "$house/$2"
}

expect noticed src/db/a.c '    void *p = malloc(7);'
expect fine src/base/alloc.c '    void *p = malloc(7);'
expect noticed src/db/a.c '    pthread_mutex_lock(&m);'
expect fine src/env/thread.c '    pthread_mutex_lock(&m);'
expect noticed src/db/a.c '    __builtin_prefetch(at);'
expect fine src/base/fetch.h '    __builtin_prefetch(at);'
expect noticed src/db/a.c '    fprintf(stderr, "x");'
expect noticed src/db/a.c '    n = pread(fd, b, 1, 0);'
expect fine src/db/a.c '    n = ops->read(ctx, b, 1, 0);'
expect fine src/db/a.c ' * the caller of abort() is nobody'
expect fine src/db/a.c '    file_read(op, f); /* not read() */'
expect fine src/db/a.c '    return op_fail(op, st, "read() failed");'
[ "$failed" = 0 ] || exit 1

found=$(check "$source")
if [ -n "$found" ]; then
    echo "$found"
    echo "outside: these go around base/alloc.c or src/env, or print, exit or handle signals"
    exit 1
fi
echo "outside: memory, threads, files and clocks are each reached in one place; nothing prints or exits"
