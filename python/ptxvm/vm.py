"""Virtual devices: their memory, modules and streams."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _native
from .arrays import DeviceArray, Shape, extents, plain
from .errors import Diagnostic, UsageError
from .modules import Module
from .sanitizers import Finding, Tools, active, findings_of, tool_list
from .streams import Stream

__all__ = ["Vm"]

Text = Union[str, bytes, "os.PathLike[str]"]


class Vm:
    """A virtual device: memory, and the modules that are loaded into it. Cheap to make; devices share nothing.

    :param cpu: what native code is made for: ``"avx512"``, ``"avx2"`` or ``"baseline"``; by default the best that this machine has.
    :param cache: a folder in which native code is kept for later processes; ``True`` for the user's, ``False`` for none.
    :param address_bits: 64, or 32 for modules of ``.address_size 32``.
    :param tools: sanitizers that watch all launches of this device, such as ``"racecheck"`` or ``"all"``; by default those of the block of
        :func:`ptxvm.sanitize`, and outside of one none. ``()`` for none.
    :param max_findings: how many different findings they record; then launches are stopped.

    >>> import ptxvm
    >>> vm = ptxvm.Vm()
    >>> vm.zeros((2, 3)).shape
    (2, 3)
    """

    def __init__(
        self,
        *,
        cpu: Optional[str] = None,
        cache: Union[bool, str, "os.PathLike[str]"] = True,
        address_bits: int = 64,
        tools: Optional[Tools] = None,
        max_findings: Optional[int] = None,
    ) -> None:
        folder = None if cache is False else "" if cache is True else os.fspath(cache)
        block = active() if tools is None else None
        if block is not None:
            max_findings = block.max_findings if max_findings is None else max_findings
        #: The sanitizers that watch its launches, by name.
        self.tools: Tuple[str, ...] = block.tools if block is not None else tool_list(tools)
        self._chose_tools = tools is not None
        if max_findings is not None and (isinstance(max_findings, bool) or not isinstance(max_findings, int) or max_findings < 1):
            raise UsageError(f"`max_findings` is a number from 1; found {max_findings!r}")
        self._native = _native.Device(cpu, folder, address_bits, ",".join(self.tools) or None, max_findings)
        if block is not None:
            block._made(self._native)

    def load(
        self, source: Text, *, name: Optional[str] = None, gpu_name: Optional[str] = None, strict: bool = False
    ) -> Module:
        """Checks PTX and loads it: a text, or the path of a file. A ``str`` of one line is a path.

        :param name: what reports call the text; by default its path, or ``<text>``.
        :param gpu_name: load as on that architecture, such as ``"sm_80"``; by default the text's own ``.target``.
        :param strict: refuse what the manual and ptxas do not both accept.
        :raises RejectedError: with every diagnostic.

        >>> import ptxvm
        >>> ptxvm.Vm().load(".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }").kernels
        ('k',)
        """
        return self._load([read(source, name)], gpu_name=gpu_name, strict=strict)

    def link(self, *sources: Text, gpu_name: Optional[str] = None, strict: bool = False) -> Module:
        """Checks several texts or files, links them by the rules of ``.extern``, ``.visible``, ``.weak`` and ``.common``, and loads the result.

        >>> import ptxvm
        >>> head = ".version 6.4\\n.target sm_70\\n.address_size 64\\n"
        >>> module = ptxvm.Vm().link(head + ".extern .func f();\\n.visible .entry k() { call f; ret; }", head + ".visible .func f() { ret; }")
        >>> module.kernels
        ('k',)
        """
        if not sources:
            raise UsageError("nothing to link; expected one text or more")
        texts = [read(source, None, index) for index, source in enumerate(sources)]
        return self._load(texts, gpu_name=gpu_name, strict=strict)

    def _load(self, texts: Sequence[Tuple[str, str]], *, gpu_name: Optional[str], strict: bool) -> Module:
        native, found = self._native.load(list(texts), gpu_name, strict)
        options: Dict[str, Any] = {"gpu_name": gpu_name, "strict": strict}
        return Module(self, native, texts, options, tuple(Diagnostic._of(fields) for fields in found))

    def array(self, values: npt.ArrayLike, dtype: Optional[npt.DTypeLike] = None, *, name: str = "array") -> DeviceArray:
        """A copy of values in device memory, as ``numpy.asarray`` reads them; ``name`` stands in reports of traps.

        >>> import ptxvm
        >>> ptxvm.Vm().array([[1, 2], [3, 4]], "float32").shape
        (2, 2)
        """
        found = np.asarray(values, dtype=dtype)
        array = self.zeros(found.shape, found.dtype, name=name)
        array.numpy()[...] = found
        return array

    def zeros(self, shape: Shape, dtype: npt.DTypeLike = "float64", *, name: str = "array") -> DeviceArray:
        """Zeros in device memory.

        >>> import ptxvm
        >>> ptxvm.Vm().zeros(3, "int8").numpy().tolist()
        [0, 0, 0]
        """
        return self._allocated(shape, dtype, name, True)

    def empty(self, shape: Shape, dtype: npt.DTypeLike = "float64", *, name: str = "array") -> DeviceArray:
        """Device memory for an array that a kernel is to fill. It reads as zeros; initcheck reports kernels that read it before anything wrote to it.

        >>> import ptxvm
        >>> ptxvm.Vm().empty((2, 2), "int32").nbytes
        16
        """
        return self._allocated(shape, dtype, name, False)

    def _allocated(self, shape: Shape, dtype: npt.DTypeLike, name: str, written: bool) -> DeviceArray:
        element, wanted = plain(dtype), extents(shape)
        size = element.itemsize
        for extent in wanted:
            size *= extent
        if size >= 2**47:
            raise UsageError(f"the shape {wanted} of {element} has {size} bytes, more than there are addresses")
        return DeviceArray(self, self._native.alloc(name, max(size, 1), written), wanted, element)

    def lend(self, array: npt.NDArray[Any], *, name: str = "lent array") -> DeviceArray:
        """Lets kernels access an array of numpy where it is, without a copy, as long as the result lives.

        >>> import numpy as np, ptxvm
        >>> x = np.zeros(4)
        >>> shared = ptxvm.Vm().lend(x)
        >>> shared.address == x.ctypes.data
        True
        """
        if not isinstance(array, np.ndarray):
            raise UsageError(f"expected an array of numpy; found {type(array).__name__} (`from_dlpack` takes others)")
        element = plain(array.dtype)
        if not array.flags.c_contiguous:
            raise UsageError(f"expected a contiguous array in C's order; found strides {array.strides} of shape {array.shape}")
        if not array.flags.writeable:
            raise UsageError("the array is read-only, and kernels could write to it; `Vm.array` copies it")
        address = int(array.__array_interface__["data"][0])
        if address % element.alignment:
            raise UsageError(f"the array lies at {address:#x}; expected a multiple of {element.alignment} for {element}")
        memory = self._native.adopt(name, address, array.nbytes, array)
        return DeviceArray(self, memory, array.shape, element)

    def from_dlpack(self, source: Any, *, writable: bool = False, name: str = "lent array") -> DeviceArray:
        """Lets kernels access an array of another library where it is. The array must implement DLPack for memory of the CPU.

        :param writable: take an array whose library does not say that it may be written to. Old versions of the protocol never say it.

        >>> import numpy as np, ptxvm
        >>> vm = ptxvm.Vm()
        >>> x = np.arange(3.0)
        >>> shared = vm.from_dlpack(x, writable=True)
        >>> shared[0] = 7
        >>> x[0].item()
        7.0
        """
        if isinstance(source, DeviceArray) and source.vm is self:
            return source
        try:
            found = np.from_dlpack(source)
        except (AttributeError, TypeError, BufferError, RuntimeError) as error:
            raise UsageError(f"expected an array that implements DLPack for memory of the CPU, found {type(source).__name__}: {error}") from None
        if not found.flags.writeable:
            if not writable:
                raise UsageError("the array does not say that it may be written to; `writable=True` if it may, `Vm.array` copies it")
            found = _writable(found)
        return self.lend(found, name=name)

    def stream(self) -> Stream:
        """A new stream, whose launches run beside those of others.

        >>> import ptxvm
        >>> ptxvm.Vm().stream().is_idle
        True
        """
        return Stream(self._native.stream())

    def synchronize(self) -> None:
        """Waits until all work of streams is done. Errors of launches are raised by :meth:`Stream.synchronize` or :meth:`Pending.wait`.

        >>> import ptxvm
        >>> ptxvm.Vm().synchronize()
        """
        self._native.synchronize()

    @property
    def findings(self) -> Tuple[Finding, ...]:
        """What the sanitizers have found so far, in the order in which it was found first.

        >>> import ptxvm
        >>> ptxvm.Vm(tools="all").findings
        ()
        """
        return findings_of(self._native)

    def find_leaks(self) -> None:
        """Ends the program for the sanitizers: memory of the device's heap that kernels have not freed is found as a leak.

        >>> import ptxvm
        >>> ptxvm.Vm(tools="memcheck").find_leaks()
        """
        self._native.find_leaks()

    @property
    def memory_usage(self) -> Tuple[int, int]:
        """Bytes of memory in use, and how many there is room for.

        >>> import ptxvm
        >>> vm = ptxvm.Vm()
        >>> array = vm.zeros(1000, "uint8")
        >>> vm.memory_usage[0] >= 1000
        True
        """
        return self._native.memory_usage()

    def __repr__(self) -> str:
        return f"Vm({self.memory_usage[0]} bytes in use)"


def _writable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same memory as an array that may be written to; the new one keeps the old."""

    class Seen:
        def __init__(self) -> None:
            self.kept = array
            interface = dict(array.__array_interface__)
            interface["data"] = (interface["data"][0], False)
            self.__array_interface__ = interface

    return np.asarray(Seen())


def read(source: Text, name: Optional[str], index: int = 0) -> Tuple[str, str]:
    """The name and the text of a source."""
    if isinstance(source, bytes):
        try:
            text = source.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"the text is not UTF-8: {error}") from None
        return (name or _unnamed(index), text.rstrip("\0"))
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith((".version", "//", "/*"))):
        return (name or _unnamed(index), source.rstrip("\0"))
    if not isinstance(source, (str, os.PathLike)):
        raise UsageError(f"expected PTX text or the path of a file; found {type(source).__name__}")
    path = Path(source)
    try:
        return (name or str(path), path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"`{path}` cannot be read: {error}") from None


def _unnamed(index: int) -> str:
    return f"<text {index + 1}>" if index else "<text>"
