"""The report of a launch: statistics, and the output of the kernel."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, List, Mapping, Optional, Tuple

__all__ = ["Report"]


@dataclass(frozen=True)
class Report:
    """The report of a launch: times, counts, and what the kernel printed.

    >>> import ptxvm
    >>> module = ptxvm.Vm().load(".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }")
    >>> report = module["k"][4, 64]()
    >>> report.ctas, report.warp_instructions, report.thread_instructions
    (4, 8, 256)
    """

    #: What the kernel printed (``printf``).
    output: str
    #: Bytes that it printed beyond the limit, which are lost.
    dropped: int
    #: CTAs that finished.
    ctas: int
    #: Seconds from the start of the first CTA to the end of the last.
    elapsed: float
    #: Threads of the operating system that took part.
    threads: int
    #: Instructions that warps executed, and the same counted for each lane that was active.
    warp_instructions: int
    thread_instructions: int
    #: How often warps triggered each of the events 0 to 15 (``pmevent``).
    events: List[int]
    #: Whether native code took part.
    native: bool
    #: Where the native code came from: ``compiled``, ``background``, ``kernel``, ``memory`` or ``disk``.
    code_source: Optional[str]
    #: Seconds that making or finding the code took.
    compile_time: float
    #: Why the kernel was not compiled, where it was asked for or would have paid.
    why_not_native: Optional[str]
    #: Warp instructions in native code, and how many of them the interpreter's functions executed.
    native_instructions: int
    fallback_instructions: int
    #: Instructions of the kernel that have no native code, and how often they stand in it.
    fallbacks: List[Tuple[str, int]]
    #: Where and why native code was left to the interpreter, and how often.
    side_exits: List[Tuple[str, int]]

    @classmethod
    def _of(cls, values: Mapping[str, Any]) -> "Report":
        return cls(**{field.name: values[field.name] for field in fields(cls)})

    @property
    def stats(self) -> Mapping[str, Any]:
        """The numbers by name, without what the kernel printed.

        >>> import ptxvm
        >>> module = ptxvm.Vm().load(".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }")
        >>> module["k"][1, 1]().stats["CTAs"]
        1
        """
        rate = self.thread_instructions / self.elapsed / 1e6 if self.elapsed > 0 else 0.0
        numbers = {
            "engine": "native code" if self.native else "interpreter",
            "time": f"{self.elapsed * 1e3:.3f} ms",
            "CTAs": self.ctas,
            "threads": self.threads,
            "warp instructions": self.warp_instructions,
            "thread instructions": self.thread_instructions,
            "million thread instructions per second": round(rate),
        }
        if self.native:
            numbers["compile time"] = f"{self.compile_time * 1e3:.1f} ms ({self.code_source})"
            numbers["by the interpreter's functions"] = self.fallback_instructions
        if self.why_not_native:
            numbers["not compiled"] = self.why_not_native
        return numbers

    def _repr_html_(self) -> str:
        from .notebook import table_html

        return table_html("launch", self.stats, self.output)
