"""PyCUDA: a module from PTX, arrays on the device through PTX, streams, events, errors."""
import pathlib
import numpy as np
import pycuda.driver as cuda
import pycuda.autoinit
from pycuda import gpuarray

text = pathlib.Path(__file__).with_name("kernels.ptx").read_bytes()
module = cuda.module_from_buffer(text)
scale = module.get_function("scale")
x = np.random.default_rng(2).random(1000, np.float32)
on_device, out = cuda.mem_alloc(x.nbytes), cuda.mem_alloc(x.nbytes)
cuda.memcpy_htod(on_device, x)
scale(out, on_device, np.float32(3), np.uint32(1000), block=(128, 1, 1), grid=(8, 1))
result = np.empty_like(x)
cuda.memcpy_dtoh(result, out)
np.testing.assert_allclose(result, x * 3 + 1, rtol=1e-6)

address, size = module.get_global("calls")
calls = np.zeros(1, np.uint32)
cuda.memcpy_dtoh(calls, address)
assert calls[0] == 1000 and size == 4

array, target = gpuarray.to_gpu(x), gpuarray.empty(1000, np.float32)
scale.prepare("PPfI")
stream, start, end = cuda.Stream(), cuda.Event(), cuda.Event()
start.record(stream)
scale.prepared_async_call((8, 1), (128, 1, 1), stream, target.gpudata, array.gpudata, 2.0, 1000)
end.record(stream)
end.synchronize()
assert end.time_since(start) >= 0
np.testing.assert_allclose(target.get(), x * 2 + 1, rtol=1e-6)

numbers = np.arange(256, dtype=np.uint32)
on_device = cuda.to_device(numbers)
module.get_function("reverse")(on_device, block=(256, 1, 1), grid=(1, 1), shared=1024)
np.testing.assert_array_equal(cuda.from_device(on_device, (256,), np.uint32), numbers[::-1])

pinned = cuda.pagelocked_empty(1000, np.float32)
cuda.memcpy_dtoh_async(pinned, target.gpudata, stream)
stream.synchronize()
np.testing.assert_array_equal(pinned, target.get())
try:
    module.get_function("nothing")
    raise SystemExit("a kernel that does not exist was found")
except cuda.LogicError as error:
    assert "not found" in str(error).lower() or "nothing of this name" in str(error), error
print("PyCUDA works on", cuda.Device(0).name())
