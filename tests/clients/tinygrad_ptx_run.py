"""tinygrad's PTX on host memory: its mock of the driver keeps buffers in the process and runs kernels by `ptx_run`.

tinygrad's own mock is in its repository, not in its package; this one offers the functions that its CUDA device calls.
"""
import ctypes, pathlib, runpy, sys, types
from tinygrad.runtime.autogen import cuda as original

library = ctypes.CDLL("libgpuocelot.so")
mock = types.ModuleType("test.mockgpu.cuda.cuda")
mock.__dict__.update({name: value for name, value in vars(original).items() if not name.startswith("__")})
alive, texts, numbers = {}, {}, iter(range(1, 1 << 60))


def number(pointer):
    return pointer if isinstance(pointer, int) else pointer.value


def give(target, value):
    target._obj.value = value
    return 0


def allocate(target, size):
    memory = ctypes.create_string_buffer(size)
    alive[ctypes.addressof(memory)] = memory
    return give(target, ctypes.addressof(memory))


def load(module, image):
    key = next(numbers)
    texts[key] = ctypes.create_string_buffer(image)
    return give(module, key)


def capability(major, minor, device):
    return give(major, 3) or give(minor, 5)


def launch(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra):
    values = [getattr(extra, field[0]) for field in extra._real_fields_]
    values = (ctypes.c_void_p * len(values))(*[number(value) for value in values])
    return library.ptx_run(texts[number(function)], len(values), values, bx, by, bz, gx, gy, gz, shared)


def copy(to, source, size, stream=None):
    ctypes.memmove(number(to), source if not hasattr(source, "value") else source.value, size)
    return 0


def done(*arguments):
    return 0


functions = {
    "cuMemAlloc_v2": allocate, "cuMemHostAlloc": lambda target, size, flags: allocate(target, size),
    "cuMemFree_v2": lambda pointer: alive.pop(number(pointer), None) and 0 or 0,
    "cuMemFreeHost": lambda pointer: alive.pop(number(pointer), None) and 0 or 0,
    "cuMemcpyHtoDAsync_v2": copy, "cuMemcpyDtoH_v2": copy, "cuMemcpyDtoDAsync_v2": copy,
    "cuDeviceGet": give, "cuDeviceGetCount": lambda count: give(count, 1), "cuDeviceComputeCapability": capability,
    "cuCtxCreate_v2": lambda context, flags, device: give(context, 1), "cuModuleLoadData": load,
    "cuModuleGetFunction": lambda function, module, name: give(function, number(module)),
    "cuModuleUnload": lambda module: texts.pop(number(module), None) and 0 or 0,
    "cuLaunchKernel": launch, "cuEventCreate": lambda event, flags: give(event, next(numbers)),
    "cuEventElapsedTime": lambda time, start, end: give(time, 0.001),
}
for name in ["cuInit", "cuCtxSetCurrent", "cuCtxSynchronize", "cuEventRecord", "cuEventSynchronize", "cuEventDestroy_v2",
             "cuFuncSetAttribute", "cuStreamWaitEvent"]:
    functions[name] = done
mock.__dict__.update(functions)
for name in ["test", "test.mockgpu"]:
    sys.modules[name] = types.ModuleType(name)
package = types.ModuleType("test.mockgpu.cuda")
package.cuda = mock
sys.modules["test.mockgpu.cuda"] = package
runpy.run_path(str(pathlib.Path(__file__).with_name("tinygrad_ops.py")), run_name="__main__")
