"""Sanitizers: tools that watch launches and find mistakes of kernels."""

from __future__ import annotations

import json
from collections import Counter
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple, Type, Union, overload

from .errors import Error, TrapError, UsageError

if TYPE_CHECKING:
    from . import _native

__all__ = ["Finding", "FindingsError", "OtherAccess", "Sanitizer", "TOOLS", "sanitize"]

#: Names of the tools.
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")

#: What a caller may give for tools: ``"all"``, ``"memcheck,racecheck"``, or several names.
Tools = Union[str, Sequence[str]]


@dataclass(frozen=True)
class OtherAccess:
    """The second access of a race."""

    #: Line in the PTX text, and the instruction there.
    line: Optional[int]
    instruction: str
    #: Such as ``weak write of 4 bytes``.
    access: str
    cta: Tuple[int, int, int]
    thread: Tuple[int, int, int]
    #: File and line of the source that the text was compiled from, where it says so.
    source: Optional[Tuple[str, int]] = None


@dataclass(frozen=True)
class Finding:
    """A mistake that a sanitizer found; equal ones at the same place are one, with a count.

    >>> import ptxvm
    >>> vm = ptxvm.Vm(tools="memcheck")
    >>> text = ".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { .reg .b64 %a; mov.u64 %a, 1; st.global.u8 [%a], 1; ret; }"
    >>> report = vm.load(text)["k"][1, 32]()
    >>> [found] = vm.findings
    >>> found.tool, found.kind, found.line, found.count
    ('memcheck', 'out-of-bounds', 4, 32)
    """

    #: ``memcheck``, ``racecheck``, ``initcheck`` or ``synccheck``.
    tool: str
    #: What is wrong: ``out-of-bounds``, ``race``, ``uninitialized-read``, ``divergent-barrier``, ...
    kind: str
    #: One sentence.
    message: str
    #: The kernel that was launched, and the function that was running.
    kernel: str
    function: str
    #: Name of the PTX text, the line in it (``None`` where no instruction is to blame), and the instruction.
    file: str
    line: Optional[int]
    instruction: str
    #: File and line of the source that the text was compiled from, where it says so.
    source: Optional[Tuple[str, int]]
    #: The first thread that it happened to, and to how many threads it happened.
    cta: Tuple[int, int, int]
    thread: Tuple[int, int, int]
    count: int
    #: The access, where there is one.
    space: Optional[str]
    address: Optional[int]
    bytes: Optional[int]
    #: Of races: ``write-write`` or ``read-write``, what would order the accesses, and the second access.
    hazard: Optional[str]
    missing: Optional[str]
    other: Optional[OtherAccess]
    #: The seed of the schedule that showed it.
    seed: int
    #: More about it, each with a label such as ``nearest``.
    notes: Mapping[str, str] = field(default_factory=dict, hash=False)
    #: The finding as people read it.
    rendered: str = field(default="", repr=False, compare=False)

    def __str__(self) -> str:
        return self.rendered or f"{self.tool}: {self.kind}: {self.message}"

    def _repr_html_(self) -> str:
        from .notebook import report_html

        return report_html(str(self))

    @classmethod
    def _of(cls, fields: Mapping[str, Any], rendered: str = "") -> "Finding":
        """Of the fields of a line of JSON that ``ptxvm sanitize --format json`` prints."""
        other = fields.get("other")
        return cls(
            tool=fields["tool"],
            kind=fields["kind"],
            message=fields["message"],
            kernel=fields["kernel"],
            function=fields["function"],
            file=fields["file"],
            line=fields["line"],
            instruction=fields["instruction"],
            source=_place(fields.get("source")),
            cta=_three(fields["cta"]),
            thread=_three(fields["thread"]),
            count=fields["count"],
            space=fields["space"],
            address=None if fields["address"] is None else int(fields["address"], 16),
            bytes=fields["bytes"],
            hazard=fields.get("hazard"),
            missing=fields.get("missing"),
            other=None
            if other is None
            else OtherAccess(
                line=other["line"],
                instruction=other["instruction"],
                access=other["access"],
                cta=_three(other["cta"]),
                thread=_three(other["thread"]),
                source=_place(other.get("source")),
            ),
            seed=fields["seed"],
            notes=dict(fields.get("notes") or {}),
            rendered=rendered,
        )

    def _key(self) -> Tuple[Any, ...]:
        """What makes two findings the same one."""
        other = self.other.line if self.other else None
        return (self.kind, self.kernel, self.file, self.line, other, self.message if self.line is None else None)


def _place(found: Optional[Mapping[str, Any]]) -> Optional[Tuple[str, int]]:
    return None if found is None else (found["file"], found["line"])


def _three(numbers: Sequence[int]) -> Tuple[int, int, int]:
    x, y, z = numbers
    return (x, y, z)


def merged(findings: Iterable[Finding]) -> Tuple[Finding, ...]:
    """Findings of several devices as one list: what was found before adds to its count."""
    found: Dict[Tuple[Any, ...], Finding] = {}
    for finding in findings:
        same = found.get(finding._key())
        found[finding._key()] = finding if same is None else replace(same, count=same.count + finding.count)
    return tuple(found.values())


def text_of(findings: Sequence[Finding]) -> str:
    """Findings as ``ptxvm sanitize`` prints them, with the summary."""
    return "".join(f"{finding}\n\n" for finding in findings) + f"ERROR SUMMARY: {len(findings)} errors"


def findings_of(native: "_native.Device") -> Tuple[Finding, ...]:
    """What the sanitizers of a device have found."""
    return tuple(Finding._of(json.loads(line), rendered) for line, rendered in native.findings())


def tool_list(tools: Optional[Tools]) -> Tuple[str, ...]:
    """The tools that a caller has named, in their order; nothing for ``None``."""
    if tools is None:
        return ()
    words = [tools] if isinstance(tools, str) else list(tools)
    if not all(isinstance(word, str) for word in words):
        raise UsageError(f"`tools` is a name or several; found {tools!r}")
    wanted: Set[str] = set()
    for name in (name.strip() for word in words for name in word.split(",")):
        if name == "all":
            wanted.update(TOOLS)
        elif name in TOOLS:
            wanted.add(name)
        else:
            raise UsageError(f"`{name}` is no tool; expected {', '.join(TOOLS)} or all")
    return tuple(name for name in TOOLS if name in wanted)


class FindingsError(Error):
    """Sanitizers found mistakes; :func:`ptxvm.sanitize` raises it at the end of its block.

    >>> import ptxvm
    >>> text = ".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { .reg .b64 %a; mov.u64 %a, 1; st.global.u8 [%a], 1; ret; }"
    >>> try:
    ...     with ptxvm.sanitize("memcheck"):
    ...         report = ptxvm.Vm().load(text)["k"][1, 1]()
    ... except ptxvm.FindingsError as error:
    ...     print(error.findings[0].kind, error.findings[0].line)
    out-of-bounds 4
    """

    #: What was found, in the order in which it was found first.
    findings: Tuple[Finding, ...]

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(tuple(findings))
        self.findings = tuple(findings)

    @property
    def rendered(self) -> str:
        """All findings as people read them."""
        return text_of(self.findings)

    def __str__(self) -> str:
        return self.rendered

    def _repr_html_(self) -> str:
        from .notebook import report_html

        return report_html(self.rendered)


class Sanitizer(Sequence[Finding]):
    """The block of :func:`ptxvm.sanitize`, and its findings: a sequence of :class:`Finding`.

    >>> import ptxvm
    >>> with ptxvm.sanitize("all") as found:
    ...     vm = ptxvm.Vm()
    >>> len(found), found.tools
    (0, ('memcheck', 'racecheck', 'initcheck', 'synccheck'))
    """

    def __init__(self, tools: Tuple[str, ...], max_findings: int, check: bool) -> None:
        #: The tools, by name.
        self.tools = tools
        self.max_findings = max_findings
        self._check = check
        self._devices: List["_native.Device"] = []
        self._done: Optional[Tuple[Finding, ...]] = None
        self._token: Optional["Token[Optional[Sanitizer]]"] = None

    def __enter__(self) -> "Sanitizer":
        if self._token is not None or self._done is not None:
            raise UsageError("a block of `sanitize` is entered once; call `ptxvm.sanitize` again")
        self._token = _active.set(self)
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self._token is not None:
            _active.reset(self._token)
        devices, self._devices = self._devices, []
        for device in devices:
            if error is None or isinstance(error, Exception):
                device.synchronize()
            device.find_leaks()
        self._done = self._collected(devices)
        full = any(device.findings_are_full() for device in devices)
        stopped = full and isinstance(error, TrapError) and error.kind == "cancelled"
        if self._check and self._done and (error is None or stopped):
            raise FindingsError(self._done) from error
        if self._done and error is not None and hasattr(error, "add_note"):
            error.add_note(text_of(self._done))

    def _collected(self, devices: Sequence["_native.Device"]) -> Tuple[Finding, ...]:
        return merged(finding for device in devices for finding in findings_of(device))

    def _made(self, native: "_native.Device") -> None:
        """A device was made in the block."""
        self._devices.append(native)

    @property
    def findings(self) -> Tuple[Finding, ...]:
        """The findings until now, or of the whole block."""
        return self._collected(self._devices) if self._done is None else self._done

    @property
    def counts(self) -> Dict[str, int]:
        """How many findings there are of each kind."""
        return dict(Counter(finding.kind for finding in self.findings))

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> Tuple[Finding, ...]: ...
    def __getitem__(self, index: Any) -> Any:
        return self.findings[index]

    def __len__(self) -> int:
        return len(self.findings)

    def __str__(self) -> str:
        return text_of(self.findings)

    def __repr__(self) -> str:
        return f"Sanitizer({', '.join(self.tools)}: {len(self)} findings)"

    def _repr_html_(self) -> str:
        from .notebook import report_html

        return report_html(str(self))


#: The block that is open here.
_active: "ContextVar[Optional[Sanitizer]]" = ContextVar("ptxvm_sanitizer", default=None)


def active() -> Optional[Sanitizer]:
    """The innermost block that is open."""
    return _active.get()


def sanitize(*tools: str, max_findings: int = 100, check: bool = True) -> Sanitizer:
    """A block in which sanitizers watch launches: ``with ptxvm.sanitize("racecheck") as found:``. Devices that the block makes are watched.

    A finding does not end the launch: the access is left out or the barrier is completed, as the finding says, and the kernel continues, so
    that one launch shows every mistake. Another ``seed`` is another
    order of warps and CTAs. A kernel of a device that was made before the block is refused there: ``kernel.on(ptxvm.Vm())`` is the same kernel on a
    new one.

    :param tools: ``memcheck``, ``racecheck``, ``initcheck``, ``synccheck``, or ``all``; several are watched together. By default all.
    :param max_findings: how many different findings are recorded; then launches are stopped.
    :param check: whether the end of the block raises :class:`FindingsError` if something was found; without it, only the value of the block has the findings.

    >>> import numpy as np, ptxvm
    >>> text = '''
    ... .version 6.4
    ... .target sm_70
    ... .address_size 64
    ... .visible .entry race(.param .u64 out)
    ... {
    ...     .reg .b32 %t;
    ...     .reg .b64 %p;
    ...     ld.param.u64 %p, [out];
    ...     mov.u32 %t, %tid.x;
    ...     st.global.u32 [%p], %t;
    ...     ret;
    ... }'''
    >>> with ptxvm.sanitize("racecheck", check=False) as found:
    ...     report = ptxvm.Vm().load(text)["race"][1, 64](np.zeros(1, np.uint32))
    >>> found[0].kind, found[0].hazard, found[0].line
    ('race', 'write-write', 11)
    """
    if isinstance(max_findings, bool) or not isinstance(max_findings, int) or max_findings < 1:
        raise UsageError(f"`max_findings` is a number from 1; found {max_findings!r}")
    return Sanitizer(tool_list(tools or "all"), max_findings, check)
