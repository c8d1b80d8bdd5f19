"""The Python package by itself: a kernel on numpy's arrays, in native code."""
import numpy as np

import ptxvm

vm = ptxvm.Vm()
kernel = vm.load("/tmp/double.ptx")["double_all"]
data = np.arange(64 * 256, dtype=np.uint32)
report = kernel[64, 256].with_options(engine="jit")(data)
np.testing.assert_array_equal(data, 2 * np.arange(64 * 256, dtype=np.uint32))
assert report.native, report
print("extension: right")
