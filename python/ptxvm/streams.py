"""Streams, events, and pending launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Tuple

from . import _native
from .errors import Error, UsageError
from .report import Report

if TYPE_CHECKING:
    from .kernels import Packed

__all__ = ["Event", "Pending", "Stream"]


class Event:
    """A place in a stream; :meth:`Stream.record` makes it.

    >>> import ptxvm
    >>> event = ptxvm.Vm().stream().record()
    >>> event.wait(); event.is_done
    True
    """

    def __init__(self, native: _native.Mark) -> None:
        self._native = native

    @property
    def is_done(self) -> bool:
        """Whether everything before it is done."""
        return self._native.is_done()

    def wait(self) -> None:
        """Waits until everything before it is done.

        >>> import ptxvm
        >>> ptxvm.Vm().stream().record().wait()
        """
        self._native.wait()

    def seconds_until(self, later: "Event") -> float:
        """Seconds from this event to another; both must be done.

        >>> import ptxvm
        >>> stream = ptxvm.Vm().stream()
        >>> start, end = stream.record(), stream.record()
        >>> stream.synchronize(); start.seconds_until(end) >= 0
        True
        """
        seconds = self._native.seconds_to(later._native)
        if seconds is None:
            raise UsageError("an event has not been reached yet; `Event.wait` waits for it")
        return seconds


class Pending:
    """A launch in a stream.

    >>> import ptxvm
    >>> vm = ptxvm.Vm()
    >>> text = ".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }"
    >>> pending = vm.load(text)["k"][2, 32, vm.stream()]()
    >>> pending.wait().ctas
    2
    """

    def __init__(self, native: _native.Pending, packed: "Packed") -> None:
        self._native = native
        self._packed: Optional["Packed"] = packed
        self._outcome: Any = None

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._native.is_done()

    @property
    def progress(self) -> Tuple[int, int]:
        """How many CTAs have finished, and how many there are; equal numbers once it was waited for."""
        return self._native.progress() or (1, 1)

    def cancel(self) -> None:
        """Stops it soon, also if it has not begun; :meth:`wait` then raises a :class:`ptxvm.TrapError`.

        >>> import ptxvm
        >>> vm = ptxvm.Vm()
        >>> text = ".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { again: bra again; }"
        >>> pending = vm.load(text)["k"][1, 1, vm.stream()]()
        >>> pending.cancel()
        >>> try:
        ...     pending.wait()
        ... except ptxvm.TrapError as error:
        ...     print(error.kind)
        cancelled
        """
        self._native.cancel()

    def wait(self) -> Report:
        """Waits for its end, and copies the arrays of numpy that it was given back. Gives the report, also a second time.

        >>> import ptxvm
        >>> vm = ptxvm.Vm()
        >>> text = ".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }"
        >>> vm.load(text)["k"][1, 32, vm.stream()]().wait().thread_instructions
        32
        """
        if self._outcome is None:
            try:
                self._outcome = Report._of(self._native.wait())
            except Error as error:
                self._outcome = error
            else:
                if self._packed is not None:
                    self._packed.copy_back()
            self._packed = None
        if isinstance(self._outcome, Error):
            raise self._outcome
        report: Report = self._outcome
        return report


class Stream:
    """A queue of launches: they run one after another, and concurrently with those of other streams; :meth:`ptxvm.Vm.stream` makes it."""

    def __init__(self, native: _native.Stream) -> None:
        self._native = native
        self._launches: List[Pending] = []

    def _submitted(self, pending: Pending) -> Pending:
        # Those that failed, or that have arrays to copy back, wait for `synchronize`.
        self._launches = [p for p in self._launches if p._outcome is None]
        self._launches.append(pending)
        return pending

    @property
    def is_idle(self) -> bool:
        """Whether everything is done that was submitted."""
        return self._native.is_idle()

    def record(self) -> Event:
        """The place after all that was submitted.

        >>> import ptxvm
        >>> stream = ptxvm.Vm().stream()
        >>> event = stream.record()
        >>> stream.synchronize(); event.is_done
        True
        """
        return Event(self._native.record())

    def wait(self, event: Event) -> None:
        """Later launches of this stream wait for an event, of this or another stream.

        >>> import ptxvm
        >>> vm = ptxvm.Vm()
        >>> first, second = vm.stream(), vm.stream()
        >>> second.wait(first.record()); second.synchronize()
        """
        self._native.wait(event._native)

    def synchronize(self) -> None:
        """Waits for everything that was submitted; raises the first error of a launch that was not waited for.

        >>> import ptxvm
        >>> vm = ptxvm.Vm()
        >>> text = ".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }"
        >>> stream = vm.stream()
        >>> pending = vm.load(text)["k"][1, 32, stream]()
        >>> stream.synchronize(); pending.is_done
        True
        """
        launches, self._launches = self._launches, []
        first: Optional[Error] = None
        for pending in launches:
            waited = pending._outcome is not None
            try:
                pending.wait()
            except Error as error:
                if not waited and first is None:
                    first = error
        self._native.synchronize()
        if first is not None:
            raise first
