#!/bin/sh
# SPDX-License-Identifier: MIT
# The contract's documents name tests: each program they name is there, and each case they name stands in it. Each of the public bug
# reports R01 to R35 is a test that runs and is named by it, or docs/testing.md says which tests are the case.
#
#     contract_test.sh SOURCE BUILD
set -eu
cd "$1"
bad=0
lines=0
for document in docs/durability.md docs/security.md; do
    # One word a line: a program in backquotes, or a case behind it.
    words=$(grep '^|' "$document" | grep -oE '`[a-z]+_[a-z_]+`|R[0-9][0-9]' | tr -d '`') || continue
    file=
    for word in $words; do
        case $word in
            R[0-9][0-9])
                lines=$((lines + 1))
                grep -q "$word" "$file" || { echo "$document: $word is not in $file"; bad=1; }
                ;;
            tamiz_* | no_log | read_only | threads_* | sync_*) ;;
            *)
                lines=$((lines + 1))
                file=tests/${word%%_*}/${word#*_}_test.c
                [ -e "$file" ] || { echo "$document: there is no $word"; bad=1; }
                ;;
        esac
    done
done
number=0
while [ $number -lt 35 ]; do
    number=$((number + 1))
    name=$(printf 'R%02d' $number)
    # Named, and in a list of tests.
    grep -hqE "(CASE|cmocka_unit_test[a-z_]*)\(${name}_" tests/*/*_test.c ||
        grep -q "$name is " docs/testing.md || { echo "$name: no test has its name, and docs/testing.md does not say what is"; bad=1; }
done
# Every numbered line of the contract has somebody who holds it to it.
empty=$(grep -E '^\| [0-9]+ \|' docs/durability.md | grep -cvE '`[a-z]+_[a-z_]+`[^|]*\|$' || true)
[ "$empty" = 0 ] || { echo "docs/durability.md: $empty lines name no test"; bad=1; }
[ "$lines" -gt 40 ] || { echo "only $lines tests named: is the table still read?"; bad=1; }
exit $bad
