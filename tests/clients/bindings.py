"""cuda.bindings: the driver API from Python."""
import pathlib
import numpy as np
from cuda.bindings import driver


def check(result):
    error, *values = result
    assert error == driver.CUresult.CUDA_SUCCESS, error
    return values[0] if len(values) == 1 else values


check(driver.cuInit(0))
device = check(driver.cuDeviceGet(0))
context = check(driver.cuDevicePrimaryCtxRetain(device))
check(driver.cuCtxSetCurrent(context))
text = pathlib.Path(__file__).with_name("kernels.ptx").read_bytes()
module = check(driver.cuModuleLoadData(text + b"\0"))
kernel = check(driver.cuModuleGetFunction(module, b"scale"))
x = np.random.default_rng(4).random(3000, np.float32)
a, b = check(driver.cuMemAlloc(x.nbytes)), check(driver.cuMemAlloc(x.nbytes))
stream = check(driver.cuStreamCreate(0))
check(driver.cuMemcpyHtoDAsync(a, x.ctypes.data, x.nbytes, stream))
values = [np.array([int(b)], np.uint64), np.array([int(a)], np.uint64), np.array([2.5], np.float32), np.array([3000], np.uint32)]
args = np.array([value.ctypes.data for value in values], np.uint64)
check(driver.cuLaunchKernel(kernel, 12, 1, 1, 256, 1, 1, 0, stream, args.ctypes.data, 0))
result = np.empty_like(x)
check(driver.cuMemcpyDtoHAsync(result.ctypes.data, b, x.nbytes, stream))
check(driver.cuStreamSynchronize(stream))
np.testing.assert_allclose(result, x * np.float32(2.5) + 1, rtol=1e-6)

library = check(driver.cuLibraryLoadData(text + b"\0", [], [], 0, [], [], 0))
handle = check(driver.cuLibraryGetKernel(library, b"scale"))
check(driver.cuMemsetD8(b, 0, x.nbytes))
check(driver.cuLaunchKernel(handle, 12, 1, 1, 256, 1, 1, 0, 0, args.ctypes.data, 0))
check(driver.cuMemcpyDtoH(result.ctypes.data, b, x.nbytes))
np.testing.assert_allclose(result, x * np.float32(2.5) + 1, rtol=1e-6)
check(driver.cuLibraryUnload(library))

for memory in (a, b):
    check(driver.cuMemFree(memory))
error, = driver.cuModuleUnload(module)
assert error == driver.CUresult.CUDA_SUCCESS
error, _ = driver.cuModuleLoadData(b"not ptx\0")
assert error in (driver.CUresult.CUDA_ERROR_INVALID_PTX, driver.CUresult.CUDA_ERROR_INVALID_IMAGE), error
print("cuda.bindings works:", check(driver.cuDeviceGetName(64, device)).decode().strip("\0"))
