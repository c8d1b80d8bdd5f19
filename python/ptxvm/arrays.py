"""Arrays in memory that kernels access.

Device memory has the same addresses for kernels and for this process, so numpy sees it without a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional, Protocol, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from .errors import UsageError

if TYPE_CHECKING:
    from .vm import Vm

__all__ = ["DeviceArray"]

Shape = Union[int, Sequence[int]]


class Memory(Protocol):
    """Bytes that kernels can access, and the object that owns them."""

    @property
    def address(self) -> int: ...

    @property
    def bytes(self) -> int: ...

    def mark_written(self) -> None: ...


class DeviceArray:
    """An array in memory of a device; :meth:`ptxvm.Vm.array` makes it.

    ``numpy.asarray(a)`` and slices are views of it, and launches take it without a copy. It implements ``__array_interface__``,
    ``__cuda_array_interface__`` and DLPack (as memory of the CPU, which it is).

    >>> import numpy as np, ptxvm
    >>> a = ptxvm.Vm().array([1.0, 2.0, 3.0])
    >>> a[1] = 5
    >>> a.numpy()
    array([1., 5., 3.])
    """

    def __init__(self, vm: "Vm", memory: Memory, shape: Tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._vm = vm
        self._memory = memory
        #: Extents, as numpy has them; the array is contiguous in C's order.
        self.shape = shape
        #: Type of the elements.
        self.dtype = dtype

    @property
    def vm(self) -> "Vm":
        """The device that it belongs to."""
        return self._vm

    @property
    def address(self) -> int:
        """Its address, for the device and for this process."""
        return self._memory.address

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def nbytes(self) -> int:
        """How many bytes its elements take."""
        return self.size * self.dtype.itemsize

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        # The view may be written to, which the sanitizers do not see.
        if self._vm.tools:
            self._memory.mark_written()
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "data": (self.address, False),
            "strides": None,
        }

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address if self.size else 0, False),
            "strides": None,
            "stream": None,
        }

    def __dlpack__(self, **options: Any) -> Any:
        view: Any = self.numpy()
        return view.__dlpack__(**{name: value for name, value in options.items() if value is not None})

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)

    def numpy(self) -> npt.NDArray[Any]:
        """The array as numpy sees it, without a copy; it keeps the memory.

        >>> import ptxvm
        >>> a = ptxvm.Vm().zeros(3, "int32")
        >>> view = a.numpy()
        >>> view += 2
        >>> a.copy_to_host().tolist()
        [2, 2, 2]
        """
        return np.asarray(self)

    def copy_to_host(self, out: Optional[npt.NDArray[Any]] = None) -> npt.NDArray[Any]:
        """A copy of it, or ``out`` with its values.

        >>> import ptxvm
        >>> ptxvm.Vm().array([1, 2], dtype="int32").copy_to_host()
        array([1, 2], dtype=int32)
        """
        if out is None:
            copy: npt.NDArray[Any] = self.numpy().copy()
            return copy
        if out.shape != self.shape:
            raise UsageError(f"`out` has the shape {out.shape}; expected {self.shape}")
        if out.dtype != self.dtype:
            raise UsageError(f"`out` is of {out.dtype}; expected {self.dtype}")
        out[...] = self.numpy()
        return out

    def copy_from_host(self, values: npt.ArrayLike) -> None:
        """Sets all elements from an array of that shape.

        >>> import ptxvm
        >>> a = ptxvm.Vm().zeros(2, "int32")
        >>> a.copy_from_host([3, 4])
        >>> a.numpy().tolist()
        [3, 4]
        """
        found = np.asarray(values)
        if found.shape != self.shape:
            raise UsageError(f"the values have the shape {found.shape}; expected {self.shape}")
        if not np.can_cast(found.dtype, self.dtype, "same_kind"):
            raise UsageError(f"the values are of {found.dtype}; expected {self.dtype}")
        self.numpy()[...] = found

    def reshape(self, *shape: Any) -> "DeviceArray":
        """The same memory in another shape.

        >>> import ptxvm
        >>> ptxvm.Vm().zeros(6).reshape(2, 3).shape
        (2, 3)
        """
        return self._seen_as(self.numpy().reshape(*shape))

    def view(self, dtype: npt.DTypeLike) -> "DeviceArray":
        """The same memory with another type of elements.

        >>> import ptxvm
        >>> ptxvm.Vm().zeros(2, "float64").view("uint32").shape
        (4,)
        """
        return self._seen_as(self.numpy().view(dtype))

    def _seen_as(self, view: npt.NDArray[Any]) -> "DeviceArray":
        return DeviceArray(self._vm, self._memory, view.shape, view.dtype)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        return self.numpy()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.numpy()[index] = value

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, address={self.address:#x})"


def extents(shape: Shape) -> Tuple[int, ...]:
    """A shape as a tuple of numbers that are not negative."""
    given = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    found = tuple(int(extent) for extent in given)
    if any(extent < 0 for extent in found):
        raise UsageError(f"extents are not negative; found {found}")
    return found


def plain(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """A type whose elements are bytes alone, in this machine's order."""
    found: np.dtype[Any] = np.dtype(dtype)
    if found.hasobject:
        raise UsageError(f"elements of {found} are objects of Python; expected numbers or structures of numbers")
    if not found.isnative:
        raise UsageError(f"elements of {found} have the other byte order; expected {found.newbyteorder('=')}")
    if found.itemsize == 0:
        raise UsageError(f"elements of {found} have no bytes")
    return found
