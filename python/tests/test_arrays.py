"""Arrays on the device, and what other libraries see of them."""
import gc

import numpy as np
import pytest

import ptxvm
import kernels as k


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float32", "complex128", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4)])
def test_values_come_back(vm, dtype, shape):
    x = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    array = vm.array(x)
    assert (array.shape, array.dtype, array.nbytes, array.ndim) == (x.shape, x.dtype, x.nbytes, x.ndim)
    copy = array.copy_to_host()
    np.testing.assert_array_equal(copy, x)
    assert not np.shares_memory(copy, array.numpy())


def test_launches_take_them_where_they_are(vm):
    array = vm.array(np.arange(8, dtype=np.int32))
    launcher = vm.load(k.INCREMENT)["increment"][1, 8]
    before = array.address
    launcher(array)
    launcher(array)
    np.testing.assert_array_equal(array.numpy(), np.arange(8) + 2)
    assert array.address == before and array.address % 256 == 0


def test_numpy_sees_the_memory_and_keeps_it(vm):
    view = vm.array(np.arange(1000, dtype=np.int32)).numpy()
    gc.collect()
    others = [vm.zeros(1000, "int32") for _ in range(10)]
    assert all(other.address != view.ctypes.data for other in others)
    np.testing.assert_array_equal(view, np.arange(1000))


def test_memory_is_freed(vm):
    used = vm.memory_usage[0]
    array = vm.zeros(1 << 20, "uint8")
    assert vm.memory_usage[0] >= used + (1 << 20)
    del array
    gc.collect()
    assert vm.memory_usage[0] == used


def test_array_interfaces(vm):
    array = vm.zeros((2, 3), "float32")
    for interface in (array.__array_interface__, array.__cuda_array_interface__):
        assert interface["data"] == (array.address, False)
        assert (interface["shape"], interface["typestr"], interface["version"]) == ((2, 3), "<f4", 3)
    assert vm.zeros(0).__cuda_array_interface__["data"] == (0, False)


def test_objects_with_a_cuda_array_interface(vm):
    array = vm.zeros(4, "int32")

    class Foreign:
        __cuda_array_interface__ = array.__cuda_array_interface__

    vm.load(k.INCREMENT)["increment"][1, 4](Foreign())
    np.testing.assert_array_equal(array.numpy(), [1] * 4)

    class Elsewhere:
        __cuda_array_interface__ = {**array.__cuda_array_interface__, "data": (16, False)}

    with pytest.raises(ptxvm.ArgumentError, match="0x10 lies in no memory of this device"):
        vm.load(k.INCREMENT)["increment"][1, 4](Elsewhere())

    class Strided:
        __cuda_array_interface__ = {**array.__cuda_array_interface__, "strides": (8,)}

    with pytest.raises(ptxvm.ArgumentError, match="contiguous"):
        vm.load(k.INCREMENT)["increment"][1, 4](Strided())


def test_dlpack_out(vm):
    array = vm.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert array.__dlpack_device__() == (1, 0)
    seen = np.from_dlpack(array)
    assert seen.ctypes.data == array.address
    np.testing.assert_array_equal(seen, array.numpy())
    del array
    gc.collect()
    np.testing.assert_array_equal(seen, np.arange(6, dtype=np.float32).reshape(2, 3))


def test_dlpack_in(vm):
    x = np.arange(5, dtype=np.int32)
    shared = vm.from_dlpack(x, writable=True)
    assert shared.address == x.ctypes.data
    vm.load(k.INCREMENT)["increment"][1, 5](shared)
    np.testing.assert_array_equal(x, [1, 2, 3, 4, 5])


def test_dlpack_in_of_another_device(vm):
    array = vm.array(np.arange(3, dtype=np.int32))
    assert vm.from_dlpack(array) is array
    with pytest.raises(ptxvm.UsageError, match="implements DLPack"):
        vm.from_dlpack([1, 2])


def test_lent_arrays(vm):
    x = np.zeros(4, np.int32)
    shared = vm.lend(x, name="mine")
    kernel = vm.load(k.INCREMENT)["increment"]
    kernel[1, 4](shared)
    np.testing.assert_array_equal(x, [1] * 4)
    with pytest.raises(ptxvm.TrapError) as error:
        kernel[1, 5](shared)
    assert "mine" in error.value.nearest
    with pytest.raises(ptxvm.UsageError, match="lent already"):
        vm.lend(x)
    address = shared.address
    del shared, error
    gc.collect()
    # The memory is no longer the kernel's.
    with pytest.raises(ptxvm.TrapError):
        kernel[1, 1](address)
    vm.lend(x)


@pytest.mark.parametrize(
    "array, said",
    [
        (np.zeros(4)[::2], "contiguous"),
        (np.broadcast_to(np.zeros(1), (4,)), "contiguous"),
        (np.zeros(3, object), "objects of Python"),
        (np.zeros(0), "without elements"),
        ([1, 2], "expected an array of numpy; found list"),
        (np.frombuffer(bytes(17), np.uint8)[1:].view(np.float64), "read-only"),
        (np.zeros(17, np.uint8)[1:].view(np.float64), "expected a multiple of 8 for float64"),
    ],
    ids=["strides", "broadcast", "objects", "empty", "list", "read-only", "alignment"],
)
def test_arrays_that_cannot_be_lent(vm, array, said):
    with pytest.raises(ptxvm.UsageError, match=said):
        vm.lend(array)


def test_views(vm):
    array = vm.array(np.arange(6, dtype=np.int32))
    assert array.reshape(2, 3)[1, 2] == 5
    assert array.reshape(-1, 2).shape == (3, 2)
    assert array.view("uint8").shape == (24,)
    array[1:3] = 9
    assert array[:4].tolist() == [0, 9, 9, 3] and len(array) == 6
    with pytest.raises(TypeError):
        len(vm.array(1))
    with pytest.raises(ValueError):
        array.reshape(4, 4)


def test_copies_that_do_not_fit(vm):
    array = vm.zeros((2, 2), "int32")
    for values, said in [
        (np.zeros(4), r"have the shape \(4,\); expected \(2, 2\)"),
        (np.zeros((2, 2)), "are of float64; expected int32"),
    ]:
        with pytest.raises(ptxvm.UsageError, match=said):
            array.copy_from_host(values)
    with pytest.raises(ptxvm.UsageError, match="`out` is of float64"):
        array.copy_to_host(np.zeros((2, 2)))
    with pytest.raises(ptxvm.UsageError, match="has the shape"):
        array.copy_to_host(np.zeros(4, np.int32))


@pytest.mark.parametrize("shape", [-1, (2, -3), 2**60, (2**40, 2**40)])
def test_shapes_that_are_none(vm, shape):
    with pytest.raises(ptxvm.UsageError):
        vm.zeros(shape)


def test_more_memory_than_there_is(vm):
    with pytest.raises((ptxvm.MachineError, ptxvm.UsageError)):
        vm.zeros(2**46, "uint8")


def test_arrays_of_another_device(vm):
    other = ptxvm.Vm(cache=False)
    with pytest.raises(ptxvm.ArgumentError, match="of another device"):
        vm.load(k.INCREMENT)["increment"][1, 1](other.zeros(1, "int32"))


def test_variables(vm):
    text = k.HEAD + ".visible .global .align 4 .u32 table[3] = {1, 2, 3};\n" + k.entry(
        "read", ".param .u64 out", ".reg .b32 %v; .reg .b64 %o; ld.param.u64 %o, [out]; ld.global.u32 %v, [table+4]; st.global.u32 [%o], %v; ret;", head=""
    )
    module = vm.load(text)
    table = module.variable("table", "uint32")
    np.testing.assert_array_equal(table.numpy(), [1, 2, 3])
    table[1] = 77
    out = np.zeros(1, np.uint32)
    module["read"][1, 1](out)
    assert out[0] == 77
    assert module.variable("table").shape == (12,)
    assert module.variable("table", "uint16", (2, 3)).shape == (2, 3)
    for arguments, said in [
        (("nothing",), "no variable `nothing`"),
        (("table", "f8"), "not a multiple of 8"),
        (("table", "u4", 4), "has 12 bytes; found the shape"),
    ]:
        with pytest.raises(ptxvm.UsageError, match=said):
            module.variable(*arguments)
    del module
    gc.collect()
    assert table[1] == 77
