#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same workloads over tamiz and its peers, in one run.

Machines are shared and noisy: engines take turns, everything is repeated, and what is told is the
median with minimum and maximum, and the ratio of each peer to tamiz. The figure to look at is CPU
time per operation (the asking threads' and the background's), then the p50, then operations per
second.

    cmake --preset release -DTAMIZ_PEERS=DIR && cmake --build build/release
    bench/compare.py --bin build/release/bench --num 1m readrandom readmissing
    bench/compare.py --bin build/release/bench --num 10m --repeats 5 --regime memory \\
        --json compare.json --markdown compare.md
    bench/compare.py --bin build/release/bench --num 10m --repeats 1 --keep --append all.json \\
        readmissing                              # one repeat more, now that the machine is quiet

A setting may be run in pieces: with --keep the stores stay, with --append the results add up.

Workloads are those of `tamiz_bench --help`, NAME:PARAMETER@THREADS. Fills begin with an empty
store and are each a run of their own; whatever reads runs on a store that is filled once for each
engine (fillrandom, compaction settled) and opened anew for each repeat. In the memory regime the
cache holds everything and is warmed; in the device regime it is 64 MiB, with direct I/O where an
engine has it.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

ENGINES = {"tamiz": "tamiz_bench", "rocksdb": "tamiz_bench_rocksdb",
           "leveldb": "tamiz_bench_leveldb", "lmdb": "tamiz_bench_lmdb",
           "wiredtiger": "tamiz_bench_wiredtiger"}
NO_DIRECT_IO = {"leveldb", "lmdb"}
WRITING = {"fillseq", "fillrandom", "fillsync", "overwrite", "deleterandom", "deleterange",
           "ycsba", "ycsbb", "ycsbd", "ycsbe", "ycsbf", "compact", "readwhilewriting"}
FRESH = {"fillseq", "fillrandom", "fillsync"}
DEFAULT = ["fillrandom", "readrandom", "readmissing", "readhot", "multiget:32",
           "multigetmissing:32", "seekrandom:10", "seekrandom:100", "readseq"]


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("workloads", nargs="*", default=DEFAULT)
    p.add_argument("--bin", required=True, help="directory of the tamiz_bench programs")
    p.add_argument("--engines", help="comma-separated; default: all that were built")
    p.add_argument("--dir", default="tamiz-compare", help="where the stores live")
    p.add_argument("--num", default="1m", help="keys")
    p.add_argument("--reads", default="1m", help="operations of a reading workload")
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--fill-repeats", type=int, default=3)
    p.add_argument("--regime", choices=["memory", "device"], default="memory")
    p.add_argument("--cache", help="bytes; default: by regime")
    p.add_argument("--bits", default="10", help="filter bits of a key")
    p.add_argument("--options", default="", help="for tamiz, in its own words")
    p.add_argument("--json", help="everything that was measured")
    p.add_argument("--append", help="a --json of earlier runs of the same settings: what is measured "
                                    "now joins it, so that many repeats can be many short runs")
    p.add_argument("--markdown", help="the table, beside standard output")
    p.add_argument("--keep", action="store_true", help="keep stores, and use those that are there")
    return p.parse_args()


def find_engines(a):
    names = a.engines.split(",") if a.engines else list(ENGINES)
    found = [n for n in names if os.path.exists(os.path.join(a.bin, ENGINES[n]))]
    missing = [n for n in names if n not in found]
    if missing:
        print(f"compare: not built: {', '.join(missing)}", file=sys.stderr)
    return found


def memory_cache(num):
    """Room for all keys and values with what an engine needs around them."""
    units = {"k": 10**3, "m": 10**6}
    keys = float(num.rstrip("km")) * units.get(num[-1], 1)
    return str(int(max(1 << 30, 3 * 116 * keys)))


def kind(workload):
    return workload.split(":")[0].split("@")[0]


class Runner:
    def __init__(self, a):
        self.a = a
        self.filled = {}

    def path(self, engine, purpose):
        return os.path.join(self.a.dir, f"{engine}-{purpose}")

    def run(self, engine, purpose, workloads, existing, warm=False):
        """One process; its rows, or None where the engine can't."""
        a = self.a
        cache = a.cache or (memory_cache(a.num) if a.regime == "memory" else "64MiB")
        out = os.path.join(a.dir, "rows.json")
        command = [os.path.join(a.bin, ENGINES[engine]), ",".join(workloads), "--num", a.num,
                   "--reads", a.reads, "--db", self.path(engine, purpose), "--bloom_bits", a.bits,
                   "--cache_size", cache, "--json", out]
        if existing:
            command.append("--use_existing_db")
        if warm:
            command.append("--warm")
        if a.regime == "device" and engine not in NO_DIRECT_IO:
            command.append("--use_direct_reads")
        if a.regime == "device" and engine == "rocksdb":
            command.append("--counts")
        if engine == "tamiz" and a.options:
            command += ["--options", a.options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"compare: {' '.join(command)}\n{done.stderr}", file=sys.stderr)
            return None
        with open(out, encoding="utf-8") as f:
            return json.load(f)

    def fill(self, engine, purpose):
        """A store to read from: filled in random order, everything settled."""
        if (engine, purpose) in self.filled:
            return True
        mark = self.path(engine, purpose) + ".filled"
        if self.a.keep and os.path.exists(mark):
            self.filled[engine, purpose] = True
            return True
        print(f"compare: filling {engine}", file=sys.stderr, flush=True)
        if not self.run(engine, purpose, ["fillrandom"], existing=False):
            return False
        with open(mark, "w", encoding="utf-8") as f:
            f.write(self.a.num)
        self.filled[engine, purpose] = True
        return True


def collect(results, engine, document):
    if not document:
        return
    found = re.search(r"[0-9]+(\.[0-9]+)+", document["version"])
    results["versions"][engine] = found.group() if found else document["version"]
    for row in document["rows"]:
        results["rows"].setdefault(row["workload"], {}).setdefault(engine, []).append(row)


def run_everything(a, engines, results):
    runner = Runner(a)
    fills = [w for w in a.workloads if kind(w) in FRESH]
    writes = [w for w in a.workloads if kind(w) in WRITING and kind(w) not in FRESH]
    reads = [w for w in a.workloads if kind(w) not in WRITING]
    for repeat in range(a.fill_repeats if fills else 0):
        for workload in fills:
            for engine in engines:
                print(f"compare: {workload} {repeat + 1}: {engine}", file=sys.stderr, flush=True)
                collect(results, engine, runner.run(engine, "fill", [workload], existing=False))
                shutil.rmtree(runner.path(engine, "fill"), ignore_errors=True)
    for repeat in range(a.repeats if reads else 0):
        for engine in engines:
            if runner.fill(engine, "read"):
                print(f"compare: reads {repeat + 1}: {engine}", file=sys.stderr, flush=True)
                collect(results, engine, runner.run(engine, "read", reads, existing=True,
                                                    warm=a.regime == "memory"))
    for repeat in range(a.fill_repeats if writes else 0):
        for engine in engines:
            print(f"compare: writes {repeat + 1}: {engine}", file=sys.stderr, flush=True)
            document = runner.run(engine, "write", ["fillrandom"] + writes, existing=False)
            if document:
                document["rows"] = document["rows"][1:]
            collect(results, engine, document)
            shutil.rmtree(runner.path(engine, "write"), ignore_errors=True)


SAME = ("num", "reads", "regime", "cache", "bits", "options")


def earlier(a):
    """The results that this run's join; none where there is no such file yet."""
    fresh = {"settings": vars(a), "versions": {}, "rows": {}}
    if not a.append or not os.path.exists(a.append):
        return fresh
    with open(a.append, encoding="utf-8") as f:
        results = json.load(f)
    other = [k for k in SAME if results["settings"].get(k) != getattr(a, k)]
    if other:
        sys.exit(f"compare: {a.append} was measured with another {', '.join(other)}")
    return results


def spread(rows, field):
    """Median, minimum, maximum; None where nothing was measured."""
    values = [r[field] for r in rows if r.get(field) is not None]
    return (statistics.median(values), min(values), max(values)) if values else None


def number(x):
    return f"{x:.3g}" if x < 100 else f"{x:.0f}"


def cell(rows):
    if not rows:
        return "-"
    cpu, low, high = spread(rows, "cpu_us")
    p50, ops = spread(rows, "p50_us")[0], spread(rows, "ops_per_second")[0]
    text = f"{number(cpu)} [{number(low)}-{number(high)}], {number(p50)}, {ops / 1000:.0f} k"
    if rows[0]["settle_seconds"] > 0:
        settled = statistics.median(r["seconds"] + r["settle_seconds"] for r in rows)
        text += f", settled {settled:.1f} s"
    if rows[0].get("device_reads") is not None and "device_reads" in rows[0]:
        text += f", {rows[0]['device_reads'] / rows[0]['operations']:.3f} dev"
    return text


def ratio_cell(rows, base):
    if not rows or not base:
        return "-"
    cpu = spread(rows, "cpu_us")[0] / max(spread(base, "cpu_us")[0], 1e-9)
    p50 = spread(rows, "p50_us")[0] / max(spread(base, "p50_us")[0], 1e-9)
    low = spread(rows, "cpu_us")[1] / max(spread(base, "cpu_us")[2], 1e-9)
    high = spread(rows, "cpu_us")[2] / max(spread(base, "cpu_us")[1], 1e-9)
    return f"{cpu:.2f} [{low:.2f}-{high:.2f}], {p50:.2f}"


def table(header, lines):
    out = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return "\n".join(out + ["| " + " | ".join(line) + " |" for line in lines])


def memory_line(results, engine):
    """What the process had at most, and at the end what it had and the engine said of it."""
    rows = [r for by in results["rows"].values() for r in by.get(engine, [])]
    last = max(rows, key=lambda r: r["rss_bytes"])
    said = last.get("memory_bytes", 0)
    return [engine, f"{max(r['peak_rss_bytes'] for r in rows) / 1e6:.0f}",
            f"{last['rss_bytes'] / 1e6:.0f}", f"{said / 1e6:.0f}" if said else "-",
            f"{last['rss_bytes'] / said:.3f}" if said else "-"]


def markdown(results, engines):
    a = results["settings"]
    names = [f"{e} {results['versions'].get(e, '')}".strip() for e in engines]
    repeats = [len(rows) for by in results["rows"].values() for rows in by.values()]
    text = [f"{a['num']} keys of 16 + 100 bytes, regime {a['regime']}, filters at {a['bits']} bits, "
            f"median of {min(repeats, default=0)} to {max(repeats, default=0)} repeats.", "",
            "CPU µs per operation [min-max], p50 µs, operations/s:", "",
            table(["workload"] + names,
                  [[w] + [cell(by.get(e)) for e in engines] for w, by in results["rows"].items()])]
    if "tamiz" in engines and len(engines) > 1:
        peers = [e for e in engines if e != "tamiz"]
        text += ["", "Peer over tamiz: CPU [min-max], p50 (above 1: tamiz is faster):", "",
                 table(["workload"] + peers,
                       [[w] + [ratio_cell(by.get(e), by.get("tamiz")) for e in peers]
                        for w, by in results["rows"].items()])]
    text += ["", "Memory of the process, MB:", "",
             table(["engine", "at most", "resident", "by the engine's own count", "resident / own"],
                   [memory_line(results, e) for e in engines])]
    return "\n".join(text) + "\n"


def main():
    a = parse_arguments()
    engines = find_engines(a)
    if not engines:
        return 2
    os.makedirs(a.dir, exist_ok=True)
    results = earlier(a)
    try:
        run_everything(a, engines, results)
    except KeyboardInterrupt:
        print("compare: interrupted: this is what there is so far", file=sys.stderr)
    text = markdown(results, [e for e in ENGINES if e in results["versions"]])
    print(text)
    for path in {a.json, a.append} - {None}:
        with open(path, "w", encoding="utf-8") as f:
            json.dump(results, f, indent=1)
    if a.markdown:
        with open(a.markdown, "w", encoding="utf-8") as f:
            f.write(text)
    if not a.keep:
        shutil.rmtree(a.dir, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
