"""Sweeps: launches of one kernel in many cases, which an executor distributes over processes or machines."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import pickle
import threading
import time
from collections import Counter
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from multiprocessing import current_process, get_context
from queue import SimpleQueue
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from .arrays import DeviceArray
from .errors import Error, MachineError, RejectedError, TrapError, UsageError
from .kernels import Kernel
from .sanitizers import Finding, OtherAccess, Tools, active, text_of, tool_list
from .vm import Vm

__all__ = ["Case", "Result", "Sweep", "cases", "sweep"]

#: How often a case is given to a worker again that was lost with it.
_RETRIES = 3
#: How many cases are given to an executor ahead of its results.
_WINDOW = 256


@dataclass(frozen=True)
class Case:
    """A launch of a sweep: arguments, shape, tools and options.

    >>> import ptxvm
    >>> ptxvm.Case((1.5, 3), grid=4, block=64, seed=7).seed
    7
    """

    #: As for ``kernel[grid, block](*arguments)``.
    arguments: Tuple[Any, ...] = ()
    grid: Any = 1
    block: Any = 1
    shared: int = 0
    seed: int = 0
    #: Sanitizers that watch the launch, such as ``"racecheck"`` or ``"all"``.
    tools: Optional[Tools] = None
    #: Other options of :class:`ptxvm.Launcher`, by name.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Whatever the caller wants to find again in the result.
    label: Optional[str] = None


@dataclass(frozen=True)
class Result:
    """The outcome of a case."""

    #: Its place among the cases.
    index: int
    #: A digest of the kernel and the case.
    key: str
    #: ``ok``, ``wrong`` (the check said so), ``trap``, ``findings`` (of the tools), ``rejected``, ``error`` (of the caller), or ``lost`` (its workers
    #: were).
    status: str
    label: Optional[str] = None
    #: The report of what went wrong.
    error: Optional[str] = None
    #: The kind of a trap.
    kind: Optional[str] = None
    #: Seconds, instructions and what the kernel printed.
    elapsed: Optional[float] = None
    thread_instructions: Optional[int] = None
    output: str = ""
    #: The arrays among the arguments as the kernel left them; ``None`` in results that a file held, or where they were not asked for.
    arrays: Optional[Tuple[Any, ...]] = None
    #: Digests of these arrays.
    digests: Tuple[str, ...] = ()
    #: What the tools found.
    findings: Tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the kernel ended and the check agreed."""
        return self.status == "ok"


class Sweep(Sequence[Result]):
    """The results of a sweep, in the order of the cases, each exactly once.

    >>> import ptxvm
    >>> ptxvm.Sweep([ptxvm.Result(0, "a", "ok"), ptxvm.Result(1, "b", "trap", kind="trap")]).failures[0].index
    1
    """

    def __init__(self, results: Iterable[Result]) -> None:
        self._results = tuple(results)

    def __getitem__(self, index: Any) -> Any:
        return self._results[index]

    def __len__(self) -> int:
        return len(self._results)

    @property
    def failures(self) -> List[Result]:
        """Those that did not go well."""
        return [result for result in self._results if not result.ok]

    @property
    def counts(self) -> Dict[str, int]:
        """How many there are of each status."""
        return dict(Counter(result.status for result in self._results))

    def failures_first(self) -> List[Result]:
        """All results, those that did not go well before the others.

        >>> import ptxvm
        >>> done = ptxvm.Sweep([ptxvm.Result(0, "a", "ok"), ptxvm.Result(1, "b", "wrong")])
        >>> [result.index for result in done.failures_first()]
        [1, 0]
        """
        return sorted(self._results, key=lambda result: result.ok)

    def __repr__(self) -> str:
        lines = [f"Sweep of {len(self)} cases: " + (", ".join(f"{n} {s}" for s, n in sorted(self.counts.items())) or "none")]
        for result in self.failures[:20]:
            first = (result.error or "").strip().splitlines()[:1]
            lines.append(f"  case {result.index} {result.label or ''}: {result.status}: {' '.join(first)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from .notebook import table_html

        rows = {f"case {r.index} {r.label or ''}": r.kind or r.status for r in self.failures_first()[:50]}
        return table_html("sweep", {**self.counts, **rows})


def cases(
    arguments: Iterable[Sequence[Any]] = ((),),
    *,
    grid: Iterable[Any] = (1,),
    block: Iterable[Any] = (1,),
    shared: Iterable[int] = (0,),
    seed: Iterable[int] = (0,),
    tools: Iterable[Optional[Tools]] = (None,),
    options: Iterable[Mapping[str, Any]] = ({},),
) -> List[Case]:
    """Every combination of these lists as a :class:`Case`: arguments, shapes, seeds, tools. The first list changes slowest.

    >>> import ptxvm
    >>> found = ptxvm.cases([(1,), (2,)], block=[32, (8, 8)], seed=range(3), tools=[None, "racecheck"])
    >>> len(found), found[0].block, found[-1].block, found[-1].tools
    (24, 32, (8, 8), 'racecheck')
    """
    product = itertools.product(arguments, grid, block, shared, seed, tools, options)
    return [Case(tuple(a), g, b, sh, s, t, dict(o)) for a, g, b, sh, s, t, o in product]


def sweep(
    kernel: Kernel,
    cases: Iterable[Union[Case, Mapping[str, Any], Sequence[Any]]],
    executor: Any = None,
    *,
    check: Optional[Callable[[Case, Tuple[Any, ...]], Any]] = None,
    results: Union[None, str, "os.PathLike[str]"] = None,
    keep_arrays: bool = True,
    progress: Union[None, bool, Callable[[int, int], None]] = None,
) -> Sweep:
    """Launches a kernel in many cases and gives a result for each.

    :param cases: each a :class:`Case`, a mapping with its fields, or the arguments alone; :func:`ptxvm.cases` makes all combinations of lists.
    :param executor: any executor of ``concurrent.futures`` (mpi4py's pool is one), a client of Dask, or a pool with ``apply_async`` (of
        ``multiprocessing`` or Ray); by default processes on all cores of this machine. Cases of workers that are lost are given to others.
    :param check: called in the worker with the case and the arrays after the launch; a result is ``wrong`` where it returns false or an
        ``AssertionError`` is raised. It must be a function that can be pickled.
    :param results: a file in which each result becomes a line of JSON as soon as it is there. Cases that are ``ok`` there are not launched
        again; the others are launched first.
    :param keep_arrays: whether results hold the arrays, or their digests alone.
    :param progress: ``True`` for a bar of tqdm, or a function that gets the number of results and of cases.

    >>> import ptxvm
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> text = ".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k(.param .u32 n) { ret; }"
    >>> kernel = ptxvm.Vm().load(text)["k"]
    >>> with ThreadPoolExecutor(2) as pool:
    ...     ptxvm.sweep(kernel, [(n,) for n in range(10)], pool).counts
    {'ok': 10}
    """
    if active() is not None:
        raise UsageError("a sweep runs in processes that a block of `ptxvm.sanitize` does not watch; give its cases `tools`")
    listed = [_case(case) for case in cases]
    for index, case in enumerate(listed):
        for argument in case.arguments:
            if isinstance(argument, DeviceArray) or hasattr(argument, "_object"):
                raise UsageError(
                    f"case {index} has an argument in the memory of a device, which other processes do not have: {argument!r}; expected arrays of"
                    " numpy and numbers"
                )
    keys = _keys(kernel, listed)
    found, failed = _known(results, keys)
    order = [i for i in range(len(listed)) if keys[i] in failed]
    order += [i for i in range(len(listed)) if keys[i] not in found and keys[i] not in failed]
    done: Dict[int, Result] = {}
    for index, key in enumerate(keys):
        if key in found:
            done[index] = found[key]
    job = _Job(pickle.dumps(kernel), check, keep_arrays)
    tell = _teller(progress, len(listed))
    file = open(results, "a", encoding="utf-8") if results is not None else None
    try:
        for index, outcome in _run(job, [(i, listed[i]) for i in order], executor):
            result = Result(index=index, key=keys[index], label=listed[index].label, **outcome)
            if index in done:
                continue
            done[index] = result
            if file is not None:
                file.write(_line(result) + "\n")
                file.flush()
            tell(len(done))
    finally:
        if file is not None:
            file.close()
        tell(None)
    return Sweep(done[index] for index in range(len(listed)))


@dataclass(frozen=True)
class _Job:
    """What every worker gets."""

    kernel: bytes
    check: Optional[Callable[[Case, Tuple[Any, ...]], Any]]
    keep_arrays: bool


#: Kernels of this process by what they were made of: a worker loads each once.
_loaded: Dict[bytes, Kernel] = {}
_loading = threading.Lock()


def _kernel(job: _Job, case: Case) -> Kernel:
    """The kernel of a job in this process; where tools watch, on a device of its own, which has found nothing yet."""
    with _loading:
        kernel = _loaded.get(job.kernel)
        if kernel is None:
            if len(_loaded) >= 16:
                _loaded.clear()
            kernel = _loaded[job.kernel] = pickle.loads(job.kernel)
    return kernel.on(Vm(tools=case.tools)) if tool_list(case.tools) else kernel


def _launch(job: _Job, case: Case) -> Dict[str, Any]:
    """Launches one case, in a worker; never raises what the case does wrong."""
    findings: Tuple[Finding, ...] = ()
    try:
        kernel = _kernel(job, case)
        arguments = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in case.arguments)
        launcher = kernel[case.grid, case.block, None, case.shared].with_options(
            progress=False, **{"seed": case.seed, **case.options}
        )
        try:
            report = launcher(*arguments)
        finally:
            if kernel.module.vm.tools:
                kernel.module.vm.find_leaks()
                findings = kernel.module.vm.findings
    except TrapError as error:
        fields = {"error": str(error), "kind": error.kind, "output": error.report.output, "findings": findings}
        if findings and error.kind == "cancelled":
            # The tools had found as much as they record, and stopped the launch.
            return {**fields, "status": "findings", "error": text_of(findings), "kind": findings[0].kind}
        return {**fields, "status": "trap"}
    except RejectedError as error:
        return {"status": "rejected", "error": str(error)}
    except (MachineError, MemoryError) as error:
        return {"status": "lost", "error": str(error)}
    except (Error, TypeError, ValueError) as error:
        return {"status": "error", "error": str(error)}
    arrays = tuple(a for a in arguments if isinstance(a, np.ndarray))
    outcome: Dict[str, Any] = {
        "status": "ok",
        "elapsed": report.elapsed,
        "thread_instructions": report.thread_instructions,
        "output": report.output,
        "arrays": arrays if job.keep_arrays else None,
        "digests": tuple(hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()[:16] for a in arrays),
        "findings": findings,
    }
    if findings:
        return {**outcome, "status": "findings", "error": text_of(findings), "kind": findings[0].kind}
    if job.check is not None:
        try:
            right = job.check(case, arrays)
        except AssertionError as error:
            return {**outcome, "status": "wrong", "error": str(error)}
        except Exception as error:  # the caller's function may raise anything
            return {**outcome, "status": "error", "error": f"the check raised {type(error).__name__}: {error}"}
        if right is not None and not right:
            return {**outcome, "status": "wrong", "error": "the check returned false"}
    return outcome


def _run(job: _Job, todo: Sequence[Tuple[int, Case]], executor: Any) -> Iterator[Tuple[int, Dict[str, Any]]]:
    """Gives each case to the executor, and again where its worker was lost; yields the outcomes as they come, one for each case."""
    if executor is None:
        make: Callable[[], Any] = lambda: ProcessPoolExecutor(mp_context=get_context("spawn"))
        pool, own = _started(make()), True
    else:
        make, pool, own = (lambda: executor), _adapted(executor), False
    outcomes: "SimpleQueue[Tuple[int, Any]]" = SimpleQueue()
    waiting = [index for index, _ in reversed(todo)]
    # Cases of a pool that broke twice run alone, so that the one that breaks it takes no others along.
    suspects: List[int] = []
    cases = dict(todo)
    tries: Counter[int] = Counter()
    running: Dict[int, Any] = {}

    def submit(index: int) -> None:
        future: Any = pool.submit(_launch, job, cases[index])
        running[index] = future
        future.add_done_callback(lambda done, index=index: outcomes.put((index, done)))

    def again(index: int) -> None:
        (waiting if not own or tries[index] < 2 else suspects).append(index)

    left = len(todo)
    try:
        while left:
            while len(running) < _WINDOW and (waiting or (suspects and not running)):
                index = (waiting or suspects).pop()
                try:
                    submit(index)
                except BrokenProcessPool:
                    # Its other cases are about to end so, too.
                    again(index)
                    if own and not running:
                        pool = make()
                    else:
                        break
                if tries[index] >= 2 and own:
                    break
            if not running:
                # An executor that takes nothing any more.
                for index in [*waiting, *suspects]:
                    yield index, {"status": "lost", "error": "the executor is broken and takes no more cases"}
                return
            index, future = outcomes.get()
            if index not in running or running[index] is not future:
                continue
            del running[index]
            try:
                outcome = future.result()
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # of whatever library the executor is
                tries[index] += 1
                if own and isinstance(error, BrokenProcessPool):
                    # All cases of the pool end so, and one of them has broken it.
                    for other in list(running):
                        del running[other]
                        tries[other] += 1
                        again(other)
                    pool.shutdown(wait=False)
                    pool = make()
                if tries[index] <= _RETRIES and _is_loss(error):
                    again(index)
                    continue
                outcome = {"status": "lost", "error": f"{type(error).__name__}: {error}"}
            left -= 1
            yield index, outcome
    finally:
        for future in running.values():
            future.cancel()
        if own:
            pool.shutdown(wait=False)


#: What a script must do whose worker processes import it.
_GUARD = "a script calls `ptxvm.sweep` below `if __name__ == \"__main__\":`, because each worker process imports it, or passes an executor"


def _nothing() -> None:
    """The first task of a pool."""


def _started(pool: ProcessPoolExecutor) -> ProcessPoolExecutor:
    """A pool of processes that have been seen to start: otherwise every case would be lost, one after another."""
    if getattr(current_process(), "_inheriting", False):
        raise UsageError(_GUARD)
    try:
        pool.submit(_nothing).result()
    except (BrokenProcessPool, RuntimeError):
        raise UsageError(f"the worker processes do not start; {_GUARD}") from None
    return pool


def _is_loss(error: BaseException) -> bool:
    """Whether the worker is at fault, and another may do better: not a case that cannot be sent there."""
    return not isinstance(error, (pickle.PicklingError, AttributeError, TypeError, ImportError, CancelledError))


class _Pool:
    """A pool with ``apply_async`` as an executor."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        future: "Future[Any]" = Future()
        self._pool.apply_async(function, arguments, callback=future.set_result, error_callback=future.set_exception)
        return future


def _adapted(executor: Any) -> Any:
    if isinstance(executor, Executor):
        return executor
    if hasattr(executor, "get_executor"):
        # A client of Dask: equal cases are to run as often as they stand there.
        return executor.get_executor(pure=False)
    if hasattr(executor, "apply_async"):
        return _Pool(executor)
    if hasattr(executor, "submit"):
        return executor
    raise UsageError(
        f"expected an executor of concurrent.futures, a client of Dask, or a pool with `apply_async`; found {type(executor).__name__}"
    )


def _case(given: Any) -> Case:
    if isinstance(given, Case):
        return given
    if isinstance(given, Mapping):
        known = set(Case.__dataclass_fields__)
        for name in given:
            if name not in known:
                raise UsageError(f"a case has no field `{name}`; it has {', '.join(sorted(known))}")
        return Case(**{**given, "arguments": tuple(given.get("arguments", ()))})
    if isinstance(given, (tuple, list)):
        return Case(tuple(given))
    raise UsageError(f"a case is a `Case`, a mapping with its fields, or a tuple of arguments; found {type(given).__name__}")


def _keys(kernel: Kernel, cases: Sequence[Case]) -> List[str]:
    """A digest for each case; equal cases are told apart by how many stand before."""
    base = hashlib.sha256(repr((kernel.module._texts, kernel.module._options, kernel.name)).encode())
    seen: Counter[str] = Counter()
    keys = []
    for case in cases:
        digest = base.copy()
        for argument in case.arguments:
            if isinstance(argument, np.ndarray):
                digest.update(f"{argument.dtype.str} {argument.shape} ".encode() + np.ascontiguousarray(argument).tobytes())
            else:
                digest.update(f"{type(argument).__name__} {argument!r} ".encode())
        options = sorted(case.options.items())
        digest.update(repr((case.grid, case.block, case.shared, case.seed, tool_list(case.tools), options, case.label)).encode())
        key = digest.hexdigest()[:32]
        seen[key] += 1
        keys.append(key if seen[key] == 1 else f"{key}-{seen[key]}")
    return keys


def _line(result: Result) -> str:
    fields = asdict(Result(**{**result.__dict__, "arrays": None}))
    return json.dumps({"time": round(time.time(), 3), **fields})


def _known(path: Union[None, str, "os.PathLike[str]"], keys: Sequence[str]) -> Tuple[Dict[str, Result], Dict[str, Result]]:
    """The results that a file holds of these cases: those that went well, and the others. A line that was cut off is left out."""
    places = {key: index for index, key in enumerate(keys)}
    found: Dict[str, Result] = {}
    if path is not None and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if text and not text.endswith("\n"):
            # What follows begins on a line of its own.
            with open(path, "a", encoding="utf-8") as file:
                file.write("\n")
        for line in text.splitlines():
            try:
                fields = json.loads(line)
                fields.pop("time", None)
                key = fields["key"]
                if key in places:
                    findings = tuple(_finding(finding) for finding in fields.get("findings", ()))
                    fields.update(index=places[key], digests=tuple(fields["digests"]), findings=findings)
                    found[key] = Result(**fields)
            except (ValueError, TypeError, KeyError):
                continue
    failed = {key: result for key, result in found.items() if not result.ok}
    return {key: result for key, result in found.items() if result.ok}, failed


def _finding(fields: Dict[str, Any]) -> Finding:
    """A finding of its fields in a file of results, where tuples are lists."""
    other = fields["other"]
    return Finding(**{**_tupled(fields), "other": None if other is None else OtherAccess(**_tupled(other))})


def _tupled(fields: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def _teller(progress: Any, total: int) -> Callable[[Optional[int]], None]:
    """A function that is told the number of results, and ``None`` at the end."""
    if callable(progress):
        return lambda count: None if count is None else progress(count, total)
    if not progress:
        return lambda count: None
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return lambda count: None
    bar = tqdm(total=total, unit="case")
    return lambda count: bar.close() if count is None else bar.update(count - bar.n)
