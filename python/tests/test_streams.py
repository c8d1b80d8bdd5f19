"""Streams, events, textures and notebooks."""
import gc

import numpy as np
import pytest

import ptxvm
import kernels as k


def test_launches_of_a_stream_run_in_order(vm):
    stream = vm.stream()
    array = vm.zeros(32, "int32")
    launcher = vm.load(k.INCREMENT)["increment"][1, 32, stream]
    pending = [launcher(array) for _ in range(50)]
    stream.synchronize()
    assert stream.is_idle and all(p.is_done for p in pending)
    np.testing.assert_array_equal(array.numpy(), [50] * 32)


def test_arrays_of_numpy_come_back_when_waited_for(vm):
    stream = vm.stream()
    x = np.zeros(4, np.int32)
    pending = vm.load(k.INCREMENT)["increment"][1, 4, stream](x)
    report = pending.wait()
    np.testing.assert_array_equal(x, [1] * 4)
    assert pending.wait() is report and pending.progress == (1, 1)
    y = np.zeros(4, np.int32)
    vm.load(k.INCREMENT)["increment"][1, 4, stream](y)
    stream.synchronize()
    np.testing.assert_array_equal(y, [1] * 4)


def test_memory_lives_as_long_as_a_launch_in_a_stream(vm):
    stream = vm.stream()
    launcher = vm.load(k.INCREMENT)["increment"]
    slow = vm.load(k.ENDLESS)["endless"][1, 32, stream].with_options(timeout=0.3)()
    used = vm.memory_usage[0]
    launcher[1, 1000, stream](vm.zeros(1000, "int32"))
    gc.collect()
    assert vm.memory_usage[0] > used
    with pytest.raises(ptxvm.TrapError, match="time limit"):
        slow.wait()
    stream.synchronize()


def test_traps_in_streams(vm):
    stream = vm.stream()
    pending = vm.load(k.TRAPS)["traps"][1, 1, stream]()
    for _ in range(2):
        with pytest.raises(ptxvm.TrapError):
            pending.wait()
    vm.load(k.TRAPS)["traps"][1, 1, stream]()
    with pytest.raises(ptxvm.TrapError):
        stream.synchronize()
    stream.synchronize()


def test_cancelling(vm):
    stream = vm.stream()
    pending = vm.load(k.ENDLESS)["endless"][2, 32, stream]()
    assert not pending.is_done and pending.progress == (0, 2)
    pending.cancel()
    with pytest.raises(ptxvm.TrapError) as error:
        pending.wait()
    assert error.value.kind == "cancelled"


def test_events_order_streams(vm):
    first, second = vm.stream(), vm.stream()
    array = vm.zeros(32, "int32")
    launcher = vm.load(k.INCREMENT)["increment"]
    start = first.record()
    for _ in range(20):
        launcher[1, 32, first](array)
    event = first.record()
    second.wait(event)
    for _ in range(20):
        launcher[1, 32, second](array)
    end = second.record()
    end.wait()
    np.testing.assert_array_equal(array.numpy(), [40] * 32)
    assert event.is_done and start.seconds_until(end) > 0 > end.seconds_until(start)


def test_an_event_that_was_not_reached(vm):
    stream = vm.stream()
    start = stream.record()
    pending = vm.load(k.ENDLESS)["endless"][1, 1, stream]()
    end = stream.record()
    with pytest.raises(ptxvm.UsageError, match="not been reached"):
        start.seconds_until(end)
    pending.cancel()


def test_launches_in_streams_are_checked_at_once(vm):
    with pytest.raises(ptxvm.UsageError):
        vm.load(k.entry("k", "", "ret;"))["k"][1, 2048, vm.stream()]()


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_textures(vm, engine):
    values = np.linspace(-1, 1, 8, dtype=np.float32)
    texture = ptxvm.Texture(ptxvm.Texels(vm, values))
    out = np.zeros(8, np.float32)
    vm.load(k.SAMPLE)["sample"][1, 8].with_options(engine=engine)(texture, out)
    np.testing.assert_array_equal(out, values)


def test_linear_filter_and_addresses_beyond_the_edge(vm):
    values = np.array([0, 1, 2, 3], np.float32)
    texels = ptxvm.Texels(vm, values)
    out = np.zeros(6, np.float32)
    # Thread i samples at i + 0.5.
    border = ptxvm.Texture(texels, addr_mode="clamp_to_border")
    vm.load(k.SAMPLE)["sample"][1, 6](border, out)
    np.testing.assert_array_equal(out, [0, 1, 2, 3, 0, 0])
    edge = ptxvm.Texture(texels, addr_mode="clamp_to_edge", filter_mode="linear")
    vm.load(k.SAMPLE)["sample"][1, 6](edge, out)
    np.testing.assert_allclose(out, [0, 1, 2, 3, 3, 3])


def test_bound_textures(vm):
    module = vm.load(k.BOUND)
    out = np.zeros(4, np.float32)
    with pytest.raises(ptxvm.TrapError):
        module["sample"][1, 4](out)
    for values in (np.arange(4, dtype=np.float32), np.ones(4, np.float32)):
        module.bind("image", ptxvm.Texture(ptxvm.Texels(vm, values)))
        module["sample"][1, 4](out)
        np.testing.assert_array_equal(out, values)
    with pytest.raises(ptxvm.UsageError):
        module.bind("nothing", ptxvm.Texture(ptxvm.Texels(vm, out)))


def test_normalised_channels(vm):
    texels = ptxvm.Texels(vm, np.array([0, 51, 255], np.uint8), channel_data_type="unorm_int8")
    out = np.zeros(3, np.float32)
    vm.load(k.SAMPLE)["sample"][1, 3](ptxvm.Texture(texels), out)
    np.testing.assert_allclose(out, np.array([0, 51, 255]) / 255, rtol=1e-6)


def test_surfaces(vm):
    texels = ptxvm.Texels(vm, np.zeros(8, np.uint32))
    vm.load(k.FILL_SURFACE)["fill"][1, 8](ptxvm.Surface(texels))
    np.testing.assert_array_equal(texels.read(), np.arange(8))
    with pytest.raises(ptxvm.TrapError) as error:
        vm.load(k.FILL_SURFACE)["fill"][1, 9](ptxvm.Surface(texels, name="my image"))
    assert error.value.kind == "surface_bounds"


@pytest.mark.parametrize(
    "shape, geom, order",
    [((4,), "1d", "r"), ((3, 4), "2d", "r"), ((2, 3, 4), "3d", "r"), ((3, 4, 4), "2d", "rgba"), ((3, 4, 2), "a1d", "rg"), ((6, 4, 4), "cube", "r"), ((2, 6, 4, 4), "acube", "r")],
)
def test_texels_come_back(vm, shape, geom, order):
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    texels = ptxvm.Texels(vm, values, geom=geom)
    assert texels.channel_order == order
    np.testing.assert_array_equal(texels.read(), values)
    texels.write(values + 1)
    np.testing.assert_array_equal(texels.read(), values + 1)


@pytest.mark.parametrize(
    "values, options, said",
    [
        (np.zeros((2, 2, 2, 2), np.float32), {}, "an array of 4 axes needs `geom`"),
        (np.zeros(4, np.float32), {"geom": "4d"}, "one of 1d, 2d"),
        (np.zeros(4, np.float32), {"geom": "3d"}, "takes an array of 3 axes"),
        (np.zeros((4, 5), np.float32), {"geom": "1d"}, "not 1 to 4 channels"),
        (np.zeros(4), {}, "texels of float64 need `channel_data_type`"),
        (np.zeros(4, np.uint8), {"channel_data_type": "float"}, "have 16 bytes; found 4"),
        (np.zeros(4, np.uint8), {"channel_data_type": "double"}, "is one of snorm_int8"),
        (np.zeros((5, 4, 4), np.uint8), {"geom": "cube"}, "a cube has 6 faces; found 5"),
        (np.zeros(0, np.uint8), {}, "extents are 1 to"),
    ],
)
def test_texels_that_make_no_sense(vm, values, options, said):
    with pytest.raises(ptxvm.UsageError, match=said):
        ptxvm.Texels(vm, values, **options)


def test_samplers_that_make_no_sense(vm):
    texels = ptxvm.Texels(vm, np.zeros(4, np.float32))
    with pytest.raises(ptxvm.UsageError, match="`filter_mode` is one of nearest, linear; found `cubic`"):
        ptxvm.Texture(texels, filter_mode="cubic")
    with pytest.raises(ptxvm.UsageError, match="a word or three"):
        ptxvm.Texture(texels, addr_mode=["wrap"])
    with pytest.raises(ptxvm.UsageError, match="of another device"):
        ptxvm.Vm(cache=False).load(k.SAMPLE)["sample"][1, 1](ptxvm.Texture(texels), np.zeros(1, np.float32))


def test_html(vm):
    shown = ptxvm.highlight("// a < b\nmov.u32 %r1, 0x10;\n.reg .b32 %r<2>;\nloop:\n")._repr_html_()
    assert "// a &lt; b" in shown and shown.count("<span") >= 6 and "<b" not in shown
    report = vm.load(k.SAXPY)["saxpy"][1, 32](0, 1, np.zeros(1, np.float32), np.zeros(1, np.float32))
    shown = report._repr_html_()
    assert shown.startswith("<table>") and "warp instructions" in shown


def test_highlighting_keeps_the_text():
    import html
    import re

    for text in (k.SAXPY, k.SQUARES, k.BOUND, "/* open", '"a\\"b" .x', "<&>"):
        shown = ptxvm.highlight(text)._repr_html_()
        assert html.unescape(re.sub(r"</?(?:span|pre)[^>]*>", "", shown)) == text


def test_progress_bars(vm, monkeypatch):
    made = []

    class Bar:
        n = 0

        def __init__(self, **options):
            made.append(options)

        def update(self, count):
            self.n += count

        def close(self):
            made.append("closed")

    import tqdm.auto

    monkeypatch.setattr(tqdm.auto, "tqdm", Bar)
    launcher = vm.load(k.ENDLESS)["endless"][3, 32].with_options(timeout=1.6)
    for progress in (None, False):
        with pytest.raises(ptxvm.TrapError):
            launcher.with_options(progress=progress, timeout=0.1)()
    assert made == []
    with pytest.raises(ptxvm.TrapError):
        launcher.with_options(progress=True)()
    assert made[0]["total"] == 3 and made[0]["desc"] == "endless" and made[-1] == "closed"
