"""``pytest --ptxvm``: runs a suite of CUDA tests on the CPU.

A process searches for a CUDA driver when it loads its libraries, so pytest restarts itself under ``ptxvm exec`` before it collects tests.
Workers of pytest-xdist are child processes of that process. Each test begins with a working context: the driver recovers after a trap, and an
unexpected trap is an error of the test that launched the kernel. With ``--ptxvm-tool``, a test fails if a sanitizer
finds something in it: the driver appends findings to the journal of ``ptxvm exec``, and the plugin reads the journal at the end of each test.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
from typing import Any, Dict, Generator, List, Optional, Tuple

import pytest

from .__main__ import program

#: Set in a pytest that runs under ``ptxvm exec``, so that it does not start itself again.
_STARTED = "PTXVM_PYTEST"

#: The file to which processes under ``ptxvm exec --tool`` append findings.
_JOURNAL = "PTXVM_FINDINGS"

#: What of the captured standard error is a report of ptxvm: a line that begins so, and the indented lines below.
_REPORT = re.compile(
    r"^(?:ptxvm: |trap: |(?:error|warning)\[P\d+\]|(?:memcheck|racecheck|initcheck|synccheck): ).*\n(?:(?: +|\d+ +\|).*\n)*",
    re.MULTILINE,
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("ptxvm", "CUDA on the CPU")
    group.addoption("--ptxvm", action="store_true", help="run CUDA tests on the CPU, with ptxvm's driver and runtime")
    group.addoption("--ptxvm-sm", metavar="XX", help="compute capability of the device, such as 80 [default: 80]")
    group.addoption("--ptxvm-tool", metavar="TOOL", help="fail tests in which sanitizers find something: memcheck, racecheck, initcheck, synccheck, several with commas between them, or all")
    group.addoption("--ptxvm-devices", metavar="N", type=int, help="how many devices there are [default: 1]")
    group.addoption("--ptxvm-engine", choices=["auto", "interp", "jit"], help="which engine executes [default: auto]")
    group.addoption("--ptxvm-timeout", metavar="SECONDS", type=float, help="stop a kernel that runs longer")
    group.addoption("--ptxvm-host-pointers", action="store_true", help="kernels may access all memory of the process")


def command(options: Any) -> List[str]:
    """``ptxvm exec`` with the options that were given."""
    words = [str(program()), "exec", "--recover"]
    for option in ("sm", "tool", "devices", "engine", "timeout"):
        value = getattr(options, f"ptxvm_{option}", None)
        if value is not None:
            words += [f"--{option}", str(value)]
    if getattr(options, "ptxvm_host_pointers", False):
        words.append("--host-pointers")
    if getattr(options, "ptxvm_tool", None) is not None:
        # Tests fail in which something is found; what is found when the process ends gives the same status.
        words += ["--error-exitcode", "1"]
    return [*words, "--"]


def this_pytest(arguments: List[str]) -> Optional[List[str]]:
    """The command that started this pytest; ``None`` where it is a function that another program has called."""
    original: Optional[List[str]] = getattr(sys, "orig_argv", None)
    if original is not None and original[-len(arguments) :] == arguments or not arguments:
        if original is not None and sys.argv[1:] == arguments:
            return [sys.executable, *original[1:]]
    if sys.argv[1:] != arguments:
        return None
    # Before Python 3.10.
    started = ["-m", "pytest"] if sys.argv[0].endswith("__main__.py") else [sys.argv[0]]
    return [sys.executable, *started, *arguments]


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, args: List[str]
) -> Generator[None, None, None]:
    """Starts pytest again under ``ptxvm exec``: before output is captured, and before any file of the suite is imported."""
    options = early_config.known_args_namespace
    if getattr(options, "ptxvm", False) and not os.environ.get(_STARTED):
        again = this_pytest([str(argument) for argument in early_config.invocation_params.args])
        if again is None:
            raise pytest.UsageError(
                "--ptxvm works where pytest is the program; a program that calls pytest.main runs under `ptxvm exec --recover --`"
            )
        os.environ[_STARTED] = "1"
        sys.stdout.flush()
        sys.stderr.flush()
        words = [*command(options), *again]
        try:
            os.execv(words[0], words)
        except OSError as error:
            raise pytest.UsageError(f"--ptxvm: {words[0]} cannot be started: {error}") from None
    yield


def pytest_report_header(config: pytest.Config) -> Optional[str]:
    """Says that the tests run on the CPU."""
    if not config.getoption("--ptxvm"):
        return None
    from . import __version__

    sm = config.getoption("--ptxvm-sm") or os.environ.get("PTXVM_SM", "80")
    return f"ptxvm: {__version__}, CUDA on the CPU, compute capability {sm}"


def _driver() -> Optional[ctypes.CDLL]:
    """The driver, where this process has loaded it."""
    try:
        return ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None


class _Journal:
    """What the sanitizers find in this process, test by test."""

    def __init__(self) -> None:
        self._at = 0
        self._rest = b""
        #: How often each finding had happened, by the process that the driver counts and its number there.
        self._counts: Dict[Tuple[str, int], int] = {}

    def news(self) -> List[str]:
        """The text of each finding that is new, or has happened again, since the last call."""
        path = os.environ.get(_JOURNAL)
        if not path:
            return []
        try:
            with open(path, "rb") as file:
                file.seek(self._at)
                lines = (self._rest + file.read()).split(b"\n")
                self._at = file.tell()
        except FileNotFoundError:
            # Nothing was found yet.
            return []
        # Another process may be in the middle of a line.
        self._rest = lines.pop()
        found: Dict[Tuple[str, int], Tuple[int, str]] = {}
        for line in lines:
            try:
                kind, process, number, _, count, _, _, _, text = json.loads(line)
            except ValueError:
                # A line of another kind.
                continue
            if kind == "finding" and process.split("-")[0] == str(os.getpid()):
                found[process, number] = (count, text)
        told = [text.rstrip() for place, (count, text) in found.items() if count > self._counts.get(place, 0)]
        self._counts.update({place: count for place, (count, _) in found.items()})
        return told


_journal = _Journal()
_FOUND = pytest.StashKey[List[str]]()


def _settle(item: pytest.Item, outcome: Any) -> None:
    """Waits for kernels that a test has launched and not waited for: their traps, and what sanitizers find in them, are its own and not those of
    the next test. A test that has failed already keeps its error."""
    driver = _driver()
    if driver is None:
        return
    status = driver.cuCtxSynchronize()
    found = _journal.news() if item.config.getoption("--ptxvm-tool") else []
    if found:
        item.stash.setdefault(_FOUND, []).extend(found)
    if outcome.excinfo is not None:
        return
    # 3 and 4: before and after the driver's time. 201: no context.
    if status not in (0, 3, 4, 201):
        name = ctypes.c_char_p()
        driver.cuGetErrorName(status, ctypes.byref(name))
        word = (name.value or str(status).encode()).decode()
        why = f"a kernel that this test launched, and did not wait for, ended with {word}"
    elif found:
        first = ": ".join(found[0].splitlines()[0].split(": ")[:2])
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        why = f"found by {first}{more} (see the ptxvm report)"
    else:
        return
    outcome.force_exception(pytest.fail.Exception(why, pytrace=False))


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Fails a test in which sanitizers found something."""
    outcome = yield
    if item.config.getoption("--ptxvm") and item.config.getoption("--ptxvm-tool"):
        _settle(item, outcome)


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, None]:
    """Waits for what a test, or a fixture at its end, has launched."""
    outcome = yield
    if item.config.getoption("--ptxvm"):
        _settle(item, outcome)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Gives the reports of a test that failed a section of their own."""
    outcome = yield
    report = outcome.get_result()
    if not item.config.getoption("--ptxvm") or not report.failed:
        return
    findings: List[str] = item.stash.setdefault(_FOUND, [])
    found: Dict[str, None] = dict.fromkeys(findings)
    # The driver prints a finding when it is found first; the journal has it with its count.
    heads = {text.splitlines()[0] for text in found}
    sections = []
    for title, text in report.sections:
        if title.startswith("Captured stderr"):
            reports = [match.group().rstrip() for match in _REPORT.finditer(text)]
            found.update(dict.fromkeys(text for text in reports if text.splitlines()[0] not in heads))
            text = _REPORT.sub("", text)
        if text.strip():
            sections.append((title, text))
    if found:
        report.sections[:] = [*sections, ("ptxvm report", "\n\n".join(found))]
