#!/bin/sh
# SPDX-License-Identifier: MIT
# Tables built from text, sorted or not, in one part or many, and taken in; and the recipe of docs/scale-out.md as it stands there.
set -eu
source=$(cd "$1" && pwd)
PATH=$(cd "$2" && pwd)/bin:$PATH
export PATH
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"

wants() { # WANT GOT
    [ "$1" = "$2" ] || { echo "wanted: $1"; echo "got:    $2"; exit 1; }
}

# 30,000 lines in no order, some keys twice: the later one counts, as it does for load.
awk 'BEGIN { srand(7); for (i = 0; i < 30000; i++) printf "key%05d\tvalue%d\n", int(rand() * 20000), i }' >input.tsv
tamiz load loaded input.tsv --format tsv >/dev/null
tamiz scan loaded >want

# one part, in memory; one part, with many runs on the disk
tamiz build one input.tsv --format tsv >said
grep -q ' keys in 1 tables' said
tamiz --json -o table=64KiB build spilled input.tsv --format tsv --memory 64KiB >said
grep -q '"tables":[0-9][0-9]*,"keys":' said
[ "$(find spilled -name '.tamiz-sort*' | wc -l)" -eq 0 ] || { echo "runs were left"; exit 1; }
for built in one spilled; do
    tamiz ingest "$built.store" $built/*.sst >/dev/null
    tamiz scan "$built.store" | cmp - want
    tamiz verify "$built.store" >/dev/null
done

# sorted lines, standard input, JSON lines
LC_ALL=C sort want | tamiz build rising - --format tsv --sorted >/dev/null
tamiz ingest rising.store rising/*.sst >/dev/null
tamiz scan rising.store | cmp - want
rc=0; tamiz build falling input.tsv --format tsv --sorted >/dev/null 2>words || rc=$?
wants 2 $rc
grep -q 'expected a key above' words
wants 0 "$(find falling -name '*.sst' | wc -l)"
printf '{"key":"b","value":"2"}\n{"key":"a","value":"1"}\n{"key":"b","value":"3"}\n' | tamiz build json - --format jsonl >/dev/null
tamiz ingest json.store json/*.sst >/dev/null
wants "a	1
b	3" "$(tamiz scan json.store)"
rc=0; printf 'no tab\n' | tamiz build bad - --format tsv 2>words >/dev/null || rc=$?
wants 3 $rc
grep -q 'line 1: want KEY' words

# again: refused, or replaced, with nothing left of the attempt before
rc=0; tamiz build spilled input.tsv --format tsv 2>/dev/null || rc=$?
wants 3 $rc
tamiz build spilled input.tsv --format tsv --replace >/dev/null
wants 1 "$(find spilled -name '*.sst' | wc -l)"

# parts that overlap, later ones win; over what the store has already
head -n 15000 input.tsv | tamiz build two - --format tsv --name a >/dev/null
tail -n +15001 input.tsv | tamiz build two - --format tsv --name b >/dev/null
tamiz put two.store key00001 old
tamiz put two.store zzz stays
tamiz ingest two.store two/a-*.sst two/b-*.sst >/dev/null
wants stays "$(tamiz get two.store zzz)"
tamiz delete two.store zzz
tamiz scan two.store | cmp - want
echo "built and ingested: fine"

command -v parallel >/dev/null 2>&1 || { echo "no GNU parallel here: its recipe was left out"; exit 77; }
parallel --version 2>/dev/null | grep -q 'GNU parallel' || { echo "parallel is not GNU's here: its recipe was left out"; exit 77; }
awk '/^# recipe: GNU parallel/ { on = 1; next } /^```/ { on = 0 } on' "$source/docs/scale-out.md" >recipe.sh
grep -q 'tamiz ingest' recipe.sh
sh -e recipe.sh >said 2>&1 || { cat said; exit 1; }
wants 4 "$(find parts -name 'part-*-000001.sst' | wc -l)"
tamiz scan store | cmp - want
echo "the recipe with GNU parallel: fine"
