"""Calls the CUDA driver library by its C functions, as any program does, and checks what a kernel computed."""
import ctypes

PTX = open("/tmp/double.ptx", "rb").read() + b"\0"
cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert status == 0, f"{name}: {status}"


count = 64 * 256
context, module, function, device = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
data = ctypes.c_uint64()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
call("cuModuleLoadData", ctypes.byref(module), PTX)
call("cuModuleGetFunction", ctypes.byref(function), module, b"double_all")
call("cuMemAlloc_v2", ctypes.byref(data), ctypes.c_size_t(4 * count))
host = (ctypes.c_uint32 * count)(*range(count))
call("cuMemcpyHtoD_v2", data, host, ctypes.c_size_t(4 * count))
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(data))
call("cuLaunchKernel", function, 64, 1, 1, 256, 1, 1, 0, None, arguments, None)
call("cuCtxSynchronize")
call("cuMemcpyDtoH_v2", host, data, ctypes.c_size_t(4 * count))
assert list(host) == [2 * i for i in range(count)]
print("driver: right")
