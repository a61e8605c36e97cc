#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Applies each deliberate fault of mutants.txt to a scratch copy, builds it, and shows that the suite goes red.

    tests/mutants/run.py [NAME ...]      all, or those named; a line each, then a sum
    tests/mutants/run.py --check         only whether each edit still fits the source

The copy and its build lie in build/mutants. A fault that survives means that a test is missing.
"""
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COPY = ROOT / "build" / "mutants" / "source"
BUILD = ROOT / "build" / "mutants" / "build"
TEST_SECONDS = 120  # a test that hangs is red


def read_mutants():
    mutants, current = [], None
    for line in (HERE / "mutants.txt").read_text().splitlines():
        if line.startswith("= "):
            current = {"name": line[2:], "old": [], "new": [], "why": ""}
            mutants.append(current)
        elif line.startswith("# ") and current:
            current["why"] = line[2:]
        elif line.startswith("file "):
            current["file"] = line[5:]
        elif line.startswith("tests "):
            current["tests"] = line[6:].split()
        elif line.startswith("<"):
            current["old"].append(line[1:])
        elif line.startswith(">"):
            current["new"].append(line[1:])
    return mutants


def mutated(mutant, root):
    """The file's text with the fault in it; None: the edit does not fit."""
    text = (root / mutant["file"]).read_text()
    old = "\n".join(mutant["old"])
    # One edit in one place, whole lines or the middle of one.
    if text.count(old) != 1:
        return None
    return text.replace(old, "\n".join(mutant["new"]))


def run(command, seconds=None):
    environment = dict(os.environ, TAMIZ_LONG="0", TAMIZ_MODEL_STEPS="4000")
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
                              cwd=BUILD, env=environment).returncode
    except subprocess.TimeoutExpired:
        return "hung"


def prepare(mutants):
    BUILD.mkdir(parents=True, exist_ok=True)
    COPY.mkdir(parents=True, exist_ok=True)
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout
    subprocess.run(["rsync", "-a", "--delete", "--files-from=-", ".", str(COPY)] if have("rsync") else
                   ["tar", "-cf", str(BUILD / "source.tar"), "-T", "-"], cwd=ROOT, input=files, text=True, check=True)
    if not have("rsync"):
        subprocess.run(["tar", "-xf", str(BUILD / "source.tar")], cwd=COPY, check=True)
    # Assertions stay in: they are part of what would notice.
    subprocess.run(["cmake", "-S", str(COPY), "-B", str(BUILD), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                    "-DCMAKE_C_FLAGS_DEBUG=-O1"], stdout=subprocess.DEVNULL, check=True)
    targets = sorted({"test_" + t for m in mutants for t in m["tests"]})
    subprocess.run(["cmake", "--build", str(BUILD), "--target", *targets], stdout=subprocess.DEVNULL, check=True)


def have(program):
    return any((pathlib.Path(d) / program).exists() for d in os.environ["PATH"].split(":"))


def program(test):
    return str(BUILD / "tests" / ("test_" + test))


def judge(mutant):
    """'red: TEST', or what went wrong."""
    text = mutated(mutant, COPY)
    if text is None:
        return "does not fit"
    place = COPY / mutant["file"]
    original = place.read_text()
    place.write_text(text)
    try:
        for test in mutant["tests"]:
            if run(["cmake", "--build", str(BUILD), "--target", "test_" + test]) != 0:
                return "does not build"
            code = run([program(test)], TEST_SECONDS)
            if code != 0:
                return "red: " + test + (" (hung)" if code == "hung" else "")
        return "SURVIVED"
    finally:
        place.write_text(original)


def main():
    wanted = [a for a in sys.argv[1:] if not a.startswith("-")]
    mutants = [m for m in read_mutants() if not wanted or m["name"] in wanted]
    if "--check" in sys.argv:
        bad = [m["name"] for m in mutants if mutated(m, ROOT) is None]
        print(len(mutants), "mutants,", len(bad), "do not fit", *bad)
        return len(bad) > 0
    prepare(mutants)
    for test in sorted({t for m in mutants for t in m["tests"]}):
        if run([program(test)], 3 * TEST_SECONDS) != 0:
            print(test, "is red without any fault: nothing can be said")
            return 1
    red = 0
    for m in mutants:
        began = time.monotonic()
        outcome = judge(m)
        red += outcome.startswith("red")
        print("| %-26s | %-28s | %-52s |" % (m["name"], outcome, m["why"]), flush=True)
        if "--times" in sys.argv:
            print("  %.1f s" % (time.monotonic() - began))
    print("%d of %d red" % (red, len(mutants)))
    return red != len(mutants)


sys.exit(main())
