"""numba-cuda: vector add, reduction in shared memory, atomics, printf, cooperative groups, math."""
import math
import numpy as np
from numba import cuda, float32, int32


@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


@cuda.jit
def total(x, out):
    part = cuda.shared.array(256, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    part[t] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    half = 128
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.add(out, 0, part[0])


@cuda.jit
def count(x, bins):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i], 1)


@cuda.jit
def hello(n):
    if cuda.grid(1) == 0:
        print("from the kernel:", n)


@cuda.jit("void(int32[:,::1])")
def rows_in_order(m):
    column, grid = cuda.grid(1), cuda.cg.this_grid()
    for row in range(1, m.shape[0]):
        opposite = m.shape[1] - column - 1
        m[row, column] = m[row - 1, opposite] + 1
        grid.sync()


@cuda.jit
def functions(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.sqrt(x[i]) * math.exp(-x[i]) + math.sin(x[i]) / (1.0 + math.log(1.0 + x[i]))


rng = np.random.default_rng(5)
x, y = rng.random(10000, np.float32), rng.random(10000, np.float32)
out = np.zeros_like(x)
add[40, 256](x, y, out)
np.testing.assert_array_equal(out, x + y)
result = np.zeros(1, np.float32)
total[40, 256](x, result)
np.testing.assert_allclose(result[0], x.astype(np.float64).sum(), rtol=1e-4)
values = rng.integers(0, 10, 10000).astype(np.int32)
bins = np.zeros(10, np.int32)
count[40, 256](values, bins)
np.testing.assert_array_equal(bins, np.bincount(values, minlength=10))
hello[2, 32](42)
cuda.synchronize()
m = np.zeros((64, 128), np.int32)
rows_in_order[4, 32](m)
np.testing.assert_array_equal(m, np.arange(64)[:, None] * np.ones((1, 128), np.int32))
positive = rng.random(1000) * 5
out = np.zeros_like(positive)
functions[8, 128](positive, out)
want = np.sqrt(positive) * np.exp(-positive) + np.sin(positive) / (1 + np.log(1 + positive))
np.testing.assert_allclose(out, want, rtol=1e-12)
print("numba-cuda works")
