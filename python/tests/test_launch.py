"""Launches against numpy: arguments, arrays, shapes, options."""
import ctypes
import threading
import time

import numpy as np
import pytest

import ptxvm
import kernels as k

ENGINES = ["interp", "jit"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [1, 31, 256, 1000])
def test_saxpy(vm, engine, n):
    x, y = np.arange(n, dtype=np.float32), np.linspace(0, 1, n, dtype=np.float32)
    want = np.float32(2.5) * x + y
    report = vm.load(k.SAXPY)["saxpy"][(n + 255) // 256, 256].with_options(engine=engine)(n, 2.5, x, y)
    np.testing.assert_array_equal(y, want)
    assert report.ctas == (n + 255) // 256
    assert report.native == (engine == "jit")


@pytest.mark.parametrize("engine", ENGINES)
def test_squares_in_shared_memory(vm, engine):
    x = np.arange(1024, dtype=np.float32) % 16
    out = np.zeros(4, np.float32)
    vm.load(k.SQUARES)["squares"][4, 256].with_options(engine=engine)(x, out)
    np.testing.assert_array_equal(out, (x**2).reshape(4, 256).sum(1))


INTEGERS = [
    (type_, value)
    for type_, values in {
        "u8": [0, 255],
        "s8": [-128, 127],
        "u16": [0, 65535, np.uint8(7)],
        "s16": [-32768, 32767],
        "u32": [0, 2**32 - 1, -1, True, np.int64(5), np.bool_(True), ctypes.c_uint32(9)],
        "s32": [-(2**31), 2**31 - 1, np.int8(-3)],
        "u64": [2**64 - 1, np.uint64(2**63), -1],
        "s64": [-(2**63), 2**63 - 1],
        "b32": [0xDEADBEEF, -5],
        "b64": [2**63],
    }.items()
    for value in values
]


@pytest.mark.parametrize("type_, value", INTEGERS, ids=lambda v: str(v))
def test_integers(vm, type_, value):
    bytes_ = int(type_[1:]) // 8
    out = np.zeros(8, np.uint8)
    vm.load(k.store(type_))["store"][1, 1](value, out)
    number = int(value.value if isinstance(value, ctypes._SimpleCData) else value)
    assert out.tobytes() == (number % 2 ** (8 * bytes_)).to_bytes(bytes_, "little").ljust(8, b"\0")


FLOATS = [
    ("f32", 2.5, np.float32),
    ("f32", 3, np.float32),
    ("f32", np.float64(0.1), np.float32),
    ("f32", np.int16(-7), np.float32),
    ("f32", 1e300, np.float32),
    ("f32", float("nan"), np.float32),
    ("f64", 0.1, np.float64),
    ("f64", np.float32(0.1), np.float64),
    ("f64", -1, np.float64),
    ("b32", np.float32(1.5), np.float32),
    ("b64", np.float64(1.5), np.float64),
    ("f16", 0.1, np.float16),
    ("f32", np.array(4.0), np.float32),
]


@pytest.mark.parametrize("type_, value, as_", FLOATS, ids=lambda v: str(v))
def test_floats(vm, type_, value, as_):
    out = np.zeros(1, as_)
    vm.load(k.store(type_))["store"][1, 1](value, out)
    with np.errstate(over="ignore"):
        assert out.tobytes() == as_(value).tobytes()


WRONG_SCALARS = [
    ("u32", 2.5, "expected an integer for `.u32 value`; found the float 2.5"),
    ("u32", 2**32, "4294967296 does not fit `.u32 value`, which has 32 bits"),
    ("u32", -(2**31) - 1, "does not fit"),
    ("s32", "7", "found '7' of type str"),
    ("u8", 256, "which has 8 bits"),
    ("s8", -129, "which has 8 bits"),
    ("u64", 2**64, "which has 64 bits"),
    ("f32", "x", "expected a number for `.f32 value`"),
    ("f32", 1j, "expected a number"),
    ("f32", True, "expected a number"),
    ("f32", None, "found NoneType"),
    ("b32", 1.5, "numpy.float32(1.5) passes its bits"),
    ("b32", np.float64(1.5), "expected an integer"),
    ("u16", [1], "found list"),
    ("f32", np.zeros(3, np.float32), "takes a number; found an array of float32"),
]


@pytest.mark.parametrize("type_, value, said", WRONG_SCALARS, ids=lambda v: str(v))
def test_wrong_scalars_say_what_was_expected(vm, type_, value, said):
    kernel = vm.load(k.store(type_))["store"]
    with pytest.raises(ptxvm.ArgumentError) as error:
        kernel[1, 1](value, np.zeros(8, np.uint8))
    assert said in str(error.value)
    assert "argument 1 (`value`) of `store`" in str(error.value)
    assert isinstance(error.value, (TypeError, ValueError))


def test_number_of_arguments(vm):
    kernel = vm.load(k.SAXPY)["saxpy"]
    with pytest.raises(ptxvm.ArgumentError, match=r"has 4 parameters \(.u32 n, .f32 a, .u64 x, .u64 y\); found 1 argument$"):
        kernel[1, 1](3)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float16", "float64", "complex64", "bool", "S5", [("a", "i4"), ("b", "f8")]])
def test_arrays_of_any_plain_type_come_back_as_they_were(vm, dtype):
    x = np.zeros(16, dtype)
    x.view(np.uint8)[:] = np.arange(x.nbytes) % 2
    before = x.copy()
    out = np.zeros(8, np.uint8)
    vm.load(k.store("u64"))["store"][1, 1](x, out)
    assert x.tobytes() == before.tobytes()
    assert out.view(np.uint64)[0] % 256 == 0


def test_arrays_in_fortran_order(vm):
    x = np.asfortranarray(np.arange(12, dtype=np.int32).reshape(3, 4))
    want = x + 1
    vm.load(k.INCREMENT)["increment"][1, 12](x)
    np.testing.assert_array_equal(x, want)


def test_the_same_array_twice_is_one_array(vm):
    x = np.arange(64, dtype=np.float32)
    want = np.float32(2) * x + x
    vm.load(k.SAXPY)["saxpy"][1, 64](64, 2, x, x)
    np.testing.assert_array_equal(x, want)


def test_slices_are_arrays(vm):
    x = np.arange(10, dtype=np.int32)
    vm.load(k.INCREMENT)["increment"][1, 3](x[2:5])
    np.testing.assert_array_equal(x, [0, 1, 3, 4, 5, 5, 6, 7, 8, 9])


def test_read_only_arrays_are_copied_in_alone(vm):
    x = np.arange(3, dtype=np.int32)
    x.flags.writeable = False
    vm.load(k.INCREMENT)["increment"][1, 3](x)
    np.testing.assert_array_equal(x, [0, 1, 2])


def test_arrays_without_elements(vm):
    x = np.zeros(0, np.float32)
    vm.load(k.SAXPY)["saxpy"][1, 32](0, 1, x, x)


@pytest.mark.parametrize(
    "array, said",
    [
        (np.zeros(10, np.int32)[::2], "expected a contiguous array; found strides (8,) of shape (5,)"),
        (np.zeros((4, 4), np.int32)[:, :2], "contiguous"),
        (np.zeros(3, object), "objects of Python"),
        (np.zeros(3, ">i4"), "byte order"),
    ],
    ids=["strides", "columns", "objects", "byte order"],
)
def test_arrays_that_do_not_fit(vm, array, said):
    with pytest.raises(ptxvm.ArgumentError) as error:
        vm.load(k.INCREMENT)["increment"][1, 1](array)
    assert said in str(error.value)


def test_arrays_are_unchanged_after_a_trap(vm):
    x = np.arange(4, dtype=np.int32)
    with pytest.raises(ptxvm.TrapError):
        vm.load(k.INCREMENT)["increment"][1, 5](x)
    np.testing.assert_array_equal(x, [0, 1, 2, 3])


class Structure(ctypes.Structure):
    _fields_ = [("a", ctypes.c_double), ("b", ctypes.c_int32), ("c", ctypes.c_int64)]


RECORD = np.dtype([("a", "f8"), ("b", "i4"), ("c", "i8")], align=True)


@pytest.mark.parametrize(
    "value",
    [
        bytes(range(24)),
        bytearray(24),
        Structure(1.5, 2, 3),
        np.array((1.5, 2, 3), RECORD),
        np.array([(1.5, 2, 3)], RECORD)[0],
        np.arange(3.0),
        (ctypes.c_uint64 * 3)(1, 2, 3),
    ],
    ids=["bytes", "bytearray", "ctypes", "0-d", "record", "array", "ctypes array"],
)
def test_structures_by_value(vm, value):
    out = np.zeros(24, np.uint8)
    vm.load(k.STRUCTURE)["structure"][1, 1](value, out)
    want = value.tobytes() if hasattr(value, "tobytes") else bytes(value)
    assert out.tobytes() == want


@pytest.mark.parametrize("value, said", [(b"123", "has 24 bytes; found 3"), (7, "takes bytes"), (np.zeros(4), "found 32")])
def test_wrong_structures(vm, value, said):
    with pytest.raises(ptxvm.ArgumentError, match=said):
        vm.load(k.STRUCTURE)["structure"][1, 1](value, np.zeros(24, np.uint8))


def test_parameters_and_resources(vm):
    kernel = vm.load(k.STRUCTURE)["structure"]
    assert [str(p) for p in kernel.parameters] == [".b8 s[24]", ".u64 at"]
    assert [(p.offset, p.bytes) for p in kernel.parameters] == [(0, 24), (24, 8)]
    resources = vm.load(k.SQUARES)["squares"].resources
    assert resources.shared == 1024 and resources.target == "sm_80" and resources.ptx_version == (7, 0)


@pytest.mark.parametrize(
    "grid, block, ctas, threads",
    [(2, 32, 2, 64), ((2, 3), (4, 2, 2), 6, 96), ([1, 1, 2], np.int32(5), 2, 10), ((4,), (1,), 4, 4)],
)
def test_shapes(vm, grid, block, ctas, threads):
    report = vm.load(k.entry("k", "", "ret;"))["k"][grid, block]()
    assert (report.ctas, report.thread_instructions) == (ctas, threads)


@pytest.mark.parametrize(
    "index, said",
    [
        ((0, 1), "`grid.x` is 0"),
        ((1, -1), "`block.x` is -1"),
        ((1, (1, 1, 1, 1)), "up to three; found 4"),
        ((1, "32"), "whole number"),
        ((1, 2.0), "up to three; found 2.0"),
        ((1, None), "up to three; found NoneType"),
        ((1, True), "bool"),
        ((2**32, 1), "expected 1 to 4294967295"),
        (7, "expected `kernel\\[grid, block\\]`"),
        ((1, 1, "stream"), "a stream is what `Vm.stream` makes"),
        ((1, 1, None, -4), "`shared` is -4"),
    ],
)
def test_wrong_shapes(vm, index, said):
    with pytest.raises(ptxvm.UsageError, match=said):
        vm.load(k.entry("k", "", "ret;"))["k"][index]


def test_launches_that_do_not_fit_the_machine(vm):
    with pytest.raises(ptxvm.UsageError, match="1024"):
        vm.load(k.entry("k", "", "ret;"))["k"][1, 2048]()


def test_dynamic_shared_memory(vm):
    out = np.zeros(1, np.uint32)
    vm.load(k.DYNAMIC)["dynamic"][1, 32, None, 128](out)
    assert out[0] == 31
    with pytest.raises(ptxvm.TrapError) as error:
        vm.load(k.DYNAMIC)["dynamic"][1, 32](out)
    assert error.value.space == "shared"


def test_options_of_launches(vm):
    launcher = vm.load(k.entry("k", "", "ret;"))["k"][1, 1]
    assert launcher.with_options(threads=1, seed=3, engine="interp")().threads == 1
    with pytest.raises(ptxvm.UsageError, match="no option `thread`; it has block, cooperative"):
        launcher.with_options(thread=1)
    with pytest.raises(ptxvm.UsageError, match="`engine` is `auto`, `interp` or `jit`, not `gpu`"):
        launcher.with_options(engine="gpu")()
    for timeout in (0, -1, float("nan")):
        with pytest.raises(ptxvm.UsageError, match="positive number of seconds"):
            launcher.with_options(timeout=timeout)()
    with pytest.raises(ptxvm.UsageError, match="`threads` is 0"):
        launcher.with_options(threads=0)()


def test_limits(vm):
    launcher = vm.load(k.ENDLESS)["endless"][1, 32]
    with pytest.raises(ptxvm.TrapError) as error:
        launcher.with_options(timeout=0.05)()
    assert error.value.kind == "time_limit"
    with pytest.raises(ptxvm.TrapError) as error:
        launcher.with_options(max_steps=1000)()
    assert error.value.kind == "step_limit"


def test_an_exception_of_progress_stops_the_launch(vm):
    told = []

    def progress(finished, total):
        told.append((finished, total))
        raise RuntimeError("enough")

    start = time.monotonic()
    with pytest.raises(RuntimeError, match="enough"):
        vm.load(k.ENDLESS)["endless"][3, 32].with_options(progress=progress)()
    assert told == [(0, 3)] and time.monotonic() - start < 10


def test_the_interpreter_lock_is_free_while_a_kernel_runs(vm):
    launcher = vm.load(k.ENDLESS)["endless"][1, 32].with_options(timeout=0.5)
    ended = []

    def launch():
        try:
            launcher()
        except ptxvm.TrapError as error:
            ended.append(error.kind)

    thread = threading.Thread(target=launch)
    thread.start()
    turns = 0
    while thread.is_alive():
        turns += 1
        time.sleep(0.01)
    assert turns > 5 and ended == ["time_limit"]


def test_what_kernels_print(vm):
    text = k.HEAD + """
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 form[4] = {104, 105, 10, 0};
.visible .entry k()
{
    .reg .b64 %f;
    mov.u64 %f, form;
    cvta.global.u64 %f, %f;
    {
    .param .b64 p0; .param .b64 p1; .param .b32 r0;
    st.param.b64 [p0], %f;
    st.param.b64 [p1], 0;
    call (r0), vprintf, (p0, p1);
    }
    ret;
}"""
    assert vm.load(text)["k"][1, 3]().output == "hi\n" * 3


def test_declared_types(vm):
    kernel = vm.load(k.SAXPY)["saxpy"].declare("int32", "float32", "float32[:]", "float32[4]")
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    kernel[1, 4](4, 2, x, y)
    np.testing.assert_array_equal(y, 2 * x)
    for arguments, said in [
        ((4, 2, x.astype(np.float64), y), "argument 3 (`x`) of `saxpy`: expected an array of float32; found float64"),
        ((4, 2, x, y[:2].copy()), "expected the shape of `float32[4]`; found (2,)"),
        ((4, 2, x.reshape(2, 2), y), "expected the shape of `float32[:]`; found (2, 2)"),
        ((4, 2, 7, y), "expected an array `float32[:]`; found 7"),
        ((x, 2, x, y), "expected a number of type `int32`; found an array of float32"),
    ]:
        with pytest.raises(ptxvm.ArgumentError) as error:
            kernel[1, 4](*arguments)
        assert said in str(error.value)
    with pytest.raises(ptxvm.UsageError, match="has 4 parameters; found 1 type"):
        kernel.declare("int32")
    for wrong in ("float33", "float32[x]", "float32["):
        with pytest.raises(ptxvm.UsageError):
            kernel.declare("int32", "float32", wrong, "float32[:]")


def test_listings(vm):
    kernel = vm.load(k.SAXPY)["saxpy"]
    assert "ret" in kernel.listing(256)
    assert "define" in kernel.listing((32, 2), "llvm")
    with pytest.raises(ptxvm.UsageError, match="`llvm` or `asm`, not `sass`"):
        kernel.listing(32, "sass")


def test_32_bit_devices():
    vm = ptxvm.Vm(address_bits=32, cache=False)
    text = ".version 6.4\n.target sm_70\n.address_size 32\n.visible .entry k(.param .u32 at) { .reg .b32 %a; ld.param.u32 %a, [at]; st.global.u32 [%a], 9; ret; }"
    out = np.zeros(1, np.uint32)
    vm.load(text)["k"][1, 1](out)
    assert out[0] == 9
    with pytest.raises(ptxvm.UsageError):
        vm.load(k.SAXPY)
