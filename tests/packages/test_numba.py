"""Tests of numba kernels as a user writes them: nothing here knows ptxvm."""
import math

import numpy as np
import pytest
from numba import cuda, float32


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


@cuda.jit
def block_sums(x, out):
    part = cuda.shared.array(128, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    part[t] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    half = 64
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


@cuda.jit
def histogram(x, bins):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i], 1)


@cuda.jit
def gauss(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.exp(-x[i] * x[i])


@pytest.mark.parametrize("n", [1, 255, 1000])
def test_saxpy(n):
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    want = np.float32(2.5) * x + y
    saxpy[(n + 127) // 128, 128](np.float32(2.5), x, y)
    np.testing.assert_allclose(y, want, rtol=1e-6)


def test_block_sums():
    x = np.random.default_rng(1).random(1000, np.float32)
    out = np.zeros(8, np.float32)
    block_sums[8, 128](x, out)
    np.testing.assert_allclose(out.sum(), x.sum(), rtol=1e-5)


def test_histogram():
    x = np.random.default_rng(2).integers(0, 16, 5000).astype(np.int32)
    bins = np.zeros(16, np.int32)
    histogram[40, 128](x, bins)
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=16))


def test_arrays_on_the_device():
    x = cuda.to_device(np.linspace(-2, 2, 100))
    out = cuda.device_array_like(x)
    gauss[1, 128](x, out)
    np.testing.assert_allclose(out.copy_to_host(), np.exp(-np.linspace(-2, 2, 100) ** 2), rtol=1e-14)
