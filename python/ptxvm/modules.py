"""Loaded modules: their kernels and variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, Sequence, Tuple

import numpy.typing as npt

from . import _native
from .arrays import DeviceArray, Shape, extents, plain
from .errors import Diagnostic, UsageError
from .kernels import Kernel

if TYPE_CHECKING:
    from .textures import Sampler, Surface, Texture
    from .vm import Vm

__all__ = ["Module"]


class Module:
    """PTX in the memory of a device; :meth:`ptxvm.Vm.load` makes it.

    >>> import ptxvm
    >>> module = ptxvm.Vm().load('''
    ... .version 6.4
    ... .target sm_70
    ... .address_size 64
    ... .global .u32 counts[2] = {7, 8};
    ... .visible .entry k() { ret; }''')
    >>> list(module), "k" in module
    (['k'], True)
    >>> module.variable("counts", "uint32").numpy().tolist()
    [7, 8]
    """

    def __init__(
        self,
        vm: "Vm",
        native: _native.Module,
        texts: Sequence[Tuple[str, str]],
        options: Mapping[str, Any],
        warnings: Tuple[Diagnostic, ...],
    ) -> None:
        self._vm = vm
        self._native = native
        self._texts = tuple(texts)
        self._options = dict(options)
        #: What the checker warned about.
        self.warnings = warnings
        #: Names of its kernels, in the order of the text.
        self.kernels: Tuple[str, ...] = tuple(native.kernels())

    @property
    def vm(self) -> "Vm":
        """The device that it is on."""
        return self._vm

    @property
    def text(self) -> str:
        """Its PTX text; of several that were linked, one after another."""
        return "\n".join(text for _, text in self._texts)

    def __getitem__(self, name: str) -> Kernel:
        return Kernel(self, self._native.kernel(name), name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)

    def __contains__(self, name: object) -> bool:
        return name in self.kernels

    def kernel(self, name: Optional[str] = None) -> Kernel:
        """The kernel of that name, or the only one.

        >>> import ptxvm
        >>> ptxvm.Vm().load(".version 6.4\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }").kernel().name
        'k'
        """
        if name is None:
            if len(self.kernels) != 1:
                raise UsageError(f"name a kernel; the module has {', '.join(self.kernels) or 'none'}")
            name = self.kernels[0]
        return self[name]

    def variable(self, name: str, dtype: npt.DTypeLike = "uint8", shape: Optional[Shape] = None) -> DeviceArray:
        """A ``.global`` or ``.const`` variable as an array, without a copy; the shape is by default that of its size.

        >>> import ptxvm
        >>> module = ptxvm.Vm().load(".version 6.4\\n.target sm_70\\n.address_size 64\\n.global .f32 x = 0f3F800000;")
        >>> module.variable("x", "float32")[0].item()
        1.0
        """
        found = self._native.variable(name)
        if found is None:
            raise UsageError(f"the module has no variable `{name}`")
        address, size = found
        element = plain(dtype)
        if shape is None:
            if size % element.itemsize:
                raise UsageError(f"`{name}` has {size} bytes, which is not a multiple of {element.itemsize} ({element})")
            wanted: Tuple[int, ...] = (size // element.itemsize,)
        else:
            wanted = extents(shape)
        array = DeviceArray(self._vm, _Placed(self, address, size), wanted, element)
        if array.nbytes > size:
            raise UsageError(f"`{name}` has {size} bytes; found the shape {wanted} of {element}, which has {array.nbytes}")
        return array

    def bind(self, name: str, what: "Texture | Surface | Sampler") -> None:
        """Binds a texture, surface or sampler to the module's variable of that name, for the launches that follow.

        >>> import numpy as np, ptxvm
        >>> vm = ptxvm.Vm()
        >>> module = vm.load(".version 6.4\\n.target sm_70\\n.address_size 64\\n.global .texref image;")
        >>> module.bind("image", ptxvm.Texture(ptxvm.Texels(vm, np.zeros(4, np.float32))))
        """
        self._native.bind(name, what._descriptor(self._vm))

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self._texts)
        return f"Module({names}: {', '.join(self.kernels) or 'no kernels'})"

    def _repr_html_(self) -> str:
        from .notebook import highlight

        return highlight(self.text)._repr_html_()


class _Placed:
    """Memory of a variable, which the module keeps."""

    def __init__(self, module: Module, address: int, size: int) -> None:
        self._module = module
        self.address = address
        self.bytes = size

    def mark_written(self) -> None:
        """Variables have values from the start."""
