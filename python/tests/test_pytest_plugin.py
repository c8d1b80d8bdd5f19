"""The pytest plugin: a suite of a user, run as a user runs it. The suite calls the driver by its C functions, so that no client has to be there."""
import os
import subprocess
import sys

import pytest

import kernels as k

SUITE = (
    '''
import ctypes
import pytest

PTX = b"""%s""" + b"\\0"


class Driver:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        device, self.context, self.module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)
        self.call("cuModuleLoadData", ctypes.byref(self.module), PTX)

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status:
            raise RuntimeError("%%s: %%d" %% (name, status))

    def launch(self, name, threads, *arguments):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.module, name)
        places = (ctypes.c_void_p * max(len(arguments), 1))(*[ctypes.addressof(a) for a in arguments])
        self.call("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, 0, None, places, None)


@pytest.fixture(scope="session")
def driver():
    return Driver()


def increment(driver):
    data = ctypes.c_uint64()
    driver.call("cuMemAlloc_v2", ctypes.byref(data), ctypes.c_size_t(128))
    driver.call("cuMemsetD32_v2", data, 7, ctypes.c_size_t(32))
    driver.launch(b"increment", 32, data)
    host = (ctypes.c_uint32 * 32)()
    driver.call("cuMemcpyDtoH_v2", host, data, ctypes.c_size_t(128))
    driver.call("cuMemFree_v2", data)
    assert list(host) == [8] * 32
'''
    % (k.INCREMENT + k.TRAPS.replace(k.HEAD, ""))
)


def run(folder, *options, name="test_suite.py", text="", **environment):
    """Runs pytest on a suite; its status and output."""
    (folder / name).write_text(SUITE + text)
    variables = {n: v for n, v in os.environ.items() if not n.startswith(("PTXVM_", "PYTEST_", "LD_", "COV_"))}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**variables, **environment}, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_a_suite_runs_without_a_wrapper(tmp_path):
    status, said = run(tmp_path, "--ptxvm", text="def test_one(driver):\n    increment(driver)\n")
    assert status == 0, said
    assert "1 passed" in said and "CUDA on the CPU, compute capability 80" in said


def test_without_the_option_nothing_happens(tmp_path):
    status, said = run(tmp_path, text="import os\ndef test_one():\n    assert 'ptxvm-exec' not in os.environ.get('LD_LIBRARY_PATH', '')\n")
    assert status == 0 and "ptxvm: " not in said


TRAPPING = """
def test_before(driver):
    increment(driver)

def test_traps(driver):
    driver.launch(b"traps", 1)
    driver.call("cuCtxSynchronize")

def test_after(driver):
    increment(driver)

def test_that_does_not_wait(driver):
    driver.launch(b"traps", 1)

def test_last(driver):
    increment(driver)
"""


def test_one_trap_does_not_fail_the_tests_that_follow(tmp_path):
    status, said = run(tmp_path, "--ptxvm", "-v", text=TRAPPING)
    assert status == 1
    for name, outcome in [
        ("test_before", "PASSED"),
        ("test_traps", "FAILED"),
        ("test_after", "PASSED"),
        ("test_last", "PASSED"),
    ]:
        assert f"::{name} {outcome}" in said, said
    # The launch that nothing waited for is the error of its own test.
    assert "ERROR at teardown of test_that_does_not_wait" in said
    assert "did not wait for, ended with CUDA_ERROR_" in said


def test_the_report_is_in_the_section_of_the_test(tmp_path):
    status, said = run(tmp_path, "--ptxvm", text="def test_traps(driver):\n    driver.launch(b'traps', 1)\n    driver.call('cuCtxSynchronize')\n")
    assert status == 1
    section = said[said.index("ptxvm report") :]
    assert "kernel:      traps" in section and "instruction: trap;" in section
    assert "Captured stderr" not in said


def test_workers_of_xdist(tmp_path):
    pytest.importorskip("xdist")
    text = "".join(f"def test_{n}(driver):\n    increment(driver)\n" for n in range(6)) + TRAPPING
    status, said = run(tmp_path, "--ptxvm", "-n", "2", text=text)
    assert status == 1
    assert "9 passed" in said or "10 passed" in said, said
    assert "1 failed" in said


def test_options(tmp_path):
    text = """
import os
def test_device(driver):
    count, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    driver.call("cuDeviceGetCount", ctypes.byref(count))
    driver.call("cuDeviceGetAttribute", ctypes.byref(major), 75, 0)
    driver.call("cuDeviceGetAttribute", ctypes.byref(minor), 76, 0)
    assert (count.value, major.value, minor.value) == (2, 9, 0)
    assert os.environ["PTXVM_ENGINE"] == "interp"
"""
    status, said = run(tmp_path, "--ptxvm", "--ptxvm-sm", "90", "--ptxvm-devices", "2", "--ptxvm-engine", "interp", text=text)
    assert status == 0, said


def test_the_option_may_stand_in_a_file(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --ptxvm\n")
    status, said = run(tmp_path, text="def test_one(driver):\n    increment(driver)\n")
    assert status == 0, said


def test_wrong_options_are_errors(tmp_path):
    status, said = run(tmp_path, "--ptxvm", "--ptxvm-sm", "banana", text="def test_one():\n    pass\n")
    assert status != 0 and "banana" in said
    status, said = run(tmp_path, "--ptxvm", "--ptxvm-engine", "gpu")
    assert status == 4 and "gpu" in said


def test_a_function_cannot_start_again(tmp_path):
    (tmp_path / "test_x.py").write_text("def test_x(): pass\n")
    script = "import pytest, sys; sys.exit(pytest.main(['--ptxvm', 'test_x.py']))"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4
    assert "a program that calls pytest.main runs under `ptxvm exec --recover --`" in done.stderr + done.stdout


def test_the_exit_status_and_arguments_go_through(tmp_path):
    status, said = run(tmp_path, "--ptxvm", "-k", "absent", text="def test_one():\n    pass\n")
    assert status == 5 and "1 deselected" in said


def has_tools():
    """Whether `ptxvm exec` has sanitizers."""
    said = subprocess.run([sys.executable, "-m", "ptxvm", "exec", "--help"], capture_output=True, text=True).stdout
    return "--tool" in said


needs_tools = pytest.mark.skipif(not has_tools(), reason="`ptxvm exec` has no tools")

#: Writes behind the end of an allocation of 128 bytes, in which 40 threads have no room.
FINDINGS = """
def beyond(driver):
    data = ctypes.c_uint64()
    driver.call("cuMemAlloc_v2", ctypes.byref(data), ctypes.c_size_t(128))
    driver.call("cuMemsetD32_v2", data, 7, ctypes.c_size_t(32))
    driver.launch(b"increment", 40, data)
    return data

def test_before(driver):
    increment(driver)

def test_finds(driver):
    data = beyond(driver)
    driver.call("cuCtxSynchronize")
    driver.call("cuMemFree_v2", data)

def test_after(driver):
    increment(driver)

def test_finds_again_and_does_not_wait(driver):
    beyond(driver)

@pytest.fixture
def late(driver):
    yield
    beyond(driver)

def test_fixture(late):
    pass

def test_last(driver):
    increment(driver)
"""


@needs_tools
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_what_tools_find_fails_the_test_that_did_it(tmp_path, workers):
    if workers:
        pytest.importorskip("xdist")
    status, said = run(tmp_path, "--ptxvm", "--ptxvm-tool", "memcheck", "-rA", *workers, text=FINDINGS)
    assert status == 1, said
    for name, outcome in [
        ("test_before", "PASSED"),
        ("test_finds", "FAILED"),
        ("test_after", "PASSED"),
        ("test_finds_again_and_does_not_wait", "FAILED"),
        ("test_fixture", "ERROR"),
        ("test_last", "PASSED"),
    ]:
        assert f"{outcome} test_suite.py::{name}" in said, said
    assert "found by memcheck: out-of-bounds and 1 more (see the ptxvm report)" in said
    section = said[said.index("ptxvm report") :]
    assert "memcheck: out-of-bounds: " in section and "kernel:      increment" in section
    # Both accesses of a thread that has no room are found.
    assert "ld.global.u32 %v, [%p];" in section and "st.global.u32 [%p], %v;" in section


@needs_tools
def test_a_suite_without_findings_passes_under_tools(tmp_path):
    status, said = run(tmp_path, "--ptxvm", "--ptxvm-tool", "racecheck,memcheck", text="def test_one(driver):\n    increment(driver)\n")
    assert status == 0, said


def test_tools_that_are_not_there_are_refused(tmp_path):
    status, said = run(tmp_path, "--ptxvm", "--ptxvm-tool", "racechek", text="def test_one():\n    pass\n")
    assert status == 2 and ("racechek" in said if has_tools() else "--tool" in said), said
