"""The PTX virtual machine: runs CUDA kernels on any CPU.

>>> import numpy as np, ptxvm
>>> vm = ptxvm.Vm()
>>> module = vm.load('''
... .version 6.4
... .target sm_70
... .address_size 64
... .visible .entry scale(.param .f32 by, .param .u64 data)
... {
...     .reg .b32 %i;
...     .reg .f32 %by, %x;
...     .reg .b64 %at, %offset;
...     ld.param.f32 %by, [by];
...     ld.param.u64 %at, [data];
...     mov.u32 %i, %tid.x;
...     mul.wide.u32 %offset, %i, 4;
...     add.u64 %at, %at, %offset;
...     ld.global.f32 %x, [%at];
...     mul.f32 %x, %x, %by;
...     st.global.f32 [%at], %x;
...     ret;
... }''')
>>> data = np.array([1, 2, 3], np.float32)
>>> report = module["scale"][1, 3](2.5, data)
>>> data
array([2.5, 5. , 7.5], dtype=float32)
>>> report.ctas, report.thread_instructions
(1, 27)

A mistake in the text raises :class:`RejectedError`, a mistake of a running kernel :class:`TrapError`. ``str(error)`` is the report as the command line
prints it, and its parts are attributes. ``python -m ptxvm`` is the command line, and ``pytest --ptxvm`` runs any suite of CUDA tests on the CPU.
"""

from ._native import VERSION as __version__
from .arrays import DeviceArray
from .errors import ArgumentError, Diagnostic, Error, MachineError, RejectedError, TrapError, UsageError
from .kernels import Kernel, Launcher, Parameter, Resources
from .modules import Module
from .notebook import Html, highlight
from .report import Report
from .sanitizers import Finding, FindingsError, OtherAccess, Sanitizer, sanitize
from .streams import Event, Pending, Stream
from .sweeps import Case, Result, Sweep, cases, sweep
from .textures import Sampler, Surface, Texels, Texture
from .tools import Form, check, codes, explain, format, isa
from .vm import Vm

__all__ = [
    "ArgumentError",
    "Case",
    "DeviceArray",
    "Diagnostic",
    "Error",
    "Event",
    "Finding",
    "FindingsError",
    "Form",
    "Html",
    "Kernel",
    "Launcher",
    "MachineError",
    "Module",
    "OtherAccess",
    "Parameter",
    "Pending",
    "RejectedError",
    "Report",
    "Resources",
    "Result",
    "Sampler",
    "Sanitizer",
    "Stream",
    "Surface",
    "Sweep",
    "Texels",
    "Texture",
    "TrapError",
    "UsageError",
    "Vm",
    "__version__",
    "cases",
    "check",
    "codes",
    "explain",
    "format",
    "highlight",
    "isa",
    "sanitize",
    "sweep",
]
