#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs every command of the tour's lessons and compares what it prints with what stands there: "..." alone is any number of
# lines, "{...}" any words, "{a..b}" a number from a to b. The Spanish lessons have the same commands and outputs.
#
#     sh tests/trust/tour_test.sh SOURCE_DIRECTORY BUILD_DIRECTORY
set -u
source=$(cd "$1" && pwd)
PATH=$(cd "$2" && pwd)/bin:$PATH
export PATH
command -v python3 >/dev/null 2>&1 || { echo "left out: no python3"; exit 77; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place" || exit 1
exec python3 - "$source/docs/tour" <<'PYTHON'
import glob, os, re, subprocess, sys
tour, failed, ran = sys.argv[1], 0, 0

def sessions(path):
    text = open(path, encoding="utf-8").read()
    return re.findall(r"^```console\n(.*?)^```$", text, re.S | re.M)

def number(text):
    return float(text.replace(",", ""))

def line_fits(want, got):
    """want's {a..b} are groups whose numbers are compared; spaces are as many as there are."""
    pattern, bounds = "", []
    for part in re.split(r"(\{[^}]*\})", " ".join(want.split())):
        span = re.fullmatch(r"\{([0-9.]+?)\.\.([0-9.]+)\}", part)
        if span:
            pattern += r"([0-9][0-9,]*(?:\.[0-9]+)?)"
            bounds.append((float(span[1]), float(span[2])))
        else:
            pattern += ".*?" if part == "{...}" else re.escape(part)
    found = re.fullmatch(pattern, " ".join(got.split()))
    return bool(found) and all(a <= number(n) <= b for n, (a, b) in zip(found.groups(), bounds))

def fits(want, got):
    if not want:
        return not got
    if want[0] == "...":
        return any(fits(want[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and line_fits(want[0], got[0]) and fits(want[1:], got[1:])

lessons = sorted(glob.glob(tour + "/[0-9]-*.md"))
assert len(lessons) == 6, lessons
for path in lessons:
    spanish = os.path.join(tour, "es", os.path.basename(path))
    if sessions(path) != sessions(spanish):
        print("FAILED:", spanish, "has other commands or outputs than the English lesson"); failed += 1
    for session in sessions(path):
        for step in re.split(r"^\$ ", session, flags=re.M)[1:]:
            command, *want = step.rstrip("\n").split("\n")
            done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
            got = done.stdout.rstrip("\n").split("\n")
            ran += 1
            if done.returncode not in (0, 1) or not fits(want, got):
                print("FAILED:", os.path.basename(path), "$", command, "\n  wanted:\n    " + "\n    ".join(want), "\n  got:\n    " + "\n    ".join(got), done.stderr); failed += 1
print("tour: %d commands in %d lessons" % (ran, len(lessons)))
sys.exit(1 if failed or not ran else 0)
PYTHON
