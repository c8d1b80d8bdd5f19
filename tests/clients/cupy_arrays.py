"""CuPy on our runtime library and cuBLAS: arrays, element-wise kernels, reductions, products, raw kernels, streams."""
import ctypes
import glob
import os

import numpy as np
import nvidia

# CuPy's modules are linked with NVIDIA's libraries, which stand in packages of their own and not on the loader's path. The runtime library and
# cuBLAS are ours, which the loader finds first.
order = ("nvrtc", "nvjitlink", "cufft", "curand", "cusparse", "cusolver")
files = glob.glob(os.path.join(list(nvidia.__path__)[0], "*", "lib", "lib*.so.*"))
for part in order:
    for file in sorted(file for file in files if f"/{part}/" in file or f"/cuda_{part}/" in file):
        try:
            ctypes.CDLL(file, ctypes.RTLD_GLOBAL)
        except OSError:
            pass  # one that needs another that comes later
import cupy as cp

rng = np.random.default_rng(0)
x, y = rng.random((300, 200), np.float32), rng.random((300, 200), np.float32)
a, b = cp.asarray(x), cp.asarray(y)
np.testing.assert_array_equal(cp.asnumpy(a), x)
np.testing.assert_allclose(cp.asnumpy(a + b * 2), x + y * 2, rtol=1e-6)
np.testing.assert_allclose(cp.asnumpy(cp.exp(a).sum(axis=1)), np.exp(x).sum(1), rtol=1e-5)
np.testing.assert_array_equal(cp.asnumpy(a.T[::2].copy()), x.T[::2])
np.testing.assert_allclose(float(a.mean()), x.mean(), rtol=1e-5)
np.testing.assert_array_equal(cp.asnumpy(cp.arange(1000)[::-1]), np.arange(1000)[::-1])
np.testing.assert_allclose(cp.asnumpy(a @ b.T), x @ y.T, rtol=1e-4)
np.testing.assert_allclose(cp.asnumpy(a @ b[0]), x @ y[0], rtol=1e-4)
square = rng.random((6, 20, 20)) + np.eye(20) * 5
np.testing.assert_allclose(cp.asnumpy(cp.matmul(cp.asarray(square), cp.asarray(square))), square @ square)
kernel = cp.RawKernel(r"""
extern "C" __global__ void axpy(float* y, const float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}""", "axpy")
out = cp.zeros(1000, np.float32)
source = cp.arange(1000, dtype=np.float32)
with cp.cuda.Stream():
    kernel((8,), (128,), (out, source, np.float32(3), np.int32(1000)))
    cp.cuda.get_current_stream().synchronize()
np.testing.assert_array_equal(cp.asnumpy(out), np.arange(1000, dtype=np.float32) * 3)
print("CuPy works on", cp.cuda.runtime.getDeviceProperties(0)["name"].decode())
