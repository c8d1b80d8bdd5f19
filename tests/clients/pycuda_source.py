"""PyCUDA: modules and kernels from CUDA C++, compiled by the stand-in for nvcc (`ptxvm exec --nvcc`). The argument
is a folder with CUDA's headers."""
import os
import sys
import numpy as np

os.environ["CUDA_PATH"] = sys.argv[1]
import pycuda.driver as cuda
import pycuda.autoinit
from pycuda import cumath, gpuarray
from pycuda.compiler import SourceModule
from pycuda.elementwise import ElementwiseKernel
from pycuda.reduction import ReductionKernel
from pycuda.scan import InclusiveScanKernel

module = SourceModule(
    """
#include <stdio.h>
__constant__ float factor[1];
__global__ void scale(float *data, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= factor[0];
}
"""
)
numbers = np.arange(1000, dtype=np.float32)
cuda.memcpy_htod(module.get_global("factor")[0], np.float32(3).tobytes())
scaled = numbers.copy()
module.get_function("scale")(cuda.InOut(scaled), np.int32(1000), block=(128, 1, 1), grid=(8, 1))
np.testing.assert_array_equal(scaled, 3 * numbers)

x, y = gpuarray.to_gpu(numbers), gpuarray.to_gpu(numbers[::-1].copy())
np.testing.assert_allclose((x * 2 + y).get(), numbers * 2 + numbers[::-1])
np.testing.assert_allclose(cumath.sin(x).get(), np.sin(numbers), atol=1e-6)
linear = ElementwiseKernel("float a, float *x, float *z", "z[i] = a * x[i] + 1", "linear")
z = gpuarray.empty_like(x)
linear(np.float32(5), x, z)
np.testing.assert_allclose(z.get(), 5 * numbers + 1)

dot = ReductionKernel(np.float32, "0", "a + b", "x[i] * y[i]", "float *x, float *y")
np.testing.assert_allclose(dot(x, y).get(), np.dot(numbers, numbers[::-1]), rtol=1e-5)
assert gpuarray.sum(x).get() == numbers.sum()
ones = gpuarray.to_gpu(np.ones(5000, np.int32))
InclusiveScanKernel(np.int32, "a + b")(ones)
np.testing.assert_array_equal(ones.get(), np.arange(1, 5001))

pairs = (numbers + 2j * numbers).astype(np.complex64)
on_device = gpuarray.to_gpu(pairs)
np.testing.assert_allclose((on_device * on_device).get(), pairs * pairs, rtol=1e-6)

try:
    SourceModule("__global__ void wrong(int *data) { data[0] = nonsense; }")
except cuda.CompileError as error:
    assert "nonsense" in str(error)
else:
    raise AssertionError("a wrong program compiled")
print("PyCUDA compiles for", cuda.Device(0).name())
