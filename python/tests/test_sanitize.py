"""Sanitizers: what each tool finds, its fields, blocks and devices, sweeps."""
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ptxvm
import kernels as k

#: Each thread writes its number to shared memory and reads its neighbour's: right only with a barrier in between. The store is in line 16.
NEIGHBOURS = """.version 7.0
.target sm_80
.address_size 64
.visible .entry neighbours(.param .u64 out)
{
    .shared .align 4 .b32 part[64];
    .reg .b32 %t, %n, %v;
    .reg .b64 %s, %p, %o;
    .reg .b64 %base;
    mov.u32 %t, %tid.x;
    mov.u64 %base, part;
    mul.wide.u32 %o, %t, 4;
    add.u64 %s, %base, %o;
    xor.b32 %n, %t, 32;
    mul.wide.u32 %p, %n, 4;
    st.shared.u32 [%s], %t;
    //BARRIER
    add.u64 %p, %base, %p;
    ld.shared.u32 %v, [%p];
    ld.param.u64 %p, [out];
    add.u64 %p, %p, %o;
    st.global.u32 [%p], %v;
    ret;
}
"""
WITH_BARRIER = NEIGHBOURS.replace("//BARRIER", "bar.sync 0;")
#: Writes one element behind the end of an array, in line 4.
BEYOND = k.HEAD + ".visible .entry beyond(.param .u64 x) { .reg .b64 %p; ld.param.u64 %p, [x]; st.global.u32 [%p+16], 7; ret; }\n"
#: Copies an element of an array to another.
COPY = k.entry(
    "copy",
    ".param .u64 from, .param .u64 to",
    """
    .reg .b64 %from, %to;
    .reg .b32 %v;
    .reg .pred %p;
    ld.param.u64 %from, [from];
    ld.param.u64 %to, [to];
    ld.global.u32 %v, [%from];
    setp.eq.u32 %p, %v, 0;
    @%p bra done;
    st.global.u32 [%to], %v;
done:
    ret;
""",
)
#: A barrier that half of a warp reaches.
DIVERGENT = k.entry(
    "divergent",
    "",
    """
    .reg .b32 %t;
    .reg .pred %p;
    mov.u32 %t, %tid.x;
    setp.lt.u32 %p, %t, 16;
    @!%p bra done;
    bar.sync 0;
done:
    ret;
""",
)
#: Allocates from the device's heap and never frees.
LEAKS = k.HEAD + """.extern .func (.param .b64 r) malloc(.param .b64 n);
.visible .entry leaks()
{
    .param .b64 n;
    .param .b64 r;
    st.param.b64 [n], 24;
    call (r), malloc, (n);
    ret;
}
"""


def neighbours(text, **options):
    out = np.zeros(64, np.uint32)
    report = ptxvm.Vm(**options).load(text, name="neighbours.ptx")["neighbours"][1, 64](out)
    return out, report


def test_a_race_raises_at_the_end_of_the_block():
    with pytest.raises(ptxvm.FindingsError) as error:
        with ptxvm.sanitize("racecheck"):
            neighbours(NEIGHBOURS)
    found = error.value.findings[0]
    assert (found.tool, found.kind, found.hazard, found.missing) == ("racecheck", "race", "read-write", "barrier")
    assert (found.kernel, found.function, found.file) == ("neighbours", "neighbours", "neighbours.ptx")
    assert {found.line, found.other.line} == {16, 19}
    assert found.space == "shared" and found.bytes == 4 and found.source is None
    # Threads 32 apart are neighbours.
    assert abs(found.thread[0] - found.other.thread[0]) == 32 and found.cta == found.other.cta == (0, 0, 0)
    assert "neighbours.ptx:16" in str(error.value) and str(error.value).endswith("ERROR SUMMARY: 1 errors")
    assert "read-write" in found._repr_html_() or "race" in found._repr_html_()


def test_nothing_is_found_in_what_is_right():
    with ptxvm.sanitize() as found:
        out, report = neighbours(WITH_BARRIER)
    np.testing.assert_array_equal(out, np.arange(64) ^ 32)
    assert len(found) == 0 and found.findings == () and found.counts == {}
    assert not report.native and report.threads == 1


def test_memcheck_goes_on_behind_the_mistake():
    with ptxvm.sanitize("memcheck", check=False) as found:
        vm = ptxvm.Vm()
        kernel = vm.load(BEYOND)["beyond"]
        x = vm.array(np.arange(4, dtype=np.uint32), name="my array")
        for _ in range(3):
            kernel[1, 1](x)
        assert [f.count for f in found] == [3]
    np.testing.assert_array_equal(x.numpy(), [0, 1, 2, 3])
    [one] = found
    assert (one.kind, one.line, one.count, one.bytes, one.space) == ("out-of-bounds", 4, 3, 4, "global")
    assert one.address == x.address + 16 and one.instruction == "st.global.u32 [%p+16], 7;"
    assert "my array" in str(one) and any("my array" in note for note in one.notes.values())
    assert found.counts == {"out-of-bounds": 1} and "1 findings" in repr(found)


def test_initcheck_and_arrays_without_values():
    with ptxvm.sanitize("initcheck", check=False) as found:
        vm = ptxvm.Vm()
        kernel = vm.load(COPY)["copy"]
        kernel[1, 1](vm.empty(1, "uint32"), vm.empty(1, "uint32"))
    assert [f.kind for f in found] == ["uninitialized-read"]


@pytest.mark.parametrize("how", ["array", "zeros", "numpy", "view", "item", "from host", "kernel"])
def test_arrays_with_values_are_no_finding(how):
    with ptxvm.sanitize("initcheck") as found:
        vm = ptxvm.Vm()
        x = vm.empty(1, "uint32")
        kernel = vm.load(COPY)["copy"]
        if how == "array":
            x = vm.array([5], "uint32")
        elif how == "zeros":
            x = vm.zeros(1, "uint32")
        elif how == "numpy":
            x = np.full(1, 5, np.uint32)
        elif how == "view":
            x.numpy()[:] = 5
        elif how == "item":
            x[0] = 5
        elif how == "from host":
            x.copy_from_host(np.full(1, 5, np.uint32))
        else:
            kernel[1, 1](np.full(1, 5, np.uint32), x)
        out = np.zeros(1, np.uint32)
        kernel[1, 1](x, out)
    assert out[0] == (0 if how == "zeros" else 5) and not found.findings


def test_synccheck():
    with ptxvm.sanitize("synccheck", check=False) as found:
        ptxvm.Vm().load(DIVERGENT)["divergent"][1, 32]()
    assert found[0].tool == "synccheck" and found[0].kernel == "divergent"


def test_leaks_are_found_at_the_end():
    with ptxvm.sanitize("memcheck", check=False) as found:
        ptxvm.Vm().load(LEAKS)["leaks"][1, 2]()
        assert len(found) == 0
    assert found.counts == {"leak": 1}
    vm = ptxvm.Vm(tools="memcheck")
    vm.load(LEAKS)["leaks"][1, 1]()
    assert vm.findings == ()
    vm.find_leaks()
    assert [f.kind for f in vm.findings] == ["leak"]


def test_each_tool_finds_its_own():
    for tool, seen in [("memcheck", False), ("synccheck", False), ("initcheck", False), ("racecheck", True), ("racecheck,memcheck", True), ("all", True)]:
        with ptxvm.sanitize(tool, check=False) as found:
            neighbours(NEIGHBOURS)
        assert bool(len(found)) == seen, tool


def test_devices_with_tools_need_no_block():
    vm = ptxvm.Vm(tools=["racecheck", "memcheck"])
    assert vm.tools == ("memcheck", "racecheck")
    vm.load(NEIGHBOURS)["neighbours"][1, 64](np.zeros(64, np.uint32))
    assert {f.tool for f in vm.findings} == {"racecheck"}
    assert ptxvm.Vm().tools == () and ptxvm.Vm().findings == ()


def test_a_kernel_that_the_block_does_not_watch_is_refused():
    kernel = ptxvm.Vm().load(NEIGHBOURS)["neighbours"]
    out = np.zeros(64, np.uint32)
    with ptxvm.sanitize("racecheck", check=False) as found:
        with pytest.raises(ptxvm.UsageError, match="`neighbours` is on a device that was made before the block"):
            kernel[1, 64](out)
        kernel.on(ptxvm.Vm())[1, 64](out)
        assert len(found) == 1
        # `tools=()` explicitly requests an unwatched device.
        ptxvm.Vm(tools=()).load(NEIGHBOURS)["neighbours"][1, 64](out)
    assert len(found) == 1
    kernel[1, 64](out)


def test_a_kernel_on_another_device_keeps_its_declaration(vm):
    kernel = vm.load(k.SAXPY, name="s.ptx", gpu_name="sm_90")["saxpy"].declare("int32", "float32", "float32[:]", "float32[:]")
    other = kernel.on(ptxvm.Vm(cache=False))
    assert other.module.vm is not vm and other.module._options == kernel.module._options
    with pytest.raises(ptxvm.ArgumentError):
        other[1, 1](1, 2, np.zeros(1), np.zeros(1))


def test_blocks_nest_and_end():
    with ptxvm.sanitize("memcheck", check=False) as outer:
        with ptxvm.sanitize("racecheck", check=False) as inner:
            neighbours(NEIGHBOURS)
        assert ptxvm.Vm().tools == ("memcheck",)
    assert len(inner) == 1 and len(outer) == 0
    assert ptxvm.Vm().tools == ()
    with pytest.raises(ptxvm.UsageError, match="entered once"):
        with outer:
            pass


def test_findings_of_equal_devices_are_one():
    with ptxvm.sanitize("racecheck", check=False) as found:
        for _ in range(3):
            neighbours(NEIGHBOURS)
    single = neighbours_count()
    assert len(found) == 1 and found[0].count == 3 * single


def neighbours_count():
    vm = ptxvm.Vm(tools="racecheck")
    vm.load(NEIGHBOURS, name="neighbours.ptx")["neighbours"][1, 64](np.zeros(64, np.uint32))
    return vm.findings[0].count


def test_other_errors_leave_the_block_as_they_are():
    with pytest.raises(ZeroDivisionError) as error:
        with ptxvm.sanitize("racecheck"):
            neighbours(NEIGHBOURS)
            1 / 0
    notes = getattr(error.value, "__notes__", None)
    assert notes is None or "ERROR SUMMARY: 1 errors" in notes[0]
    with pytest.raises(ptxvm.TrapError):
        with ptxvm.sanitize("memcheck"):
            ptxvm.Vm().load(k.TRAPS)["traps"][1, 1]()


def test_as_many_findings_as_are_recorded_stop_the_launch():
    # Each of 40 instructions writes out of bounds.
    body = ".reg .b64 %p; mov.u64 %p, 64;\n" + "st.global.u8 [%p], 1;\n" * 40 + "ret;"
    with pytest.raises(ptxvm.FindingsError) as error:
        with ptxvm.sanitize("memcheck", max_findings=5):
            ptxvm.Vm().load(k.entry("k", "", body))["k"][1, 1]()
    assert len(error.value.findings) == 5
    for wrong in (0, -1, True, "5"):
        with pytest.raises(ptxvm.UsageError, match="a number from 1"):
            ptxvm.sanitize("memcheck", max_findings=wrong)
        with pytest.raises(ptxvm.UsageError, match="a number from 1"):
            ptxvm.Vm(tools="memcheck", max_findings=wrong)


def test_streams_are_waited_for():
    with ptxvm.sanitize("racecheck", check=False) as found:
        vm = ptxvm.Vm()
        pending = vm.load(NEIGHBOURS)["neighbours"][1, 64, vm.stream()](vm.zeros(64, "uint32"))
    assert pending.is_done and len(found) == 1


def test_threads_have_their_own_blocks():
    tools = []
    with ptxvm.sanitize("racecheck"):
        thread = threading.Thread(target=lambda: tools.append(ptxvm.Vm().tools))
        thread.start()
        thread.join()
    assert tools == [()]


@pytest.mark.parametrize("wrong", ["racechek", "", "memcheck,,racecheck", 7, ["memcheck", 7]])
def test_wrong_tools(wrong):
    with pytest.raises(ptxvm.UsageError, match="`tools`|no tool"):
        ptxvm.Vm(tools=wrong if isinstance(wrong, (str, list)) else [wrong])
    if isinstance(wrong, str) and wrong:
        with pytest.raises(ptxvm.UsageError, match="expected memcheck, racecheck, initcheck, synccheck or all"):
            ptxvm.sanitize(wrong)


def test_seeds_are_in_findings():
    with ptxvm.sanitize("racecheck", check=False) as found:
        vm = ptxvm.Vm()
        vm.load(NEIGHBOURS)["neighbours"][1, 64].with_options(seed=9)(np.zeros(64, np.uint32))
    assert found[0].seed == 9


def test_findings_are_those_of_the_command_line(tmp_path):
    import subprocess
    import sys

    (tmp_path / "neighbours.ptx").write_text(NEIGHBOURS)
    command = [sys.executable, "-m", "ptxvm", "sanitize", "--tool", "all", "--format", "json", "neighbours.ptx", "--block", "64", "--arg", "zeros:256"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 4, done.stderr
    theirs = [json.loads(line) for line in done.stdout.splitlines()][:-1]
    with ptxvm.sanitize(check=False) as found:
        neighbours(NEIGHBOURS)
    assert [(f["kind"], f["line"], f["count"], f["message"]) for f in theirs] == [(f.kind, f.line, f.count, f.message) for f in found]


def test_sweeps_with_tools(tmp_path):
    kernel = ptxvm.Vm().load(NEIGHBOURS, name="neighbours.ptx")["neighbours"]
    listed = ptxvm.cases([(np.zeros(64, np.uint32),)], block=[32, 64], seed=[0, 5], tools=[None, "racecheck"])
    assert len(listed) == 8
    file = tmp_path / "results.jsonl"
    with ThreadPoolExecutor(2) as pool:
        done = ptxvm.sweep(kernel, listed, pool, results=file)
        again = ptxvm.sweep(kernel, listed, pool, results=file)
    # One warp alone writes 32 elements and reads the others: no race.
    assert [r.status for r in done] == ["ok"] * 5 + ["findings", "ok", "findings"]
    failed = done.failures
    assert [r.findings[0].kind for r in failed] == ["race"] * 2 and [r.findings[0].seed for r in failed] == [0, 5]
    assert failed[0].kind == "race" and "ERROR SUMMARY" in failed[0].error and failed[0].arrays is not None
    assert [r.status for r in again] == [r.status for r in done]
    # The findings of a file are those of the sweep.
    loaded = [json.loads(line) for line in file.read_text().splitlines()]
    assert sum(bool(line["findings"]) for line in loaded) == 4
    from ptxvm.sweeps import _known, _keys

    _, known = _known(file, _keys(kernel, listed))
    assert {r.findings for r in known.values()} == {r.findings for r in failed}


def test_sweeps_cannot_be_watched_from_outside(vm):
    kernel = vm.load(k.INCREMENT)["increment"]
    with ptxvm.sanitize("racecheck"):
        with pytest.raises(ptxvm.UsageError, match="give its cases `tools`"):
            ptxvm.sweep(kernel, [(np.zeros(1, np.int32),)])
    with pytest.raises(ptxvm.UsageError, match="no tool"):
        ptxvm.sweep(kernel, [{"arguments": (np.zeros(1, np.int32),), "tools": "racechek"}])
    with pytest.raises(ptxvm.UsageError, match="case 0 has an argument in the memory of a device"):
        ptxvm.sweep(kernel, [(vm.zeros(1, "int32"),)])
