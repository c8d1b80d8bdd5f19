"""Texels, textures, surfaces and samplers. The names are those of the PTX manual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _native
from .errors import UsageError

if TYPE_CHECKING:
    from .vm import Vm

__all__ = ["Sampler", "Surface", "Texels", "Texture"]

#: Axes of an array of each geometry, without channels.
_AXES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 2, "a2d": 3, "cube": 3, "acube": 4, "2dms": 3, "a2dms": 4}
#: Channel data types of types of elements: values are not normalised.
_TYPES = {
    "float32": "float",
    "float16": "half_float",
    "int8": "signed_int8",
    "int16": "signed_int16",
    "int32": "signed_int32",
    "uint8": "unsigned_int8",
    "uint16": "unsigned_int16",
    "uint32": "unsigned_int32",
}
_ORDERS = {1: "r", 2: "rg", 3: "rgb", 4: "rgba"}
#: Bytes of a texel's channel, and how many channels are stored.
_STORED = {"r": 1, "a": 1, "rg": 2, "ra": 2, "rgb": 3, "rgba": 4, "bgra": 4, "argb": 4, "intensity": 1, "luminance": 1}


class Texels:
    """An image on a device, for textures and surfaces that share it.

    The axes of ``values`` are, from the first: layers, cube faces or samples, depth, height, width, and where there is one axis more than the
    geometry has, the channels.

    :param geom: ``1d 2d 3d a1d a2d cube acube 2dms a2dms``; by default by the number of axes.
    :param channel_data_type: such as ``unorm_int8``; by default the type of the elements, not normalised.
    :param channel_order: such as ``rgba``; by default by the last axis.

    >>> import numpy as np, ptxvm
    >>> image = ptxvm.Texels(ptxvm.Vm(), np.zeros((4, 8, 4), np.float32), geom="2d")
    >>> image.shape, image.channel_order
    ((4, 8, 4), 'rgba')
    """

    def __init__(
        self,
        vm: "Vm",
        values: npt.ArrayLike,
        *,
        geom: Optional[str] = None,
        channel_data_type: Optional[str] = None,
        channel_order: Optional[str] = None,
    ) -> None:
        found = np.ascontiguousarray(values)
        if geom is None:
            geom = {1: "1d", 2: "2d", 3: "3d"}.get(found.ndim)
            if geom is None:
                raise UsageError(f"an array of {found.ndim} axes needs `geom`")
        if geom not in _AXES:
            raise UsageError(f"`geom` is one of {', '.join(_AXES)}; found `{geom}`")
        axes = _AXES[geom]
        if found.ndim not in (axes, axes + 1):
            raise UsageError(f"`geom={geom!r}` takes an array of {axes} axes, and one of channels; found the shape {found.shape}")
        channels = found.shape[-1] if found.ndim == axes + 1 else 1
        if channel_order is None:
            if channels not in _ORDERS:
                raise UsageError(f"the last axis of {found.shape} is not 1 to 4 channels")
            packed = channel_data_type in ("unorm_short_565", "unorm_short_555", "unorm_int_101010")
            channel_order = "rgb" if packed else _ORDERS[channels]
        elif found.ndim == axes + 1 and _STORED.get(channel_order, channels) != channels:
            raise UsageError(f"`{channel_order}` stores {_STORED[channel_order]} channels; the last axis of {found.shape} is not that")
        if channel_data_type is None:
            channel_data_type = _TYPES.get(found.dtype.name)
            if channel_data_type is None:
                raise UsageError(f"texels of {found.dtype} need `channel_data_type`; without it elements are one of {', '.join(_TYPES)}")
        extents = found.shape[:axes]
        if any(n > 2**32 - 1 or n == 0 for n in extents):
            raise UsageError(f"extents are 1 to {2**32 - 1}; found {extents}")
        self._vm = vm
        self._native = vm._native.texels(_shape(geom, extents), channel_data_type, channel_order)
        size = self._native.level_bytes(0)
        if size != found.nbytes:
            raise UsageError(
                f"texels of {channel_data_type} in the order {channel_order} and the shape {extents} have {size} bytes; found {found.nbytes} ({found.dtype})"
            )
        #: Shape and type of the array that it was made of, which :meth:`read` gives.
        self.shape: Tuple[int, ...] = found.shape
        self.dtype = found.dtype
        self.geom = geom
        self.channel_data_type = channel_data_type
        self.channel_order = channel_order
        self.write(found)

    def write(self, values: npt.ArrayLike) -> None:
        """Sets all texels from an array of the same shape and type.

        >>> import numpy as np, ptxvm
        >>> image = ptxvm.Texels(ptxvm.Vm(), np.zeros(2, np.uint8))
        >>> image.write(np.array([3, 4], np.uint8)); image.read().tolist()
        [3, 4]
        """
        found = np.ascontiguousarray(values)
        if found.shape != self.shape or found.dtype != self.dtype:
            raise UsageError(f"expected the shape {self.shape} of {self.dtype}; found {found.shape} of {found.dtype}")
        self._native.write(0, found.tobytes())

    def read(self) -> npt.NDArray[Any]:
        """The texels, as they are stored.

        >>> import numpy as np, ptxvm
        >>> ptxvm.Texels(ptxvm.Vm(), np.arange(3, dtype=np.int32)).read()
        array([0, 1, 2], dtype=int32)
        """
        found: npt.NDArray[Any] = np.frombuffer(bytes(self._native.read(0)), self.dtype).reshape(self.shape)
        copy: npt.NDArray[Any] = found.copy()
        return copy


def _shape(geom: str, axes: Sequence[int]) -> Tuple[str, Tuple[int, int, int], int, int, int]:
    """Geometry, extent, layers, levels and samples."""
    width = axes[-1]
    height = axes[-2] if geom not in ("1d", "a1d") else 1
    depth = axes[0] if geom == "3d" else 1
    layers = axes[0] if geom in ("a1d", "a2d", "acube", "a2dms") else 0
    samples = axes[-3] if geom in ("2dms", "a2dms") else 0
    if geom in ("cube", "acube") and axes[-3] != 6:
        raise UsageError(f"a cube has 6 faces; found {axes[-3]} in the shape {tuple(axes)}")
    return (geom, (width, height, depth), layers, 1, samples)


@dataclass(frozen=True)
class Sampler:
    """How a texture is read: filters, addresses beyond the edges, comparisons.

    >>> import ptxvm
    >>> ptxvm.Sampler(filter_mode="linear", addr_mode="wrap").filter_mode
    'linear'
    """

    #: ``nearest`` or ``linear``.
    filter_mode: str = "nearest"
    mip_filter_mode: str = "nearest"
    #: ``wrap mirror clamp_ogl clamp_to_edge clamp_to_border``, or three of them for x, y and z.
    addr_mode: Union[str, Sequence[str]] = "clamp_to_edge"
    #: ``never less equal lequal greater notequal gequal always``
    compare: str = "lequal"
    force_unnormalized_coords: bool = False

    def _fields(self) -> Dict[str, Any]:
        modes = [self.addr_mode] * 3 if isinstance(self.addr_mode, str) else list(self.addr_mode)
        if len(modes) != 3:
            raise UsageError(f"`addr_mode` is a word or three; found {len(modes)}")
        return {
            "filter_mode": self.filter_mode,
            "mip_filter_mode": self.mip_filter_mode,
            "addr_mode": modes,
            "compare": self.compare,
            "force_unnormalized": self.force_unnormalized_coords,
        }

    def _descriptor(self, vm: "Vm") -> _native.Descriptor:
        return _native.Descriptor.sampler(self._fields())

    def _object(self, vm: "Vm") -> _native.Object:
        return vm._native.object("sampler", self._descriptor(vm))


class _Seen:
    """What textures and surfaces have in common: texels, and a handle for kernels."""

    def __init__(self, texels: Texels, name: str) -> None:
        self.texels = texels
        self.name = name
        self._handle: Optional[_native.Object] = None

    def _described(self) -> _native.Descriptor:
        raise NotImplementedError

    def _descriptor(self, vm: "Vm") -> _native.Descriptor:
        if vm is not self.texels._vm:
            raise UsageError(f"the texels of `{self.name}` are of another device")
        return self._described()

    def _object(self, vm: "Vm") -> _native.Object:
        if self._handle is None:
            self._handle = vm._native.object(self.name, self._descriptor(vm))
        return self._handle


class Texture(_Seen):
    """Texels as a kernel samples them; an argument for a kernel, or for :meth:`ptxvm.Module.bind`.

    :param normalized_coords: whether coordinates are 0 to 1; by default what the module's variable says, else not.

    >>> import numpy as np, ptxvm
    >>> texels = ptxvm.Texels(ptxvm.Vm(), np.zeros(4, np.float32))
    >>> ptxvm.Texture(texels, filter_mode="linear").texels is texels
    True
    """

    def __init__(
        self, texels: Texels, *, normalized_coords: Optional[bool] = None, name: str = "texture", **sampler: Any
    ) -> None:
        super().__init__(texels, name)
        self._normalized = normalized_coords
        self._sampler = Sampler(**sampler)._fields() if sampler else None
        self._described()

    def _described(self) -> _native.Descriptor:
        return self.texels._native.texture(self._normalized, self._sampler)


class Surface(_Seen):
    """Texels as a kernel reads and writes them.

    >>> import numpy as np, ptxvm
    >>> ptxvm.Surface(ptxvm.Texels(ptxvm.Vm(), np.zeros(4, np.uint8))).name
    'surface'
    """

    def __init__(self, texels: Texels, *, name: str = "surface") -> None:
        super().__init__(texels, name)
        self._described()

    def _described(self) -> _native.Descriptor:
        return self.texels._native.surface(0)
