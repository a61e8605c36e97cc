#!/bin/sh
# SPDX-License-Identifier: MIT
# Drives every command of the tool: what it prints, its exit status, escapes both ways, and what it says to bad input.
#
#     sh tests/tools/commands_test.sh SOURCE_DIRECTORY BUILD_DIRECTORY
set -u
tamiz=$(cd "$2" && pwd)/bin/tamiz
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place" || exit 1
checks=0
failed=0
tab=$(printf '\t')

complain() {
    failed=$((failed + 1))
    printf 'FAILED: %s\n  wanted status %s: %s\n  got status %s: %s\n  stderr: %s\n' "$1" "$2" "$3" "$4" "$5" "$(cat stderr)"
}

# is STATUS STDOUT ARGUMENTS...: exactly that.
is() {
    status=$1 want=$2
    shift 2
    checks=$((checks + 1))
    got=$("$tamiz" "$@" 2>stderr </dev/null)
    rc=$?
    [ "$rc" = "$status" ] && [ "$got" = "$want" ] || complain "tamiz $*" "$status" "$want" "$rc" "$got"
}

# has STATUS WORDS ARGUMENTS...: stdout or stderr has WORDS in it.
has() {
    status=$1 want=$2
    shift 2
    checks=$((checks + 1))
    got=$("$tamiz" "$@" 2>stderr </dev/null)
    rc=$?
    case "$got$(cat stderr)" in
        *"$want"*) [ "$rc" = "$status" ] && return ;;
    esac
    complain "tamiz $*" "$status" "...$want..." "$rc" "$got"
}

# json EXPRESSION ARGUMENTS...: stdout is one document d of which EXPRESSION (Python) is true.
if command -v python3 >/dev/null 2>&1; then checker=python3; else checker=none; fi
json() {
    want=$1
    shift
    [ "$checker" = none ] && return
    checks=$((checks + 1))
    got=$("$tamiz" --json "$@" 2>stderr </dev/null)
    rc=$?
    printf '%s' "$got" | python3 -c 'import json,sys
d = json.loads(sys.stdin.buffer.read().decode("utf-8", "strict"))
sys.exit(0 if eval(sys.argv[1]) else 1)' "$want" 2>python || complain "tamiz --json $*" "any" "$want $(tail -n 1 python)" "$rc" "$got"
}

# ---- usage ----
has 2 "usage: tamiz"
has 0 "usage: tamiz" help
has 0 "Exit status" --help
checks=$((checks + 1))
if [ -c /dev/full ]; then "$tamiz" help >/dev/full 2>stderr; [ $? = 3 ] || complain "tamiz help >/dev/full" 3 "" "not 3" ""; fi
has 3 'a\x1b[31mb' get -o create_if_missing=false "a$(printf '\033')[31mb" key
has 2 'no command "a\x1b[31mb"' "a$(printf '\033')[31mb"
# Nor may what is not seen, or turns the order of what is: U+202E in a key.
is 0 '' put -o create_if_missing=true turned "$(printf 'a\342\200\256b')" 'ñ'
is 0 'a\xe2\x80\xaeb	ñ' scan turned
is 0 'ñ' get turned 'a\xe2\x80\xaeb'
has 0 "tamiz 0." --version
has 0 "--prefix" help scan
for command in "" $("$tamiz" help | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p'); do
    checks=$((checks + 1))
    if "$tamiz" help $command | grep -E '^.{80}'; then
        echo "FAILED: help $command: lines that wrap on 80 columns"
        failed=$((failed + 1))
    fi
done
has 0 "--prefix" scan --help
has 2 "no command \"fetch\"" fetch store key
has 2 "no command \"fetch\"" help fetch
has 2 "too few operands: want STORE KEY" get store
has 2 "too many operands" get store a b
has 2 "no flag \"--frob\"" get --frob store a
has 2 "want KEY behind it" scan store --from
has 2 "want a whole number" scan store --limit many
has 2 "want a number, such as" lab curve --count 2q
has 2 "want a number, such as" lab curve --count 2kk
has 2 "want a number, such as" lab curve --count -1k
has 0 "2,500 random hashes" lab curve --count 2.5k --filters blocked:10 --seed 1
has 2 "want a number, such as" lab levels --count 2q

# ---- a store that is not there, or not one ----
has 3 "absent: there is no store" get absent a
[ ! -e absent ] || { echo "FAILED: get made a store"; failed=$((failed + 1)); }
: >plain
has 2 "plain: a file stands here" get plain a
has 2 "plain: a file stands here" put plain a b

# ---- put, get, delete ----
is 0 "" put store sieve tamiz
is 0 "tamiz" get store sieve
is 1 "" get store colander
is 0 "" put store empty ""
is 0 "" get store empty
is 0 "" put store "" "of the empty key"
is 0 "of the empty key" get store ""
is 0 "" put store 'a\x00b' 'one\x0atwo\\three'
is 0 'one\x0atwo\x5cthree' get store 'a\x00b'
is 0 '6f6e650a74776f5c7468726565' get --hex store 610062
is 0 "" put --hex store c3a9 'e4bda0'
is 0 '你' get store 'é'
is 0 "" put store 'bad\xff\xc3' 'v\xe2\x80'
is 0 'v\xe2\x80' get store 'bad\xff\xc3'
is 0 "" put store -- --odd -value
is 0 "-value" get store -- --odd
is 0 "" delete store -- --odd
is 1 "" get store -- --odd
is 0 "" delete store never-there
is 0 "" put --sync store synced yes
has 2 "after a backslash" put store 'a\q' b
has 2 "even number of hex digits" put --hex store abc 00
has 2 "hex digits only" get --hex store zz
has 2 "size_ratio=1: want" -o "size_ratio=1" put store a b
has 2 "nonsense" -o "nonsense=1" get store sieve
is 0 "tamiz" -o "cache=1MiB" get store sieve -o "verify=true"
long=$(head -c 65536 /dev/zero | tr '\0' k)
has 2 "65536" put store "$long" v
json 'd == {"key": "sieve", "found": True, "value": "tamiz"}' get store sieve
json 'd == {"key": "no", "found": False}' get store no
json 'd["value"] == "one\\x0atwo\\x5cthree"' get store 'a\x00b'
json 'd == {"done": True}' put store x y
json 'd == {"done": True}' delete store x
is 0 "" put ranges a 1
is 0 "" put ranges b 2
is 0 "" put ranges c 3
is 0 "" delete-range ranges a c
is 0 "c	3" scan ranges
has 2 "above the beginning" delete-range ranges c a
has 2 "above the beginning" delete-range ranges c c
is 0 "" delete-range ranges '' d
is 0 "" scan ranges

# ---- put for a time ----
is 0 "" put timed a 1 --ttl 100000
is 0 "" put -o ttl=100000 timed b 2
is 0 "" put timed c 3
is 0 "1" get timed a
is 0 "a	1
b	2
c	3" scan timed
has 0 "put for a time" dump --entries timed/*.log
has 0 "expires_us" dump --entries timed/*.log
has 2 "want a whole number" put timed a 1 --ttl soon
has 2 "want 0..3155760000" put timed a 1 --ttl 3155760001
has 2 "ttl=1h: want 0..3155760000" put -o ttl=1h timed a 1
has 0 "--ttl" help put
is 0 "" put timed gone 1 --ttl 1
sleep 2
is 1 "" get timed gone
has 0 "expired: the search ends" explain timed gone
is 0 "" compact timed
has 0 "put for a time" dump --entries timed/*.sst

# ---- scan ----
is 0 "" put order b 2
is 0 "" put order a 1
is 0 "" put order c 3
is 0 "" put order ab 12
is 0 "a${tab}1
ab${tab}12
b${tab}2
c${tab}3" scan order
is 0 "c${tab}3
b${tab}2" scan order --reverse --limit 2
is 0 "ab
b" scan order --from aa --to c --keys
is 0 "a${tab}1
ab${tab}12" scan order --prefix a
is 0 "4" scan order --count
is 0 "0" scan order --count --limit 0
is 0 "" scan order --from x
is 0 "" scan order --prefix zz
json 'd == {"entries": [{"key": "a", "value": "1"}, {"key": "ab", "value": "12"}], "count": 2}' scan order --prefix a
json 'd == {"count": 4}' scan order --count
json '[e["key"] for e in d["entries"]] == ["", "a\\x00b", "bad\\xff\\xc3", "empty", "sieve", "synced", "é"]' scan store

# ---- load ----
printf 'one\ntwo\nthree\\x\n\nlast' >lines
is 0 "5 keys loaded" load loaded lines
is 0 "2" get loaded two
is 0 "3" get loaded 'three\\x'
is 0 "4" get loaded ""
is 0 "5" get loaded last
"$tamiz" scan store >tsv
has 0 "keys loaded" load copy --format tsv tsv
"$tamiz" scan copy >copied
checks=$((checks + 1))
cmp -s tsv copied || { echo "FAILED: scan | load --format tsv is not the same store"; failed=$((failed + 1)); }
printf '%s\n' '{"key": "k\u00e9\ud83d\ude00", "more": [1, {"a": "}"}], "value": "a\\x00b"}' '{"value": 12.5, "key": "n"}' '{"key":"t","value":{"deep":true}}' >jsonl
is 0 "3 keys loaded" load fromjson --format jsonl jsonl
is 0 'a\x00b' get fromjson 'ké😀'
is 0 '12.5' get fromjson n
is 0 '{"deep":true}' get fromjson t
json 'd == {"loaded": 3}' load fromjson --format jsonl jsonl
checks=$((checks + 1))
got=$(printf 'x\ny\n' | "$tamiz" load piped -)
[ "$got" = "2 keys loaded" ] || { echo "FAILED: load from stdin: $got"; failed=$((failed + 1)); }
printf 'a\tb\nno tab\n' >bad.tsv
has 3 "line 2: want KEY, a tab, VALUE (1 keys were loaded)" load badload bad.tsv --format tsv
printf '{"key":"a"}\n' >bad.jsonl
has 3 "line 1: the object has no \"value\"" load badload bad.jsonl --format jsonl
printf '{"key":"a","value":"b"\n' >bad.jsonl
has 3 "want one JSON object a line" load badload bad.jsonl --format jsonl
printf '{"key":"\\ud800","value":"b"}\n' >bad.jsonl
has 3 "want one JSON object a line" load badload bad.jsonl --format jsonl
has 2 "want lines, tsv or jsonl" load loaded lines --format csv
has 3 "No such file" load unmade nothing
has 2 "want lines" load unmade lines --format xml
has 2 "after a backslash" put unmade a 'b\z'
[ ! -e unmade ] || { echo "FAILED: a mistake made a store"; failed=$((failed + 1)); }
printf '%s\n' "$long" >long
has 3 "line 1: " load badload long

# ---- a store with tables ----
i=0
while [ $i -lt 3000 ]; do echo "key$i"; i=$((i + 1)); done >keys
is 0 "3,000 keys loaded" -o "memtable=64KiB filter=bloom:10" load tree keys
is 0 "" -o "filter=bloom:10" flush tree
is 0 "" -o "filter=bloom:10" compact tree
is 0 "" -o "filter=bloom:10" compact tree --from key1 --to key2
is 0 "3000" scan tree --count
has 0 "gets" stats tree
has 0 "tamiz_gets" stats tree --prometheus
has 0 "" levels tree
has 0 "key0 .. key999" tables tree
has 0 "cache" options
has 0 "cache" options tree
has 0 "present: 1 device read" explain tree key77
has 0 "absent" explain tree nowhere
json '"gets" in d' stats tree
json 'sum(l["keys"] for l in d["levels"]) == 3000' levels tree
json 'len(d["tables"]) >= 1' tables tree
json 'len(d["options"]) > 5' options
json 'isinstance(d, dict)' explain tree key77
is 0 "" put store more x

# ---- verify ----
has 0 "3,000 keys: all fine" verify tree
json 'd["damaged"] == 0 and d["keys"] == 3000 and d["finds"] == []' verify tree
has 3 "there is no store" verify absent
cp -r tree hurt
table=$(ls hurt/*.sst | head -n 1)
printf 'X' | dd of="$table" bs=1 seek=300 conv=notrunc 2>/dev/null
has 1 "${table##*/}" verify hurt
json 'd["damaged"] >= 1 and len(d["finds"]) == d["damaged"]' verify hurt
rm hurt/CURRENT
has 1 "CURRENT" verify hurt
has 3 "CURRENT" get hurt key1

# ---- repair: what can be read is there again, the old files are kept ----
cp -r hurt mended
has 0 "CURRENT" repair mended
has 0 "all fine" verify mended
has 0 "all fine" repair tree
ls mended/lost/*.sst >/dev/null || { echo "repair: nothing in lost/"; exit 1; }
has 3 "no store here" repair absent

# ---- dump: any file, changing nothing ----
table=$(ls tree/*.sst | head -n 1)
before=$(cksum tree/* store/*)
has 0 "footer" dump "$table"
has 0 '"key10"' dump --entries "$table"
has 0 "add table" dump tree/MANIFEST-*
has 0 "MANIFEST-" dump tree/CURRENT
has 0 "lock" dump tree/LOCK
for log in tree/*.log store/*.log; do
    [ -e "$log" ] && has 0 "log" dump "$log"
done
json 'all(f["damaged"] is False for f in d["files"]) and len(d["files"]) >= 4' dump tree/* store/*
json '[i["item"] for i in d["files"][0]["items"]][-1] == "footer"' dump "$table"
json 'sum(i["item"] == "put" for i in d["files"][0]["items"]) > 100' dump --entries "$table"
has 1 "checksum" dump "$(ls hurt/*.sst | head -n 1)"
has 3 "No such file" dump nothing
has 1 "no file of a store" dump lines
[ "$before" = "$(cksum tree/* store/*)" ] || { echo "FAILED: dump changed a file"; failed=$((failed + 1)); }

# ---- filter ----
has 0 "kind          bloom" filter "$table"
has 0 "of its bits are set" filter "$table"
json 'd["filters"][0]["kind"] == "bloom" and 0.3 < d["filters"][0]["fill"] < 0.7' filter "$table"
has 3 "No such file" filter nothing
has 3 "lines" filter lines
is 0 "" -o "filter=none" put bare a b
is 0 "" -o "filter=none" compact bare
has 1 "has no filter" filter bare/*.sst
has 0 "9,585,059" filter calc --keys 1000000 --fpr 0.01
has 0 "one absent key in" filter calc --keys 1000000 --bits 10
json 'abs(d["bits_per_key"] - 9.585) < 0.001 and d["hashes"] == 7 and abs(d["expected_fpr"] - 0.01) < 0.0002' filter calc --keys 1000000 --fpr 0.01
json 'abs(d["expected_fpr"] - 0.0082) < 0.0001 and any(k["kind"] == "blocked" for k in d["kinds"])' filter calc --bits 10
has 2 "want one of" filter calc --keys 5
has 2 "want one of" filter calc --bits 5 --fpr 0.1
has 2 "want 0 < P < 1" filter calc --fpr 1
has 2 "want 0 < B <= 64" filter calc --bits 0
has 2 "want 1..2^48" filter calc --bits 10 --keys 0

# ---- shell ----
checks=$((checks + 1))
got=$(printf '%s\n' '# a script' 'put "a key" '\''a value'\''' 'get "a key"' 'get nothing' 'scan --count' | "$tamiz" shell shelled 2>stderr)
rc=$?
[ "$rc" = 1 ] && [ "$got" = "a value
1" ] || complain "shell" 1 "a value, 1" "$rc" "$got"
checks=$((checks + 1))
printf 'put a b\nget "a\nfrob\n' | "$tamiz" shell shelled >/dev/null 2>stderr
rc=$?
[ "$rc" = 2 ] && grep -q 'open quote' stderr && grep -q 'no command "frob" here' stderr || complain "shell, bad lines" 2 "open quote" "$rc" ""

# ---- lab ----
has 2 "no experiment" lab nothing
has 2 "want shuffled or file" lab avoided-reads --order random
has 2 "sieve" lab avoided-reads --filters sieve:3
has 3 "nothing: No such file" lab avoided-reads --keys nothing
has 3 "no line in it" lab avoided-reads --keys plain
has 0 "keys asked for, 0 denied" lab avoided-reads --keys keys --filters bloom:10 --seed 7 --report report.html
grep -q 'new uPlot' report.html || { echo "FAILED: no chart in the report"; failed=$((failed + 1)); }
fields='{"filter", "bits_per_key", "filter_bytes", "expected_fpr", "measured_fpr", "probes", "filter_negatives", "filter_false_positives", "device_reads_without", "device_reads_with", "device_reads_avoided", "estimated_reads_avoided", "kernel_read_bytes", "ns_per_get"}'
json "$fields <= set(d['rows'][0])" lab avoided-reads --keys keys --filters bloom:10 --seed 7
json 'd["seed"] == 7 and all(r["false_negatives"] == 0 and r["keys_checked"] == 3000 and r["device_reads_avoided"] == r["device_reads_without"] - r["device_reads_with"] for r in d["rows"])' \
    lab avoided-reads --keys keys --filters bloom:10,blocked:10,none --seed 7
json 'd["rows"][0]["device_reads_without"] == d["rows"][0]["device_reads_with"]' lab avoided-reads --count 2000 --filters none --cache 64KiB
json 'd["rows"][0]["tables"] >= 1 and d["rows"][0]["false_negatives"] == 0' -o "memtable=64KiB" lab avoided-reads --keys keys --filters blocked:8 --tree --order file
sed 's/$/x/' keys >probes
json 'd["absent_probes"] == 3000 and all(r["absent_device_reads_with"] * 20 < r["absent_device_reads_without"] and abs(r["measured_fpr_sigmas"]) < 5 and r["filter_negatives"] > 2800 for r in d["rows"])' \
    lab avoided-reads --keys keys --probes probes --filters bloom:10,blocked:10 --cache 8KiB --seed 7
has 2 "whose bits can be chosen" lab levels --filters fuse8
json "d['ratio_predicted'] > 1 and d['monkey']['levels'] and d['uniform']['levels']" lab levels --count 20000 --seed 7
ls -d tamiz-lab-* >/dev/null 2>&1 && { echo "FAILED: the lab left its store"; failed=$((failed + 1)); }

# ---- destroy ----
: >order/not-ours
is 0 "" destroy order
[ "$(ls order)" = not-ours ] || { echo "FAILED: destroy took what is not the store's, or left what is: $(ls order)"; failed=$((failed + 1)); }
has 3 "no store here" destroy absent
mkdir other
printf 'MANIFEST-000002\n' >other/CURRENT
printf 'another store writes this' >other/MANIFEST-000002
printf 'and this' >other/000003.log
before=$(cksum other/*)
has 3 "MANIFEST-000002 is somebody else" destroy other
has 3 "MANIFEST-000002 is somebody else" repair other
[ "$(cksum other/*)" = "$before" ] || { echo "FAILED: another program's files were touched"; failed=$((failed + 1)); }

# ---- bench ----
if "$tamiz" help | grep -q '^  bench '; then
    has 2 "nothing: no such workload" bench nothing --num 10
    json '[w["workload"] for w in d["rows"]] == ["fillseq", "readrandom"]' bench fillseq,readrandom --num 500 --db benched
fi

# Keyspaces: made by name, apart from each other, dropped.
is 0 "" keyspace create spaces people
is 0 "" put --keyspace people spaces 17 Ada
is 0 "" put --keyspace towns spaces 17 London
is 0 "Ada" get --keyspace people spaces 17
is 1 "" get spaces 17
is 0 "default
people
towns" keyspace list spaces
json 'd["keyspaces"] == ["default", "people", "towns"]' keyspace list spaces
json 'd["keyspace"] == "people"' stats --keyspace people spaces
has 0 'keyspace="people"' stats --keyspace people spaces --prometheus
has 3 "there is no keyspace none" get --keyspace none spaces 17
is 0 "" keyspace drop spaces people
has 1 "there is no keyspace people" keyspace drop spaces people
is 0 "London" get --keyspace towns spaces 17
has 2 "want list STORE" keyspace burn spaces people
has 0 "all fine" verify spaces

[ "$checker" = none ] && echo "no python3 here: the documents of --json were not checked"
printf '%d checks, %d failed\n' "$checks" "$failed"
[ "$failed" = 0 ]
