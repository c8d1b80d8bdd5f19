"""Diagnostics and traps as exceptions, and the functions that need no device."""
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import ptxvm
import kernels as k

WRONG = k.HEAD + ".visible .entry k()\n{\n    .reg .b32 %r<3>;\n    add.sat.u32 %r1, %r2, %r1;\n    bra nowhere;\n    ret;\n}\n"


def test_rejected_texts(vm):
    with pytest.raises(ptxvm.RejectedError) as error:
        vm.load(WRONG, name="wrong.ptx")
    first, second = error.value.diagnostics
    assert (first.code, first.severity, first.file, first.line, first.column) == ("P0202", "error", "wrong.ptx", 7, 8)
    assert second.line == 8 and "nowhere" in second.message
    assert first.help and "add.sat.s32" in first.help
    assert str(error.value) == error.value.rendered
    assert "wrong.ptx:7:8" in str(error.value) and "wrong.ptx:8:" in str(error.value)
    assert "P0202" in error.value._repr_html_()


def test_check_gives_the_same(vm):
    found = ptxvm.check(WRONG, name="wrong.ptx")
    assert [d.code for d in found][0] == "P0202" and len(found) == 2
    assert str(found[0]).startswith("error[P0202]")


def test_what_is_not_implemented_is_refused_by_name(vm):
    text = k.HEAD.replace("7.0", "8.0").replace("sm_80", "sm_90a") + ".visible .entry k() { wgmma.fence.sync.aligned; ret; }"
    with pytest.raises(ptxvm.RejectedError, match="wgmma"):
        vm.load(text)


def test_gpu_name(vm):
    text = k.HEAD + ".visible .entry k() { ret; }"
    assert vm.load(text, gpu_name="sm_90").kernels == ("k",)
    with pytest.raises(ptxvm.UsageError, match="`banana` is not an architecture"):
        vm.load(text, gpu_name="banana")
    with pytest.raises(ptxvm.RejectedError):
        vm.load(text, gpu_name="sm_50")


def test_sources(vm, tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(k.INCREMENT)
    for source in (path, str(path), k.INCREMENT, k.INCREMENT.encode(), k.INCREMENT.encode() + b"\0"):
        assert vm.load(source).kernels == ("increment",)
    with pytest.raises(ptxvm.UsageError, match="cannot be read"):
        vm.load(tmp_path / "none.ptx")
    with pytest.raises(ptxvm.UsageError, match="not UTF-8"):
        vm.load(b"\xff\xfe.version")
    with pytest.raises(ptxvm.UsageError, match="found int"):
        vm.load(7)
    with pytest.raises(ptxvm.UsageError, match="nothing to link"):
        vm.link()


def test_modules(vm):
    module = vm.load(k.HEAD + ".visible .entry a() { ret; }\n.visible .entry b() { ret; }")
    assert list(module) == ["a", "b"] and len(module) == 2 and "a" in module and "c" not in module
    with pytest.raises(ptxvm.UsageError, match="there is no kernel `c`; the module has `a`, `b`"):
        module["c"]
    with pytest.raises(ptxvm.UsageError, match="name a kernel; the module has a, b"):
        module.kernel()
    assert "<span" in module._repr_html_()


def test_linking(vm):
    main = k.HEAD + """
.extern .func (.param .b32 r) twice(.param .b32 x);
.visible .entry k(.param .u64 out)
{
    .reg .b32 %v; .reg .b64 %o;
    { .param .b32 x; .param .b32 r; st.param.b32 [x], 21; call (r), twice, (x); ld.param.b32 %v, [r]; }
    ld.param.u64 %o, [out]; st.global.u32 [%o], %v; ret;
}"""
    library = k.HEAD + """
.visible .func (.param .b32 r) twice(.param .b32 x)
{ .reg .b32 %v; ld.param.b32 %v, [x]; add.u32 %v, %v, %v; st.param.b32 [r], %v; ret; }"""
    out = np.zeros(1, np.uint32)
    vm.link(main, library)["k"][1, 1](out)
    assert out[0] == 42
    assert ptxvm.check(main, library) == []
    with pytest.raises(ptxvm.RejectedError, match="twice"):
        vm.link(main, library.replace("twice(.param .b32 x)", "twice(.param .b64 x)").replace("ld.param.b32 %v", "ld.param.b32 %v"))


def test_illegal_addresses(vm):
    module = vm.load(k.INCREMENT, name="increment.ptx")
    data = vm.array(np.zeros(4, np.int32), name="my data")
    with pytest.raises(ptxvm.TrapError) as error:
        module["increment"][1, 6](data)
    trap = error.value
    assert (trap.kind, trap.kernel, trap.function, trap.file) == ("illegal_address",) + ("increment",) * 2 + ("increment.ptx",)
    assert (trap.cta, trap.thread, trap.warp, trap.lane) == ((0, 0, 0), (4, 0, 0), 0, 4)
    assert (trap.address, trap.bytes, trap.space, trap.write) == (data.address + 16, 4, "global", False)
    assert "my data" in trap.nearest
    assert k.INCREMENT.splitlines()[trap.line - 1].strip() == trap.instruction
    assert trap.report.ctas == 0
    assert str(trap).startswith("trap: illegal address\n  kernel:      increment")
    assert "illegal address" in trap._repr_html_()


@pytest.mark.parametrize(
    "text, block, kind",
    [(k.TRAPS, 32, "trap"), (k.DEADLOCK, 64, "deadlock")],
)
def test_other_traps(vm, text, block, kind):
    with pytest.raises(ptxvm.TrapError) as error:
        vm.load(text).kernel()[1, block]()
    assert error.value.kind == kind and error.value.address is None


def test_misaligned(vm):
    array = vm.zeros(8, "int32")
    with pytest.raises(ptxvm.TrapError) as error:
        vm.load(k.INCREMENT)["increment"][1, 1](array.address + 2)
    assert error.value.kind == "misaligned"


def test_the_device_works_after_a_trap(vm):
    module = vm.load(k.TRAPS + k.INCREMENT.replace(k.HEAD, ""))
    x = np.zeros(1, np.int32)
    for _ in range(3):
        with pytest.raises(ptxvm.TrapError):
            module["traps"][1, 1]()
        module["increment"][1, 1](x)
    assert x[0] == 3


def test_errors_can_be_pickled(vm):
    for cause in (lambda: vm.load(WRONG), lambda: vm.load(k.TRAPS)["traps"][1, 1](), lambda: vm.zeros(-1)):
        with pytest.raises(ptxvm.Error) as error:
            cause()
        again = pickle.loads(pickle.dumps(error.value))
        assert type(again) is type(error.value) and str(again) == str(error.value)
        assert getattr(again, "kind", None) == getattr(error.value, "kind", None)


def test_format():
    wild = ".version 6.4\n.target sm_70\n.visible .entry k( ) {ret;}"
    once = ptxvm.format(wild)
    assert once != wild and ptxvm.format(once) == once
    assert once.split() != [] and "".join(once.split()) == "".join(wild.split())
    with pytest.raises(ptxvm.RejectedError) as error:
        ptxvm.format(".version 6.4\n.target sm_70\n.visible .entry k( {", name="wild.ptx")
    assert error.value.diagnostics[0].file == "wild.ptx"


def test_explain():
    assert "P0202" in ptxvm.codes()
    for name in ("P0202", "p202", "202"):
        assert ptxvm.explain(name).startswith("# P0202: ")
    for name in ("P9999", "", "x"):
        with pytest.raises(ptxvm.UsageError, match="there is no code"):
            ptxvm.explain(name)
    for code, title in ptxvm.codes().items():
        assert ptxvm.explain(code).startswith(f"# {code}: {title}\n")


def test_isa():
    forms = ptxvm.isa()
    assert len(forms) > 300 and len({form.mnemonic for form in forms}) > 100
    assert all(form.interpreted in ("yes", "partly", "missing") for form in forms)
    [add] = [form for form in ptxvm.isa("add") if "sat" in form.syntax and form.section.startswith("9.7.1")] or [None]
    assert add is None or add.exactness == "exact"
    assert {form.mnemonic for form in ptxvm.isa("ld.global")} == {"ld"}
    with pytest.raises(ptxvm.UsageError, match="no instruction `frob`"):
        ptxvm.isa("frob")


def test_the_command_line(tmp_path):
    (tmp_path / "wrong.ptx").write_text(WRONG)
    done = subprocess.run([sys.executable, "-m", "ptxvm", "check", "--format", "json", "wrong.ptx"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    lines = [json.loads(line) for line in (done.stdout + done.stderr).splitlines() if line.startswith("{")]
    assert [line["code"] for line in lines] == [d.code for d in ptxvm.check(WRONG)]
    assert subprocess.run([sys.executable, "-m", "ptxvm", "frob"], capture_output=True).returncode == 2
    said = subprocess.run([sys.executable, "-m", "ptxvm", "--version"], capture_output=True, text=True).stdout
    assert ptxvm.__version__ in said


def test_ctrl_c_stops_a_launch(tmp_path):
    script = textwrap.dedent(
        f"""
        import ptxvm, signal
        # A shell starts what runs in the background with SIGINT ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        launcher = ptxvm.Vm(cache=False).load({k.ENDLESS!r})["endless"][1, 32]
        print("ready", flush=True)
        try:
            launcher()
        except KeyboardInterrupt:
            print("stopped", flush=True)
        """
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=30)[0] == "stopped\n"
    finally:
        child.kill()
    assert child.returncode == 0


def test_options_of_devices(tmp_path):
    with pytest.raises(ptxvm.UsageError, match="`cpu` is `avx512`, `avx2`, `baseline` or None"):
        ptxvm.Vm(cpu="z80")
    with pytest.raises(ptxvm.UsageError, match="32 or 64"):
        ptxvm.Vm(address_bits=16)
    folder = tmp_path / "cache"
    os.makedirs(folder, mode=0o700)
    x = np.zeros(1, np.int32)
    launcher = ptxvm.Vm(cache=folder, cpu="baseline").load(k.INCREMENT)["increment"][1, 1].with_options(engine="jit")
    assert launcher(x).code_source == "compiled"
    assert any(path.is_file() for path in Path(folder).rglob("*"))
