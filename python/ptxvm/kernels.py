"""Kernels: parameters, conversion of arguments to bytes, and launches."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _native
from .arrays import DeviceArray, plain
from .errors import ArgumentError, UsageError
from .notebook import progress_bar
from .report import Report
from .sanitizers import active
from .streams import Pending, Stream

if TYPE_CHECKING:
    from .modules import Module
    from .vm import Vm

__all__ = ["Kernel", "Launcher", "Parameter", "Resources"]

Extent = Union[int, Sequence[int]]
Progress = Union[None, bool, Callable[[int, int], None]]

#: Names of extents in messages.
_AXES = "xyz"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel.

    >>> import ptxvm
    >>> module = ptxvm.Vm().load(".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k(.param .f32 x) { ret; }")
    >>> str(module["k"].parameters[0])
    '.f32 x'
    """

    name: str
    #: Type of its elements in the text, without the dot.
    type: str
    #: How many elements: 1, or the extent of an array such as ``.param .b8 x[24]``.
    elements: int
    #: Size and place in the parameter buffer, in bytes.
    bytes: int
    offset: int

    def __str__(self) -> str:
        return f".{self.type} {self.name}" + (f"[{self.elements}]" if self.elements > 1 else "")


@dataclass(frozen=True)
class Resources:
    """The registers, memory and threads that a kernel needs."""

    #: 32-bit registers of a thread, an estimate.
    registers: int
    #: Bytes of static shared memory of a CTA, local memory of a thread, and constants of the module.
    shared: int
    local: int
    constant: int
    #: Threads that ``.maxntid`` allows, and the CTA that ``.reqntid`` requires.
    max_threads: Optional[int]
    required_block: Optional[Tuple[int, int, int]]
    #: ``.version`` and ``.target`` of the module.
    ptx_version: Tuple[int, int]
    target: str


@dataclass(frozen=True)
class _Declared:
    """What :meth:`Kernel.declare` says of a parameter: a type, and the extents of an array (``None``: any)."""

    text: str
    dtype: np.dtype[Any]
    axes: Optional[Tuple[Optional[int], ...]]

    @classmethod
    def read(cls, text: str) -> "_Declared":
        found = re.fullmatch(r"\s*(\w+)\s*(?:\[([\d:,\s]*)\])?\s*", text)
        if not found:
            raise UsageError(f"`{text}` is not a type; expected `float32`, `float32[:]` or `float32[64,:]`")
        try:
            dtype: np.dtype[Any] = np.dtype(found[1])
        except TypeError:
            raise UsageError(f"numpy has no type `{found[1]}`") from None
        if found[2] is None:
            return cls(text.strip(), dtype, None)
        axes = [part.strip() for part in found[2].split(",")]
        if any(axis != ":" and not axis.isdigit() for axis in axes):
            raise UsageError(f"`{text}` is not a type; an extent is `:` or a number")
        return cls(text.strip(), dtype, tuple(None if axis == ":" else int(axis) for axis in axes))

    def check(self, where: str, value: Any) -> None:
        if self.axes is None:
            if hasattr(value, "shape") and value.shape != ():
                raise ArgumentError(f"{where}: expected a number of type `{self.text}`; found an array of {value.dtype}")
            return
        shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
        if shape is None or dtype is None:
            raise ArgumentError(f"{where}: expected an array `{self.text}`; found {_kind(value)}")
        if dtype != self.dtype:
            raise ArgumentError(f"{where}: expected an array of {self.dtype}; found {dtype}")
        fits = len(shape) == len(self.axes) and all(a is None or a == n for a, n in zip(self.axes, shape))
        if not fits:
            raise ArgumentError(f"{where}: expected the shape of `{self.text}`; found {tuple(shape)}")


class Kernel:
    """A kernel of a module, ready to be launched any number of times: ``kernel[grid, block](arguments...)``.

    ``grid`` and ``block`` are numbers or up to three of them. A stream and bytes of dynamic shared memory may follow, as in numba:
    ``kernel[grid, block, stream, shared]``.

    Arguments fit the types of the parameters. An array of numpy is copied to the device, and back when the kernel has ended; a
    :class:`DeviceArray` stays where it is. A structure (``.param .b8 p[24]``) is bytes, a structure of ``ctypes`` or a record of numpy.
    """

    def __init__(self, module: "Module", native: _native.Kernel, name: str) -> None:
        self._module = module
        self._native = native
        self._declared: Optional[Tuple[_Declared, ...]] = None
        #: Its name in the text.
        self.name = name
        #: Its parameters, in order.
        self.parameters: Tuple[Parameter, ...] = tuple(
            Parameter(name, type_, elements, size, offset) for name, offset, size, type_, elements in native.params()
        )

    @property
    def module(self) -> "Module":
        """The module that it is of."""
        return self._module

    @property
    def resources(self) -> Resources:
        """The registers, memory and threads that it needs.

        >>> import ptxvm
        >>> text = ".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() .maxntid 64 { ret; }"
        >>> ptxvm.Vm().load(text)["k"].resources.max_threads
        64
        """
        return Resources(**self._native.resources())

    def __getitem__(self, shape: Any) -> "Launcher":
        parts = shape if isinstance(shape, tuple) else (shape,)
        if not 2 <= len(parts) <= 4:
            raise UsageError(f"expected `kernel[grid, block]`, `[grid, block, stream]` or `[grid, block, stream, shared]`; found {len(parts)} values")
        stream = parts[2] if len(parts) > 2 else None
        if stream == 0:
            stream = None
        if stream is not None and not isinstance(stream, Stream):
            raise UsageError(f"a stream is what `Vm.stream` makes, or 0; found {_kind(stream)}")
        shared = parts[3] if len(parts) > 3 else 0
        return Launcher(self, extent("grid", parts[0]), extent("block", parts[1]), stream, _count("shared", shared, 0))

    def declare(self, *types: str) -> "Kernel":
        """The kernel with types that its arguments must have. PTX declares only the address of an array.

        A type is numpy's name, followed by the extents for an array: ``"float32"``, ``"float32[:]"``, ``"int32[64,:]"``.

        >>> import numpy as np, ptxvm
        >>> text = ".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k(.param .u64 x) { ret; }"
        >>> kernel = ptxvm.Vm().load(text)["k"].declare("float32[:]")
        >>> kernel[1, 1](np.zeros(3))
        Traceback (most recent call last):
        ...
        ptxvm.errors.ArgumentError: argument 1 (`x`) of `k`: expected an array of float32; found float64
        """
        if len(types) != len(self.parameters):
            raise UsageError(f"`{self.name}` has {_plural(len(self.parameters), 'parameter')}; found {_plural(len(types), 'type')}")
        declared = Kernel(self._module, self._native, self.name)
        declared._declared = tuple(_Declared.read(text) for text in types)
        return declared

    def on(self, vm: "Vm") -> "Kernel":
        """The same kernel on another device, into which its module is loaded anew.

        >>> import ptxvm
        >>> text = ".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }"
        >>> kernel = ptxvm.Vm().load(text)["k"]
        >>> with ptxvm.sanitize("racecheck") as found:
        ...     report = kernel.on(ptxvm.Vm())[1, 32]()
        >>> len(found)
        0
        """
        kernel = vm._load(self._module._texts, **self._module._options)[self.name]
        kernel._declared = self._declared
        return kernel

    def listing(self, block: Extent = 32, what: str = "asm") -> str:
        """The native code for CTAs of that shape: ``"asm"`` of this machine, or ``"llvm"``.

        >>> import ptxvm
        >>> text = ".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }"
        >>> "define" in ptxvm.Vm().load(text)["k"].listing(64, "llvm")
        True
        """
        return self._native.listing(extent("block", block), what)

    def __repr__(self) -> str:
        return f"Kernel({self.name}({', '.join(map(str, self.parameters))}))"

    def __reduce__(self) -> Any:
        types = None if self._declared is None else tuple(declared.text for declared in self._declared)
        return (_restored, (self._module._texts, self._module._options, self.name, types))


def _restored(texts: Any, options: Mapping[str, Any], name: str, types: Optional[Sequence[str]]) -> Kernel:
    """A kernel in another process: of a device of its own, which holds the same module."""
    from .vm import Vm

    kernel = Vm()._load(texts, **options)[name]
    return kernel if types is None else kernel.declare(*types)


@dataclass(frozen=True)
class Launcher:
    """A kernel with a shape: calling it launches the kernel.

    >>> import ptxvm
    >>> text = ".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }"
    >>> launcher = ptxvm.Vm().load(text)["k"][2, 32].with_options(threads=1, engine="interp")
    >>> launcher().ctas
    2
    """

    kernel: Kernel
    grid: Tuple[int, int, int]
    block: Tuple[int, int, int]
    stream: Optional[Stream] = None
    #: Bytes of dynamic shared memory.
    shared: int = 0
    #: Whether its CTAs may wait for each other.
    cooperative: bool = False
    #: ``"auto"``, ``"interp"`` or ``"jit"``.
    engine: str = "auto"
    #: Threads of the operating system; ``None``: one for each core.
    threads: Optional[int] = None
    #: Another order of warps and CTAs for each number but 0.
    seed: int = 0
    #: Limits that end the launch with a :class:`TrapError`: warp instructions, and seconds.
    max_steps: Optional[int] = None
    timeout: Optional[float] = None
    #: Bytes that it may print.
    output_limit: Optional[int] = None
    #: ``None``: a bar of tqdm for launches over a second, on a terminal or in a notebook; ``True``: everywhere; ``False``: none; or a function
    #: that is called with the CTAs that have finished and their number.
    progress: Progress = None

    def with_options(self, **options: Any) -> "Launcher":
        """The same with other options, by the names of the fields.

        >>> import ptxvm
        >>> text = ".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }"
        >>> ptxvm.Vm().load(text)["k"][1, 1].with_options(timeout=10, seed=3).seed
        3
        """
        known = set(self.__dataclass_fields__) - {"kernel"}
        for name in options:
            if name not in known:
                raise UsageError(f"a launch has no option `{name}`; it has {', '.join(sorted(known))}")
        if "grid" in options:
            options["grid"] = extent("grid", options["grid"])
        if "block" in options:
            options["block"] = extent("block", options["block"])
        return replace(self, **options)

    def __call__(self, *arguments: Any) -> Any:
        """Launches the kernel: gives its :class:`Report`, or where there is a stream a :class:`Pending`."""
        self._check_watched()
        packed = Packed(self.kernel, arguments)
        settings = self._settings(packed)
        native = self.kernel._native
        if self.stream is not None:
            pending = native.submit(self.stream._native, settings, packed.memory)
            return self.stream._submitted(Pending(pending, packed))
        with progress_bar(self.progress, self.kernel.name) as progress:
            fields = native.launch(self.kernel.module.vm._native, settings, progress)
        packed.copy_back()
        return Report._of(fields)

    def _check_watched(self) -> None:
        """In a block of `sanitize`, a launch that the sanitizers would not see is an error."""
        vm, block = self.kernel.module.vm, active()
        if block is None or vm.tools or vm._chose_tools:
            return
        raise UsageError(
            f"`{self.kernel.name}` is on a device that was made before the block of `ptxvm.sanitize`, which does not watch it;"
            " `kernel.on(ptxvm.Vm())` in the block is the same kernel on a new device"
        )

    def _settings(self, packed: "Packed") -> Dict[str, Any]:
        return {
            "grid": self.grid,
            "block": self.block,
            "shared": self.shared,
            "cooperative": self.cooperative,
            "params": packed.params,
            "threads": None if self.threads is None else _count("threads", self.threads, 1),
            "seed": _count("seed", self.seed, 0, 2**64 - 1),
            "max_steps": None if self.max_steps is None else _count("max_steps", self.max_steps, 0, 2**64 - 1),
            "timeout": None if self.timeout is None else float(self.timeout),
            "output_limit": None if self.output_limit is None else _count("output_limit", self.output_limit, 0, 2**64 - 1),
            "engine": self.engine,
        }


class Packed:
    """Arguments as bytes, and what they need: memory on the device, and arrays that are copied back."""

    def __init__(self, kernel: Kernel, arguments: Sequence[Any]) -> None:
        parameters = kernel.parameters
        if len(parameters) != len(arguments):
            names = ", ".join(map(str, parameters)) or "none"
            raise ArgumentError(
                f"`{kernel.name}` has {_plural(len(parameters), 'parameter')} ({names}); found {_plural(len(arguments), 'argument')}"
            )
        self.kernel = kernel
        self.memory: List[object] = []
        self._copies: Dict[Tuple[int, int, Any, Any], Tuple[npt.NDArray[Any], DeviceArray]] = {}
        buffer = bytearray(kernel._native.param_bytes())
        for index, (parameter, argument) in enumerate(zip(parameters, arguments)):
            where = f"argument {index + 1} (`{parameter.name}`) of `{kernel.name}`"
            if kernel._declared is not None:
                kernel._declared[index].check(where, argument)
            value = self._bytes(where, parameter, argument)
            buffer[parameter.offset : parameter.offset + parameter.bytes] = value
        self.params = bytes(buffer)

    def copy_back(self) -> None:
        """Writes what kernels changed to the arrays of numpy."""
        for array, copy in self._copies.values():
            if array.flags.writeable:
                array[...] = copy.numpy()

    def _bytes(self, where: str, parameter: Parameter, value: Any) -> bytes:
        if parameter.elements > 1 or parameter.bytes > 8:
            return _structure(where, parameter, value)
        if parameter.type in ("texref", "samplerref", "surfref"):
            return self._handle(where, parameter, value)
        if isinstance(value, np.ndarray) and value.ndim == 0 and (parameter.bytes < 8 or parameter.type[0] == "f"):
            value = value[()]
        address = self._address(where, parameter, value)
        if address is not None:
            try:
                return address.to_bytes(parameter.bytes, "little")
            except OverflowError:
                raise ArgumentError(f"{where}: the parameter `{parameter}` is too narrow for an address") from None
        return scalar(where, parameter, value)

    def _handle(self, where: str, parameter: Parameter, value: Any) -> bytes:
        if not hasattr(value, "_object"):
            raise ArgumentError(f"{where}: `{parameter}` takes a texture, surface or sampler; found {_kind(value)}")
        handle = value._object(self.kernel.module.vm)
        self.memory.append(handle)
        return int(handle.handle).to_bytes(8, "little")

    def _address(self, where: str, parameter: Parameter, value: Any) -> Optional[int]:
        """The address of an array, or the handle of a texture; ``None`` for numbers."""
        if isinstance(value, (DeviceArray, np.ndarray)) or hasattr(value, "__cuda_array_interface__") or hasattr(value, "_object"):
            if parameter.type[0] == "f" or parameter.bytes < 4:
                raise ArgumentError(f"{where}: `{parameter}` takes a number; found {_kind(value)}")
        if hasattr(value, "_object"):
            return int.from_bytes(self._handle(where, parameter, value), "little")
        if isinstance(value, DeviceArray):
            if value.vm is not self.kernel.module.vm:
                raise ArgumentError(f"{where}: the array is of another device than the kernel")
            self.memory.append(value._memory)
            return value.address
        if isinstance(value, np.ndarray):
            return self._copied(where, value).address
        if hasattr(value, "__cuda_array_interface__"):
            return self._foreign(where, value)
        return None

    def _copied(self, where: str, array: npt.NDArray[Any]) -> DeviceArray:
        try:
            plain(array.dtype)
        except UsageError as error:
            raise ArgumentError(f"{where}: {error}") from None
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise ArgumentError(
                f"{where}: expected a contiguous array; found strides {array.strides} of shape {array.shape}"
                " (`numpy.ascontiguousarray` makes one)"
            )
        key = (array.__array_interface__["data"][0], array.nbytes, array.shape, array.dtype.str)
        known = self._copies.get(key)
        if known is None:
            order = "C" if array.flags.c_contiguous else "F"
            vm = self.kernel.module.vm
            memory = vm._native.alloc(where, max(array.nbytes, 1), True)
            flat = array if order == "C" else array.T
            copy = DeviceArray(vm, memory, flat.shape, array.dtype)
            copy.numpy()[...] = flat
            self.memory.append(memory)
            known = (flat, copy)
            self._copies[key] = known
        return known[1]

    def _foreign(self, where: str, value: Any) -> int:
        interface = value.__cuda_array_interface__
        address = int(interface["data"][0])
        if address and self.kernel.module.vm._native.allocation_at(address) is None:
            raise ArgumentError(f"{where}: the array at {address:#x} lies in no memory of this device; `Vm.from_dlpack` or `Vm.lend` shares it")
        if interface.get("strides") is not None:
            raise ArgumentError(f"{where}: expected a contiguous array; found strides {interface['strides']}")
        self.memory.append(value)
        return address


_FLOATS: Dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def scalar(where: str, parameter: Parameter, value: Any) -> bytes:
    """The bytes of a number, as the type of a parameter has them."""
    if isinstance(value, np.ndarray):
        value = value[()]
    if isinstance(value, ctypes._SimpleCData):
        value = value.value
    expected = f"`{parameter}`"
    if parameter.type in _FLOATS:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise ArgumentError(f"{where}: expected a number for {expected}; found {_kind(value)}")
        with np.errstate(over="ignore"):
            number_bytes: bytes = _FLOATS[parameter.type](value).tobytes()
            return number_bytes
    bits = 8 * parameter.bytes
    untyped = parameter.type[0] == "b" or parameter.type in ("f16x2", "bf16", "bf16x2", "f32x2", "tf32")
    if isinstance(value, np.floating):
        if untyped and value.nbytes == parameter.bytes:
            bits_of: bytes = value.tobytes()
            return bits_of
        raise ArgumentError(f"{where}: expected an integer for {expected}; found {_kind(value)}")
    if isinstance(value, float):
        hint = f" (numpy.float{bits}({value!r}) passes its bits)" if untyped and bits in (16, 32, 64) else ""
        raise ArgumentError(f"{where}: expected an integer for {expected}; found the float {value!r}{hint}")
    if value is None and parameter.bytes >= 4:
        value = 0
    if isinstance(value, (bool, np.bool_)):
        value = int(value)
    if not isinstance(value, (int, np.integer)):
        raise ArgumentError(f"{where}: expected a number{', an array' if bits == 64 else ''} for {expected}; found {_kind(value)}")
    number = int(value)
    low = 0 if parameter.type[0] == "u" and number >= 0 else -(2 ** (bits - 1))
    high = 2 ** (bits - 1) - 1 if parameter.type[0] == "s" and number < 0 else 2**bits - 1
    if not low <= number <= high:
        raise ArgumentError(f"{where}: {number} does not fit {expected}, which has {bits} bits")
    modulus: int = 2**bits
    return (number % modulus).to_bytes(parameter.bytes, "little")


def _structure(where: str, parameter: Parameter, value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        found = bytes(value)
    elif isinstance(value, (ctypes.Structure, ctypes.Array, ctypes.Union)):
        found = bytes(value)
    elif isinstance(value, (np.generic, np.ndarray)):
        if value.dtype.hasobject:
            raise ArgumentError(f"{where}: {value.dtype} holds objects of Python, not bytes")
        found = value.tobytes()
    else:
        raise ArgumentError(
            f"{where}: `{parameter}` takes bytes, a structure of ctypes, or a record or array of numpy by value; found {_kind(value)}"
        )
    if len(found) != parameter.bytes:
        raise ArgumentError(f"{where}: `{parameter}` has {parameter.bytes} bytes; found {len(found)}")
    return found


def extent(name: str, value: Any) -> Tuple[int, int, int]:
    """CTAs of a grid or threads of a CTA: up to three numbers, those left out being 1."""
    parts = (value,) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else value
    try:
        parts = tuple(parts)
    except TypeError:
        raise UsageError(f"`{name}` is a number or up to three; found {_kind(value)}") from None
    if not 1 <= len(parts) <= 3:
        raise UsageError(f"`{name}` is a number or up to three; found {len(parts)}")
    numbers = [_count(f"{name}.{axis}", part, 1, 2**32 - 1) for axis, part in zip(_AXES, parts)]
    x, y, z = (numbers + [1, 1])[:3]
    return (x, y, z)


def _count(name: str, value: Any, least: int, most: int = 2**32 - 1) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise UsageError(f"`{name}` is a whole number; found {_kind(value)}")
    number = int(value)
    if not least <= number <= most:
        raise UsageError(f"`{name}` is {number}; expected {least} to {most}")
    return number


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _kind(value: Any) -> str:
    if isinstance(value, (np.ndarray, DeviceArray)):
        return f"an array of {value.dtype}"
    return f"{value!r} of type {type(value).__name__}" if isinstance(value, (int, float, str, complex)) else type(value).__name__
