"""Runs a client's own tests: one process for several modules of unittest, a new one where it crashes, hangs or leaves the device in error.

    python suite.py RESULTS.jsonl JOBS FOLDER PACKAGE

FOLDER is where the tests are, in site-packages or from here, and PACKAGE what its modules are named after.

Each test is a line {"test", "outcome", "why", "seconds"} of RESULTS.jsonl; outcomes are passed, failed, skipped, crashed. A module whose tests are there
already is not run again, so an interrupted run goes on.
"""
import concurrent.futures
import faulthandler
import importlib
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

# A test that takes longer has hung.
LIMIT = 240
# How a test ends.
OUTCOMES = ("passed", "failed", "skipped", "crashed")
# Errors of a context that stay until it is destroyed: what comes after says nothing.
STICKY = ("ILLEGAL_ADDRESS", "LAUNCH_FAILED", "ILLEGAL_INSTRUCTION", "MISALIGNED_ADDRESS", "LAUNCH_TIMEOUT", "ASSERT")


class Lines(unittest.TestResult):
    """Writes a line for each test; stops where the device is left in error."""

    def __init__(self, out):
        super().__init__()
        self.out, self.sticky, self.said = out, False, set()

    def startTest(self, test):
        super().startTest(test)
        self.began = time.time()
        self.write(test.id(), "began", "")
        faulthandler.dump_traceback_later(LIMIT, exit=True)

    def stopTest(self, test):
        super().stopTest(test)
        faulthandler.cancel_dump_traceback_later()
        if test.id() not in self.said:
            self.say(test, "passed", "")

    def write(self, name, outcome, why):
        seconds = round(time.time() - getattr(self, "began", time.time()), 2)
        line = {"test": name, "outcome": outcome, "why": why, "seconds": seconds}
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()

    def say(self, test, outcome, why):
        self.said.add(test.id())
        self.write(test.id(), outcome, why)

    def bad(self, test, error):
        text = self._exc_info_to_string(error, test)
        self.say(test, "failed", text[-3000:])
        if any(word in text for word in STICKY):
            self.sticky = True
            self.stop()

    def addError(self, test, error):
        # pytest's way to skip, which some tests use.
        if error[0].__name__ == "Skipped":
            return self.say(test, "skipped", str(error[1]))
        self.bad(test, error)

    def addFailure(self, test, error):
        self.bad(test, error)

    def addSubTest(self, test, part, error):
        if error is not None:
            self.bad(test, error)

    def addSkip(self, test, why):
        self.say(test, "skipped", why)

    def addExpectedFailure(self, test, error):
        self.say(test, "passed", "fails as its authors expect")

    def addUnexpectedSuccess(self, test):
        self.say(test, "passed", "its authors expect it to fail")


def tests_of(suite):
    """The tests of a suite, one by one."""
    for part in suite:
        yield from tests_of(part) if isinstance(part, unittest.TestSuite) else (part,)


def work(results, modules):
    """Runs modules in this process until a test leaves the device in error. Tests that ran before are left out."""
    ran = {line["test"] for line in read(results) if line["outcome"] in OUTCOMES}
    with open(results, "a") as out:
        for name in modules:
            lines = Lines(out)
            lines.write(name, "module", "")
            try:
                module = importlib.import_module(name)
            except unittest.SkipTest as why:
                lines.write(name, "skipped", str(why))
            except Exception as why:
                lines.write(name, "failed", f"cannot be imported: {why!r}")
            else:
                loaded = tests_of(unittest.defaultTestLoader.loadTestsFromModule(module))
                unittest.TestSuite(test for test in loaded if test.id() not in ran).run(lines)
                if lines.sticky:
                    return
            lines.write(name, "done", "")


def read(path):
    if not os.path.exists(path):
        return []
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def batch(results, modules):
    """Runs modules in processes, one after another, until each is done."""
    while True:
        lines = read(results)
        done = {line["test"] for line in lines if line["outcome"] == "done"}
        left = [module for module in modules if module not in done]
        if not left:
            return
        subprocess.run([sys.executable, __file__, "--work", results, *left], stdout=sys.stderr, check=False)
        before = {line["test"] for line in lines if line["outcome"] in OUTCOMES}
        lines = read(results)[len(lines):]
        new = any(line["outcome"] in OUTCOMES and line["test"] not in before for line in lines)
        if lines and (lines[-1]["outcome"] == "done" or lines[-1]["outcome"] == "failed" and new):
            continue
        # It died. The test that had begun is why.
        last = lines[-1] if lines else {"test": left[0], "outcome": "module"}
        with open(results, "a") as out:
            for outcome in ("crashed", "done") if last["outcome"] == "module" else ("crashed",):
                out.write(json.dumps({"test": last["test"], "outcome": outcome, "why": "", "seconds": 0}) + "\n")


def find(folder, package):
    """The modules of tests below a folder."""
    places = [folder, *(os.path.join(path, folder) for path in sys.path)]
    root = pathlib.Path(next(place for place in places if os.path.isdir(place)))
    files = sorted(path.relative_to(root).with_suffix("") for path in root.rglob("test_*.py"))
    return [".".join((package, *path.parts)) for path in files if path.parts[0] != "benchmarks"]


def main():
    if sys.argv[1] == "--work":
        return work(sys.argv[2], sys.argv[3:])
    results, jobs = sys.argv[1], int(sys.argv[2])
    modules = find(sys.argv[3], sys.argv[4])
    parts = [(f"{results}.{job}", modules[job::jobs]) for job in range(jobs)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda part: batch(*part), parts))
    last = {}
    for path, _ in parts:
        for line in read(path):
            if line["outcome"] in OUTCOMES:
                last[line["test"]] = line
    with open(results, "w") as out:
        for line in sorted(last.values(), key=lambda line: line["test"]):
            out.write(json.dumps(line) + "\n")
    count = lambda *outcomes: sum(line["outcome"] in outcomes for line in last.values())
    passed, failed = count("passed"), count("failed", "crashed")
    share = 100 * passed / max(1, passed + failed)
    print(f"{passed} passed, {failed} failed, {count('skipped')} skipped: {share:.1f} % of those that ran")


if __name__ == "__main__":
    main()
