#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which branches the suite never took, against the list of those for which there is a reason.

    tools/coverage.py BUILD             a line a file; then what is not listed, and what is listed and taken: both fail
    tools/coverage.py BUILD --write     writes the list anew: known reasons stay, new branches stand under "?"

BUILD was compiled with --coverage and its tests have run: tools/coverage.sh does both. The list is tests/coverage.txt: sections
"= REASON", and in each a line a place: file, function, how many directions were never taken there, and the text of the line.
A place has no number, so that it stays known when lines move. What threads take by chance stands under "= ~ REASON": there it may
be taken or not, as long as the line is there.
"""
import collections
import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "coverage.txt"
HEAD = """# Branches that the short form of the suite never takes in recovery, manifest, log, compaction and filter code, and why.
# Written by tools/coverage.py --write, reasons by hand; sh tools/coverage.sh compares.
"""
WHOLE_FLOORS = ("log", "version", "compact", "filter")
DB_FILES = ("recover", "install", "write", "logs", "room", "background", "rewrite", "asked", "place", "ingest", "snapshot", "salvage", "repair")


def is_wanted(source):
    floor, name = source.split("/")
    return floor in WHOLE_FLOORS or (floor == "db" and name.startswith(DB_FILES))


def objects(build):
    for data in sorted(build.glob("CMakeFiles/tamiz_*.dir/src/*/*.gcda")):
        source = "/".join(data.parts[-2:]).removesuffix(".gcda")
        if is_wanted(source):
            yield source, data


def gcov(data):
    """gcov's own JSON for one object; it is written to the current directory, gzipped."""
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["gcov", "--json-format", "--branch-probabilities", str(data)], cwd=place, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for file in pathlib.Path(place).glob("*.json.gz"):
            yield from json.loads(gzip.decompress(file.read_bytes()))["files"]


def look(build):
    """{(file, function, text): directions never taken}, and a row of sums for each file."""
    missing, rows = collections.Counter(), []
    for source, data in objects(build):
        lines = taken = branches = run = 0
        text = (ROOT / "src" / source).read_text().split("\n")
        for file in gcov(data):
            if not file["file"].endswith("src/" + source):
                continue
            for line in file["lines"]:
                lines += 1
                run += line["count"] > 0
                ways = [b["count"] for b in line["branches"]]
                branches += len(ways)
                taken += sum(1 for count in ways if count)
                never = sum(1 for count in ways if not count)
                if never:
                    words = re.sub(r"\s+", " ", text[line["line_number"] - 1]).strip()
                    missing[(source, line.get("function_name", ""), words)] += never
        rows.append((source, run, lines, taken, branches))
    return missing, rows


def read_list():
    known, reason = {}, "?"
    for line in LIST.read_text().split("\n") if LIST.exists() else []:
        if line.startswith("= "):
            reason = line[2:]
        elif line and not line.startswith("#"):
            source, function, count, words = line.split(" | ", 3)
            known[(source, function, words)] = (int(count), reason)
    return known


def by_chance(place, known):
    return place in known and known[place][1].startswith("~")


def is_there(place):
    """Whether the source has the line still."""
    file = ROOT / "src" / place[0]
    lines = file.read_text().split("\n") if file.exists() else []
    return any(re.sub(r"\s+", " ", line).strip() == place[2] for line in lines)


def write_list(missing, known):
    by_reason = collections.defaultdict(list)
    missing = dict(missing)
    for place in known:
        if place not in missing and by_chance(place, known) and is_there(place):
            missing[place] = known[place][0]
    for place, count in missing.items():
        by_reason[known.get(place, (0, "?"))[1]].append((place, count))
    order = list(dict.fromkeys(reason for _, reason in known.values()))
    order = [r for r in order if r in by_reason and r != "?"] + sorted(r for r in by_reason if r not in order or r == "?")
    with LIST.open("w") as out:
        out.write(HEAD)
        for reason in order:
            out.write("\n= %s\n" % reason)
            for (source, function, words), count in sorted(by_reason[reason]):
                out.write("%s | %s | %d | %s\n" % (source, function, count, words))


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    missing, rows = look(build)
    for source, run, lines, taken, branches in rows:
        print("%-28s lines %6.1f %%   branches %6.1f %% of %d" %
              (source, 100 * run / max(lines, 1), 100 * taken / max(branches, 1), branches))
    known = read_list()
    if "--write" in sys.argv:
        write_list(missing, known)
    new = {p: n for p, n in missing.items() if p not in known or known[p][1] == "?" or (n > known[p][0] and not by_chance(p, known))}
    gone = [p for p in known if p not in missing and not (by_chance(p, known) and is_there(p))]
    for place, count in sorted(new.items()):
        print("never taken, no reason: %s | %s | %d | %s" % (place[0], place[1], count, place[2]))
    for place in sorted(gone):
        print("taken, or no longer there: %s | %s | %s" % place)
    sums = [sum(row[i] for row in rows) for i in range(1, 5)]
    print("%d of %d lines, %d of %d branches; %d places never taken, %d without a reason, %d listed in vain" %
          (*sums, len(missing), len(new), len(gone)))
    return bool(new or gone) or not rows


sys.exit(main())
