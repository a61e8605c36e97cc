#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Applies each deliberate fault of mutants.txt to a scratch copy, builds it, and shows that the suite goes red, and that the program
that noticed is green without it.

    tests/mutants/run.py [NAME ...]      all, or those named (NAME may be a pattern: "log-*"); a line each, then a sum
    tests/mutants/run.py --check         only whether each edit still fits the source
    tests/mutants/run.py --list          what is there, and what came of it when it was last run
    tests/mutants/run.py --resume        leaves out what was red already: a run that was ended goes on
    tests/mutants/run.py --table         the results as docs/testing.md has them

The copy and its build lie in build/mutants, and so do the results (results.txt: name, commit, outcome), a line as soon as it is
known. A fault that survives means that a test is missing.
"""
import fnmatch
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COPY = ROOT / "build" / "mutants" / "source"
BUILD = ROOT / "build" / "mutants" / "build"
RESULTS = ROOT / "build" / "mutants" / "results.txt"
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
    targets = sorted({target(t) for m in mutants for t in m["tests"]})
    subprocess.run(["cmake", "--build", str(BUILD), "--target", *targets], stdout=subprocess.DEVNULL, check=True)


def have(program):
    return any((pathlib.Path(d) / program).exists() for d in os.environ["PATH"].split(":"))


def target(test):
    """"FLOOR_NAME" is a program, "FLOOR_NAME:PART" a part of one (CTEST in its source)."""
    return "test_" + test.split(":")[0]


def command(test):
    return [str(BUILD / "tests" / target(test)), *test.split(":")[1:]]


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
            if run(["cmake", "--build", str(BUILD), "--target", target(test)]) != 0:
                return "does not build"
            code = run(command(test), TEST_SECONDS)
            if code != 0:
                return "red: " + test + (" (hung)" if code == "hung" else "")
        return "SURVIVED"
    finally:
        place.write_text(original)


def read_results():
    """{name: (commit, outcome)}, of each the last."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    return {name: (commit, outcome) for name, commit, outcome in (line.split("\t") for line in lines)}


def write_result(name, commit, outcome):
    with RESULTS.open("a") as out:
        out.write("%s\t%s\t%s\n" % (name, commit, outcome))


def commit_here():
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True,
                          text=True).stdout.strip()


def show_list(mutants):
    results = read_results()
    for m in mutants:
        commit, outcome = results.get(m["name"], ("", "not run"))
        print("%-34s %-9s %-30s %s" % (m["name"], commit, outcome, m["why"]))
    print("%d of %d red" % (sum(results.get(m["name"], ("", ""))[1].startswith("red") for m in mutants), len(mutants)))


def show_table(mutants):
    results = read_results()
    for m in mutants:
        outcome = results.get(m["name"], ("", "not run"))[1]
        print("| %s | %s | %s |" % (m["name"], m["why"], outcome.removeprefix("red: ")))


def is_green(test, known):
    """Whether the program is green with no fault in the source; run once, when it is first needed."""
    if test not in known:
        built = run(["cmake", "--build", str(BUILD), "--target", target(test)]) == 0
        known[test] = built and run(command(test), 3 * TEST_SECONDS) == 0
    return known[test]


def main():
    if {"-h", "--help"} & set(sys.argv):
        print(__doc__)
        return False
    wanted = [a for a in sys.argv[1:] if not a.startswith("-")]
    mutants = [m for m in read_mutants() if not wanted or any(fnmatch.fnmatch(m["name"], w) for w in wanted)]
    if "--check" in sys.argv:
        bad = [m["name"] for m in mutants if mutated(m, ROOT) is None]
        print(len(mutants), "mutants,", len(bad), "do not fit", *bad)
        return len(bad) > 0
    if "--list" in sys.argv or "--table" in sys.argv:
        (show_list if "--list" in sys.argv else show_table)(mutants)
        return False
    done = {n for n, (_, o) in read_results().items() if o.startswith("red")} if "--resume" in sys.argv else set()
    left = [m for m in mutants if m["name"] not in done]
    if left:
        prepare(left)
    commit, red, known = commit_here(), len(mutants) - len(left), {}
    for m in left:
        began = time.monotonic()
        outcome = judge(m)
        if outcome.startswith("red") and not is_green(outcome.split()[1], known):
            outcome = "%s is red without it, too" % outcome.split()[1]
        red += outcome.startswith("red")
        write_result(m["name"], commit, outcome)
        print("| %-26s | %-28s | %-52s |" % (m["name"], outcome, m["why"]), flush=True)
        if "--times" in sys.argv:
            print("  %.1f s" % (time.monotonic() - began))
    print("%d of %d red" % (red, len(mutants)))
    return red != len(mutants)


sys.exit(main())
