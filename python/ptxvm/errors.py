"""The exceptions of the package. An error is in the PTX text, in the running kernel, in the call, or in the machine, and each has its class."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence, Tuple

from .report import Report

__all__ = ["ArgumentError", "Diagnostic", "Error", "MachineError", "RejectedError", "TrapError", "UsageError"]


@dataclass(frozen=True)
class Diagnostic:
    """A mistake in a PTX text, or a warning.

    >>> import ptxvm
    >>> [found] = ptxvm.check(".version 6.4\\n.target sm_70\\n.visible .entry k() { mov.u32 %r1, 0; ret; }")
    >>> found.severity, found.line
    ('error', 3)
    """

    #: Stable code, such as ``P0202``; :func:`ptxvm.explain` has its page.
    code: str
    #: ``error`` or ``warning``.
    severity: str
    #: What is wrong.
    message: str
    #: Name of the text.
    file: Optional[str] = None
    #: Line from 1.
    line: Optional[int] = None
    #: Column from 1.
    column: Optional[int] = None
    end_line: Optional[int] = None
    end_column: Optional[int] = None
    #: What would be right.
    help: Optional[str] = None
    #: Section of the PTX manual.
    section: Optional[str] = None
    #: What stands under the underlined words.
    label: str = ""
    #: The diagnostic as people read it.
    rendered: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.rendered

    @classmethod
    def _of(cls, fields: Mapping[str, Any]) -> "Diagnostic":
        place: Mapping[str, Any] = json.loads(fields["json"]) if fields["json"] else {}
        return cls(
            code=fields["code"],
            severity=fields["severity"],
            message=fields["message"],
            file=place.get("file"),
            line=place.get("line"),
            column=place.get("column"),
            end_line=place.get("end_line"),
            end_column=place.get("end_column"),
            help=fields["help"],
            section=fields["section"],
            label=fields["label"],
            rendered=fields["rendered"],
        )


class Error(Exception):
    """Any error of ptxvm."""


class UsageError(Error, ValueError):
    """The caller is at fault: an unknown kernel or option, or a launch that does not fit."""


class ArgumentError(UsageError, TypeError):
    """An argument of a kernel that does not fit its parameter."""


class MachineError(Error, RuntimeError):
    """The host lacks a resource: memory, or threads."""


class RejectedError(Error):
    """A PTX text is wrong, or uses what ptxvm does not implement.

    >>> import ptxvm
    >>> try:
    ...     ptxvm.Vm().load(".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { frob; }")
    ... except ptxvm.RejectedError as error:
    ...     print(error.diagnostics[0].line)
    4
    """

    #: Every diagnostic, in the order of the text; warnings too.
    diagnostics: Tuple[Diagnostic, ...]

    def __init__(self, diagnostics: Sequence[Any]) -> None:
        found = tuple(d if isinstance(d, Diagnostic) else Diagnostic._of(d) for d in diagnostics)
        super().__init__(found)
        self.diagnostics = found

    @property
    def rendered(self) -> str:
        """All diagnostics as people read them."""
        return "\n".join(d.rendered.rstrip("\n") for d in self.diagnostics)

    def __str__(self) -> str:
        return self.rendered

    def _repr_html_(self) -> str:
        from .notebook import report_html

        return report_html(self.rendered)


class TrapError(Error):
    """A kernel made a mistake, such as an access out of bounds, or was stopped.

    >>> import ptxvm
    >>> module = ptxvm.Vm().load(".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { trap; }")
    >>> try:
    ...     module["k"][1, 32]()
    ... except ptxvm.TrapError as error:
    ...     print(error.kind, error.kernel, error.line, error.thread)
    trap k 4 (0, 0, 0)
    """

    #: A stable word: ``illegal_address``, ``misaligned``, ``read_only``, ``trap``, ``assert``, ``deadlock``, ``step_limit``, ``time_limit``, ...
    kind: str
    #: The kernel that was launched, and the function that was running.
    kernel: str
    function: str
    #: Name of the PTX text, and the line in it (``None`` where no instruction is to blame).
    file: str
    line: Optional[int]
    instruction: str
    #: File and line of the source that the text was compiled from, where it says so.
    source: Optional[Tuple[str, int]]
    cta: Tuple[int, int, int]
    thread: Tuple[int, int, int]
    warp: int
    lane: int
    #: The access, for memory faults.
    address: Optional[int]
    bytes: Optional[int]
    space: Optional[str]
    write: Optional[bool]
    #: Prose about the nearest allocation, for memory faults.
    nearest: Optional[str]
    #: What the launch did until then.
    report: Report

    def __init__(self, rendered: str, fields: Mapping[str, Any], report: Any) -> None:
        done = report if isinstance(report, Report) else Report._of(report)
        super().__init__(rendered, fields, done)
        self.rendered = rendered
        self.report = done
        for name, value in fields.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return self.rendered.rstrip("\n")

    def _repr_html_(self) -> str:
        from .notebook import report_html

        return report_html(self.rendered)
