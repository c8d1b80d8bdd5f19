"""Triton on tensors of a torch without CUDA: run by hand, as no registry of Python packages has such a torch for Linux.

Triton asks torch whether there is a GPU, if torch has been imported; so it is told which driver it has, and the driver is initialised.
"""
import ctypes
import triton
import triton.language as tl
from triton.backends.nvidia.driver import CudaDriver

ctypes.CDLL("libcuda.so.1").cuInit(0)
triton.runtime.driver.set_active(CudaDriver())

import torch


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + at, values / tl.sum(values, axis=0), mask=at < columns)


x, y = torch.rand(10001), torch.rand(10001)
out = torch.empty_like(x)
add[(triton.cdiv(10001, 256),)](x, y, out, 10001, BLOCK=256)
assert torch.equal(out, x + y)
print("add")

x = torch.randn(37, 100)
out = torch.empty_like(x)
softmax[(37,)](x, out, 100, x.stride(0), BLOCK=128)
torch.testing.assert_close(out, torch.softmax(x, 1), rtol=1e-5, atol=1e-6)
print("softmax")
