#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What each of the options whose defaults were chosen by measurement costs and gains, beside the default: the table of ADR 26 and, since, 27.

    bench/defaults.py [--bin build/release/bench] [--dir DIR] [--num 2m] [--repeats 1] [--append FILE] [--quick NAME ...]

One eighth of the default memtable and table, so that 2 M keys make a tree of the shape that 16 M make. Every row: fillrandom until
settled, which is at rest; then, warmed, absent and present keys and short scans; then absent keys once more with 2 MiB of cache around the page cache,
for device reads. Ratios are of the default's median to the row's: above 1 the row is better. Rows take turns, a repeat at a time.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

BASE = "memtable=8MiB table=4MiB"
ROWS = [("default", ""), ("idle_merge=0", "idle_merge=0"),
        ("leveled, level0_runs=8", "compaction=leveled level0_runs=8 level0_stop=24"),
        ("compaction=leveled", "compaction=leveled"), ("compaction=tiered", "compaction=tiered"),
        ("size_ratio=4", "size_ratio=4"), ("size_ratio=16", "size_ratio=16"),
        ("level0_runs=8", "level0_runs=8"), ("level0_runs=16", "level0_runs=16"),
        ("table=1MiB", "table=1MiB"), ("table=16MiB", "table=16MiB"),
        ("compression=zstd:1", "compression=zstd:1"), ("compression=zstd:3", "compression=zstd:3"),
        ("compression=zstd-dict:3", "compression=zstd-dict:3"), ("zstd:3 from level 2 on", "compression=none,none,zstd:3"),
        ("filter_memory=monkey", "filter_memory=monkey")]


def bench(a, workloads, options, store, *more):
    command = [os.path.join(a.bin, "tamiz_bench"), workloads, "--num", a.num, "--db", store, "--options", BASE + " " + options,
               "--json", "-", *more]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("%s\n%s" % (" ".join(command), done.stderr))
    return {r["workload"].split(":")[0]: r for r in json.loads(done.stdout)["rows"]}


def measure(a, options):
    store = tempfile.mkdtemp(prefix="tamiz-defaults-", dir=a.dir)
    try:
        fill = bench(a, "fillrandom", options, store)["fillrandom"]
        old = ("--use_existing_db", "--reads", a.reads)
        memory = bench(a, "readmissing,readrandom,seekrandom:10", options, store, "--warm", *old)
        device = bench(a, "readmissing", options, store, "--use_direct_reads", "--cache_size", "2MiB", *old)["readmissing"]
    finally:
        shutil.rmtree(store, ignore_errors=True)
    return {"fill": fill["seconds"] + fill["settle_seconds"], "fill CPU": fill["cpu_us"],
            "written": fill["kernel_write_bytes"] / fill["bytes"], "space": fill["store_bytes"] / fill["bytes"],
            "longest put": fill["max_us"] / 1000,
            "absent": memory["readmissing"]["thread_cpu_us"], "present": memory["readrandom"]["thread_cpu_us"],
            "seek + 10": memory["seekrandom"]["thread_cpu_us"],
            "device reads": device["device_reads"] / device["operations"]}


RATIOS = ["fill", "fill CPU", "absent", "present", "seek + 10"]
PLAIN = [("written", "%.2f"), ("space", "%.2f"), ("longest put", "%.0f ms"), ("device reads", "%.4f")]


def show(results):
    def median(name, what):
        return statistics.median(r[what] for r in results[name])
    print("| options | " + " | ".join(RATIOS + [p for p, _ in PLAIN]) + " |")
    print("| --- " * (1 + len(RATIOS) + len(PLAIN)) + "|")
    for name, _ in ROWS:
        if name in results:
            cells = ["%.2f" % (median("default", w) / median(name, w)) for w in RATIOS]
            cells += [f % median(name, w) for w, f in PLAIN]
            print("| %s | %s |" % (name, " | ".join(cells)))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", default="build/release/bench")
    p.add_argument("--dir", default=None, help="where stores are made: a real file system")
    p.add_argument("--num", default="2m")
    p.add_argument("--reads", default="300k")
    p.add_argument("--repeats", type=int, default=1)
    p.add_argument("--append", help="keeps all repeats here, and shows medians over all of them")
    p.add_argument("--quick", nargs="+", metavar="NAME", help="only these rows, and the default")
    a = p.parse_args()
    results = {}
    if a.append and os.path.exists(a.append):
        results = json.load(open(a.append))
    for _ in range(a.repeats):
        for name, options in ROWS:
            if not a.quick or name in a.quick or name == "default":
                results.setdefault(name, []).append(measure(a, options))
    if a.append:
        json.dump(results, open(a.append, "w"))
    show(results)


main()
