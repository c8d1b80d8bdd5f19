"""Triton without torch: softmax of the rows of a matrix, on numpy arrays in host memory (ptxvm exec --host-pointers)."""

import numpy as np
import triton
import triton.language as tl


class Array:
    """What Triton takes for a tensor: an object with a type and an address."""

    def __init__(self, array):
        self.array = np.ascontiguousarray(array)
        self.dtype = {"float32": tl.float32}[str(array.dtype)]

    def data_ptr(self):
        return self.array.ctypes.data


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, values / tl.sum(values, axis=0), mask=mask)


x = np.random.default_rng(3).normal(size=(64, 100)).astype(np.float32)
out = np.zeros_like(x)
result = Array(out)
softmax[(64,)](Array(x), result, 100, BLOCK=128)

expected = np.exp(x - x.max(1, keepdims=True))
expected /= expected.sum(1, keepdims=True)
np.testing.assert_allclose(result.array, expected, rtol=1e-5)
print("softmax of 64 rows is numpy's to 5 digits")
