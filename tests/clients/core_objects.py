"""cuda.core: devices, streams, buffers, programs from PTX, launches, the linker."""
import pathlib
import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Linker, LinkerOptions, ObjectCode, launch

device = Device()
device.set_current()
stream = device.create_stream()
text = pathlib.Path(__file__).with_name("kernels.ptx").read_bytes()
kernel = ObjectCode.from_ptx(text).get_kernel("scale")
x = np.random.default_rng(4).random(3000, np.float32)
a, b = device.allocate(x.nbytes, stream=stream), device.allocate(x.nbytes, stream=stream)
pinned = LegacyPinnedMemoryResource().allocate(x.nbytes)
view = np.from_dlpack(pinned).view(np.float32)
view[:] = x
pinned.copy_to(a, stream=stream)
launch(stream, LaunchConfig(grid=12, block=256), kernel, b, a, np.float32(4), np.uint32(3000))
b.copy_to(pinned, stream=stream)
stream.sync()
np.testing.assert_allclose(view, x * 4 + 1, rtol=1e-6)

start, end = device.create_event(), device.create_event()
stream.record(start)
stream.record(end)
end.sync()

# Two texts that need each other.
one = b""".version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b32 r) twice (.param .b32 x);
.visible .entry go(.param .u64 out) {
  .reg .b32 %r<3>; .reg .b64 %rd;
  ld.param.u64 %rd, [out];
  { .param .b32 a; .param .b32 b; st.param.b32 [a], 21; call.uni (b), twice, (a); ld.param.b32 %r1, [b]; }
  st.global.u32 [%rd], %r1;
  ret;
}
"""
two = b""".version 7.0
.target sm_70
.address_size 64
.visible .func (.param .b32 r) twice (.param .b32 x) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x]; add.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret;
}
"""
linked = Linker(ObjectCode.from_ptx(one), ObjectCode.from_ptx(two), options=LinkerOptions(arch="sm_80")).link("cubin")
launch(stream, LaunchConfig(grid=1, block=1), linked.get_kernel("go"), b)
b.copy_to(pinned, stream=stream)
stream.sync()
assert np.from_dlpack(pinned).view(np.uint32)[0] == 42
del view
pinned.close()
print("cuda.core works on", device.name)
