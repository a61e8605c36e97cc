#!/bin/sh
# SPDX-License-Identifier: MIT
# The lab's experiments on small stores: each runs, its rows are whole, CSV and page are written; and what `whatif` predicts
# for a filter is what a store that is really built with that filter does, within 10 %.
#
#     sh tests/trust/lab_test.sh SOURCE_DIRECTORY BUILD_DIRECTORY
set -u
tamiz=$(cd "$2" && pwd)/bin/tamiz
command -v python3 >/dev/null 2>&1 || { echo "left out: no python3 to read JSON with"; exit 77; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place" || exit 1
failed=0

# lab EXPRESSION ARGUMENTS...: the JSON of the experiment is d, its rows are r, of which EXPRESSION (Python) is true.
lab() {
    want=$1
    shift
    "$tamiz" --json lab "$@" --seed 5 --csv rows.csv --report page.html >out.json 2>err.txt </dev/null || { failed=1; echo "FAILED: lab $*: $(cat err.txt)"; return; }
    python3 -c 'import json, sys, csv
d = json.load(open("out.json"))
r = d["rows"]
assert eval(sys.argv[1]), sys.argv[1]
rows = list(csv.DictReader(open("rows.csv")))
assert len(rows) == len(r) and set(rows[0]) == set(r[0]), "CSV"
page = open("page.html").read()
assert "uPlot" in page and "<noscript>" in page and "--seed 5" in page and "http://" not in page.split("<script")[0], "page"
assert page.count("<tr>") == len(r) + 1, "table"' "$want" 2>>err.txt || { failed=1; echo "FAILED: lab $*: $(tail -n 1 err.txt)"; }
}

lab 'all(x["measured_fpr_low"] <= x["expected_fpr"] * 1.1 and x["expected_fpr"] <= x["measured_fpr_high"] * 1.1 for x in r) and len({x["kind"] for x in r}) == 3' \
    curve --count 20000 --filters bloom,blocked,ribbon
lab 'r[0]["filter_negatives"] <= 1.05 * r[0]["device_reads_avoided"] and r[-1]["filter_negatives"] > 20 * r[-1]["device_reads_avoided"]' \
    cache --count 30000 --probe-count 20000
"$tamiz" lab levels --count 20000 --seed 5 --csv levels.csv --report levels.html >levels.txt 2>&1 && grep -q '^"monkey",' levels.csv && grep -q 'Bits by level' levels.html ||
    { failed=1; echo "FAILED: lab levels"; }
lab 'r[-1]["reads_per_get_without"] > 3 * r[-1]["reads_per_get"] and r[0]["keys"] < r[-1]["keys"]' size --count 60000 --probe-count 5000
"$tamiz" lab avoided-reads --count 20000 --filters blocked:10,ribbon:7 --seed 5 --csv avoided.csv --report avoided.html >avoided.txt 2>err.txt &&
    grep -q '^"blocked:10",' avoided.csv && [ "$(wc -l <avoided.csv)" = 3 ] && grep -q uPlot avoided.html && grep -q '<noscript>' avoided.html &&
    grep -q -- '--seed 5' avoided.html && [ "$(grep -c '<tr>' avoided.html)" = 3 ] || { failed=1; echo "FAILED: lab avoided-reads: $(cat err.txt)"; }

# ---- flags: they do what they say, or are refused ----
reads() { "$tamiz" --json lab avoided-reads --count 20000 --probe-count 9000 --filters blocked:8 --seed 5 --cache 64KiB "$@" |
    python3 -c 'import json, sys
d = json.load(sys.stdin)
assert d["probes"] == 9000
print(d["rows"][0]["device_reads_without"])'; }
uniform=$(reads) zipf=$(reads --probes-as zipf) hashed=$(reads --keys-as hashed) sequential=$(reads --probes-as sequential)
mixed=$(reads --probes-as sequential --order shuffled)
[ "$mixed" -gt $((10 * sequential)) ] || { failed=1; echo "FAILED: avoided-reads, sequential probes shuffled: $mixed, in order $sequential"; }
[ "$uniform" -gt "$zipf" ] && [ "$zipf" -gt $((10 * sequential)) ] && [ "$hashed" != "$uniform" ] ||
    { failed=1; echo "FAILED: avoided-reads, --probes-as and --keys-as: uniform $uniform, zipf $zipf, hashed $hashed, sequential $sequential"; }
# refused WORDS ARGUMENTS...: status 2, and WORDS on stderr.
refused() {
    want=$1
    shift
    "$tamiz" lab "$@" >/dev/null 2>err.txt
    [ $? = 2 ] && grep -q -e "$want" err.txt || { failed=1; echo "FAILED: lab $*: not refused, or without \"$want\": $(cat err.txt)"; }
}
for name in curve levels whatif; do refused "$name has no use for --keys-as" $name --keys-as hashed; done
for name in curve levels; do refused "$name has no use for --probes-as" $name --probes-as zipf; done
for name in cache size writes; do refused "$name has no use for --filters" $name --filters bloom:10; done
for name in avoided-reads cache size; do
    refused "want decimal or hashed" $name --keys-as random
    refused "want uniform, zipf or sequential" $name --count 100 --probes-as random
    refused "names a file" $name --keys page.html --keys-as hashed
    refused "names a file" $name --count 100 --probes page.html --probes-as zipf
done

# ---- predicted against actual ----
"$tamiz" --json lab writes --count 120000 --seed 5 >writes.json && python3 -c 'import json
rows = json.load(open("writes.json"))["rows"]
assert len(rows) == 6 and all(r["measured"] > 1.5 and abs(r["difference"]) < 0.15 for r in rows), rows
assert all(abs(r["predicted"] / r["measured"] - 1 - r["difference"]) < 0.01 for r in rows), rows' ||
    { failed=1; echo "FAILED: lab writes"; }
build() { python3 -c 'import random
random.seed(2)
k = ["%010d" % (i * 7919 % 1000003 * 2) for i in range(60000)]
print("\n".join(k))' | "$tamiz" -o "memtable=256KiB table=256KiB threads=0 filter=$2" load "$1" - >/dev/null &&
    "$tamiz" -o "memtable=256KiB table=256KiB threads=0 filter=$2" flush "$1"; } # how much of a load is flushed is not the same each time
python3 -c 'import random
random.seed(3)
for i in range(40000):
    print("%010d" % (random.randrange(60000) * 7919 % 1000003 * 2 + (random.random() < 0.9)))' >probes
build before blocked:4
for filter in ribbon:7 bloom:8 blocked:6 blocked:4; do
    rm -rf after
    build after $filter
    for cache in 0 200KiB; do
        "$tamiz" --json lab whatif before --probes probes --cache $cache --filters $filter --seed 5 >predicted.json &&
            "$tamiz" --json lab whatif after --probes probes --cache $cache --filters $filter --seed 5 >actual.json || { failed=1; echo "FAILED: whatif $filter"; continue; }
        python3 -c 'import json, sys
p = [x for x in json.load(open("predicted.json"))["rows"] if x["how"] == "predicted"][0]
a = json.load(open("actual.json"))["rows"][0]
reads = p["device_reads"] / a["device_reads"] - 1; size = p["filter_bytes"] / a["filter_bytes"] - 1
print("whatif %-10s cache %-7s predicted %6d reads, %6d bytes; actual %6d, %6d (%+.1f %%, %+.1f %%)" % (sys.argv[1], sys.argv[2], p["device_reads"], p["filter_bytes"], a["device_reads"], a["filter_bytes"], 100 * reads, 100 * size))
assert abs(reads) < 0.1 and abs(size) < 0.1' $filter $cache || { failed=1; echo "FAILED: whatif $filter, cache $cache: not within 10 %"; }
    done
done
[ $failed = 0 ] && echo "lab: all fine"
exit $failed
