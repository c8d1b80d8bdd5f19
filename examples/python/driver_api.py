"""The CUDA driver API by ctypes alone: a device, a module from PTX, memory, a launch. Needs nothing but Python and libcuda.so.1."""

import array
import ctypes

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry square(.param .u64 data, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r2, %r2, %r3, %r4;
    setp.ge.u32 %p, %r2, %r1;
    @%p bra done;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd1, %rd1, %rd2;
    ld.global.u32 %r5, [%rd1];
    mul.lo.u32 %r5, %r5, %r5;
    st.global.u32 [%rd1], %r5;
done:
    ret;
}
"""

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status != 0:
        text = ctypes.c_char_p()
        cuda.cuGetErrorName(status, ctypes.byref(text))
        raise SystemExit(f"{name}: {text.value.decode()}")


device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
kernel, data = ctypes.c_void_p(), ctypes.c_uint64()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), PTX)
call("cuModuleGetFunction", ctypes.byref(kernel), module, b"square")

numbers = array.array("I", range(1000))
size = len(numbers) * numbers.itemsize
host = ctypes.c_void_p(numbers.buffer_info()[0])
call("cuMemAlloc_v2", ctypes.byref(data), ctypes.c_size_t(size))
call("cuMemcpyHtoD_v2", data, host, ctypes.c_size_t(size))
count = ctypes.c_uint32(len(numbers))
parameters = (ctypes.c_void_p * 2)(ctypes.addressof(data), ctypes.addressof(count))
call("cuLaunchKernel", kernel, 4, 1, 1, 256, 1, 1, 0, None, parameters, None)
call("cuMemcpyDtoH_v2", host, data, ctypes.c_size_t(size))
call("cuMemFree_v2", data)

assert list(numbers) == [i * i for i in range(1000)]
print("1000 squares are right")
