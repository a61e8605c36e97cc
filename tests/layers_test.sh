#!/bin/sh
# SPDX-License-Identifier: MIT
# Reads the list of floors in src/README.md and checks every #include "..." of src/ and tools/: own floor and lower ones,
# never up, never a neighbour. First it proves on a house made for the purpose that it would notice.
#
#     sh tests/layers_test.sh [SOURCE_DIRECTORY]
set -eu
source=${1:-$(dirname "$0")/..}

# check DIRECTORY: prints a line for each include that breaks the rule; status 1 where there is one.
check() (
    cd "$1"
    find src tools -name '*.[ch]' | sort | xargs awk '
        FILENAME == "src/README.md" {
            if ($0 ~ /^```floors/) { inside = 1; next }
            if ($0 ~ /^```/) inside = 0
            if (inside) for (i = 2; i <= NF; i++) floor[$i] = $1
            next
        }
        FNR == 1 {
            split(FILENAME, part, "/")
            here = part[1] == "tools" ? "tools" : part[2]
            if (!(here in floor)) bad("folder " here " is on no floor")
        }
        /^[ \t]*#[ \t]*include[ \t]*"/ {
            split($0, quoted, "\"")
            n = split(quoted[2], path, "/")
            there = n == 1 ? here : path[1]
            if (there == "tamiz") next
            if (!(there in floor)) bad("includes \"" quoted[2] "\": no floor of that name")
            else if (floor[there] > floor[here]) bad("includes \"" quoted[2] "\": floor " floor[there] ", which is above " floor[here])
            else if (floor[there] == floor[here] && there != here) bad("includes \"" quoted[2] "\": a neighbour on floor " floor[here])
        }
        function bad(words) { print FILENAME ":" FNR ": " words; found++ }
        END {
            for (name in floor) known++
            if (!known) bad("src/README.md has no list of floors")
            exit found > 0
        }' src/README.md
)

house=$(mktemp -d)
trap 'rm -rf "$house"' EXIT
mkdir -p "$house/src/base" "$house/src/table" "$house/src/log" "$house/src/db" "$house/tools"
cp "$source/src/README.md" "$house/src/"
: >"$house/tools/tool.c"
failed=0

# expect WORDS FILE LINE: with LINE in FILE, the check must (or must not, WORDS "fine") complain with WORDS.
expect() {
    printf '%s\n' "$3" >"$house/$2"
    if said=$(check "$house"); then said=fine; fi
    case "$said" in
        *"$1"*) ;;
        *) echo "layers: $2 with '$3': want \"$1\", got \"$said\""; failed=1 ;;
    esac
    rm "$house/$2"
}

expect "fine" src/table/a.c '#include "base/key.h"'
expect "fine" src/table/a.c '#include "table/block.h"'
expect "fine" src/base/a.h '#include "tamiz/types.h"'
expect "fine" tools/a.c '#include "db/db.h"'
expect "which is above" src/base/a.c '#include "table/table.h"'
expect "which is above" src/db/a.c '  #  include "tools/tool.h"'
expect "a neighbour" src/table/a.h '#include "log/log.h"'
expect "no floor of that name" src/table/a.c '#include "../log/log.h"'
expect "is on no floor" tools/../src/stray.c ''

if check "$source"; then
    echo "layers: every include is of its own floor or a lower one"
else
    failed=1
fi
exit $failed
