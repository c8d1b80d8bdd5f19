"""Triton without torch: kernels on numpy arrays of the host, checked with numpy."""
import sys
import numpy as np
import triton
import triton.language as tl

NAMES = {"float32": "fp32", "float16": "fp16", "int32": "i32", "int64": "i64", "float64": "fp64", "int8": "i8"}


class Array:
    """What Triton takes for a tensor: a dtype and an address."""

    def __init__(self, array, dtype=None):
        self.array = np.ascontiguousarray(array)
        self.dtype = getattr(tl, dtype or str(array.dtype))

    def data_ptr(self):
        return self.array.ctypes.data


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, values / tl.sum(values, axis=0), mask=mask)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + inner[None, :], mask=(rows[:, None] < M) & (inner[None, :] < K), other=0.0)
        right = tl.load(b + inner[:, None] * N + columns[None, :], mask=(inner[:, None] < K) & (columns[None, :] < N), other=0.0)
        total += tl.dot(left, right, input_precision="ieee")
    tl.store(c + rows[:, None] * N + columns[None, :], total, mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def exact_matmul(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, KIND: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=KIND)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + inner[None, :], eviction_policy="evict_first")
        right = tl.load(b + inner[:, None] * N + columns[None, :], eviction_policy="evict_last")
        total += tl.dot(left, right, out_dtype=KIND)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(out + values, 1, mask=at < n)


@triton.jit
def scan_and_sort(x, sums, ordered, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at)
    tl.store(sums + at, tl.cumsum(values, axis=0))
    tl.store(ordered + at, tl.sort(values))


rng = np.random.default_rng(1)
x, y = rng.standard_normal(5000, np.float32), rng.standard_normal(5000, np.float32)
out = Array(np.zeros_like(x))
add[(triton.cdiv(5000, 1024),)](Array(x), Array(y), out, 5000, BLOCK=1024)
np.testing.assert_array_equal(out.array, x + y)
print("add")

x = rng.standard_normal((37, 100), np.float32)
out = Array(np.zeros_like(x))
softmax[(37,)](Array(x), out, 100, BLOCK=128)
e = np.exp(x - x.max(1, keepdims=True))
np.testing.assert_allclose(out.array, e / e.sum(1, keepdims=True), rtol=1e-5)
print("softmax")

for m, n, k in [(64, 64, 64), (70, 50, 90)]:
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    c = Array(np.zeros((m, n), np.float32))
    matmul[(triton.cdiv(m, 32), triton.cdiv(n, 32))](Array(a), Array(b), c, m, n, k, BM=32, BN=32, BK=32)
    np.testing.assert_allclose(c.array, a @ b, rtol=1e-4, atol=1e-4)
print("matmul")

# Small integers, whose sums are exact in every type: from compute capability 8.0 on these are `mma` of each, fed by `cp.async` and `ldmatrix`.
m, n, k = 128, 64, 96
x, y = rng.integers(-8, 9, (m, k)), rng.integers(-8, 9, (k, n))
newer = triton.runtime.driver.active.get_current_target().arch >= 80
# Before, Triton itself does not compile the others.
for name in ("float16", "bfloat16", "float32", "int8") if newer else ("float16",):
    kind = "int32" if name == "int8" else "float32"
    if name == "bfloat16":
        a, b = (Array((z.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16), name) for z in (x, y))
    else:
        a, b = (Array(z.astype(name)) for z in (x, y))
    c = Array(np.zeros((m, n), kind))
    exact_matmul[(m // 64, n // 32)](a, b, c, n, k, BM=64, BN=32, BK=32, KIND=getattr(tl, kind))
    np.testing.assert_array_equal(c.array, x @ y)
print("matmul of other types")

values = rng.integers(0, 16, 10000).astype(np.int32)
counts = Array(np.zeros(16, np.int32))
histogram[(triton.cdiv(10000, 256),)](Array(values), counts, 10000, BLOCK=256)
np.testing.assert_array_equal(counts.array, np.bincount(values, minlength=16))
print("histogram")

values = rng.integers(-1000, 1000, 256).astype(np.int32)
sums, ordered = Array(np.zeros(256, np.int32)), Array(np.zeros(256, np.int32))
scan_and_sort[(1,)](Array(values), sums, ordered, BLOCK=256)
np.testing.assert_array_equal(sums.array, np.cumsum(values))
np.testing.assert_array_equal(ordered.array, np.sort(values))
print("scan and sort")
