"""Sweeps: every case has exactly one result, whatever becomes of the workers."""
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import ptxvm
import kernels as k
from sweep_checks import dies, raises, right, slow, wrong

GUARD = k.entry(
    "below",
    ".param .u32 n, .param .u64 data",
    """
    .reg .b32 %n, %v;
    .reg .b64 %p;
    .reg .pred %bad;
    ld.param.u32 %n, [n];
    ld.param.u64 %p, [data];
    setp.gt.u32 %bad, %n, 5;
    @%bad trap;
    mul.lo.u32 %v, %n, %n;
    st.global.u32 [%p], %v;
    ret;
""",
)


@pytest.fixture
def kernel(vm):
    return vm.load(GUARD)["below"]


def cases(count, n=None):
    return [ptxvm.Case((i if n is None else n, np.zeros(1, np.uint32)), label=f"case {i}") for i in range(count)]


def test_results_are_in_the_order_of_the_cases(kernel):
    with ThreadPoolExecutor(2) as pool:
        done = ptxvm.sweep(kernel, cases(8), pool)
    assert [r.index for r in done] == list(range(8)) and done.counts == {"ok": 6, "trap": 2}
    assert [int(r.arrays[0][0]) for r in done if r.ok] == [0, 1, 4, 9, 16, 25]
    assert [r.label for r in done.failures] == ["case 6", "case 7"]
    assert [r.index for r in done.failures_first()] == [6, 7, 0, 1, 2, 3, 4, 5]
    assert done.failures[0].kind == "trap" and "kernel:      below" in done.failures[0].error
    assert "case 6" in repr(done) and "2 trap" in repr(done) and "<table>" in done._repr_html_()


def test_cases_do_not_share_arrays(kernel):
    array = np.zeros(1, np.uint32)
    with ThreadPoolExecutor(2) as pool:
        done = ptxvm.sweep(kernel, [(n, array) for n in range(6)], pool)
    assert array[0] == 0 and [int(r.arrays[0][0]) for r in done] == [0, 1, 4, 9, 16, 25]


def test_processes_of_this_machine(kernel):
    told = []
    done = ptxvm.sweep(kernel, cases(6), progress=lambda count, total: told.append((count, total)))
    assert done.counts == {"ok": 6}
    assert told == [(n, 6) for n in range(1, 7)]


def test_other_executors(kernel):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert ptxvm.sweep(kernel, cases(3), pool).counts == {"ok": 3}
    with get_context("spawn").Pool(1) as pool:
        assert ptxvm.sweep(kernel, cases(3), pool).counts == {"ok": 3}
    with pytest.raises(ptxvm.UsageError, match="expected an executor of concurrent.futures"):
        ptxvm.sweep(kernel, cases(3), "here")


def test_checks(kernel):
    with ThreadPoolExecutor(2) as pool:
        assert ptxvm.sweep(kernel, cases(6), pool, check=right).counts == {"ok": 6}
        done = ptxvm.sweep(kernel, cases(6), pool, check=wrong)
        assert done.counts == {"ok": 3, "wrong": 3} and done[3].error.startswith("9 is too large")
        assert ptxvm.sweep(kernel, cases(2), pool, check=raises)[0].error.startswith("the check raised KeyError")


def test_cases_that_are_wrong(kernel):
    with ThreadPoolExecutor(1) as pool:
        done = ptxvm.sweep(kernel, [(1,), {"arguments": (1, 2.5)}, {"grid": 0}], pool)
    assert [r.status for r in done] == ["error"] * 3
    assert "has 2 parameters" in done[0].error
    with pytest.raises(ptxvm.UsageError, match="no field `blok`"):
        ptxvm.sweep(kernel, [{"blok": 1}])
    with pytest.raises(ptxvm.UsageError, match="a case is"):
        ptxvm.sweep(kernel, [7])


def test_options_of_cases(kernel):
    options = {"options": {"engine": "interp", "threads": 1}, "seed": 5, "block": 4, "arguments": (2, np.zeros(1, np.uint32))}
    with ThreadPoolExecutor(1) as pool:
        [result] = ptxvm.sweep(kernel, [options], pool, keep_arrays=False)
    assert result.ok and result.arrays is None and len(result.digests) == 1


def test_resuming_launches_what_is_left_and_what_failed_first(kernel, tmp_path):
    file = tmp_path / "results.jsonl"
    with ThreadPoolExecutor(1) as pool:
        first = ptxvm.sweep(kernel, cases(8)[2:], pool, results=file)
        assert len(file.read_text().splitlines()) == 6
        # A line that was cut off when the machine went down.
        with open(file, "a") as out:
            out.write('{"key": "abc", "sta')
        order = []
        again = ptxvm.sweep(kernel, cases(8), pool, results=file, progress=lambda count, total: order.append(count))
    lines = [json.loads(line)["label"] for line in file.read_text().splitlines()[7:]]
    assert lines == ["case 6", "case 7", "case 0", "case 1"]
    assert len(again) == 8 and again.counts == first.counts | {"ok": 6}
    assert again[2].arrays is None and again[2].digests == first[0].digests


def test_equal_cases_have_a_result_each(kernel, tmp_path):
    file = tmp_path / "results.jsonl"
    same = [(3, np.zeros(1, np.uint32))] * 4
    with ThreadPoolExecutor(2) as pool:
        for _ in range(2):
            assert len(ptxvm.sweep(kernel, same, pool, results=file)) == 4
    keys = [json.loads(line)["key"] for line in file.read_text().splitlines()]
    assert len(keys) == len(set(keys)) == 4


def test_a_kernel_travels_with_its_declaration(kernel):
    import pickle

    again = pickle.loads(pickle.dumps(kernel.declare("uint32", "uint32[1]")))
    out = np.zeros(1, np.uint32)
    again[1, 1](4, out)
    assert out[0] == 16 and again.module.vm is not kernel.module.vm
    with pytest.raises(ptxvm.ArgumentError):
        again[1, 1](4, np.zeros(2, np.uint32))


def test_processes_that_die(kernel, tmp_path, monkeypatch):
    monkeypatch.setenv("SWEEP_FOLDER", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    done = ptxvm.sweep(kernel, cases(6), check=dies)
    assert [r.status for r in done] == ["ok", "ok", "ok", "ok", "lost", "ok"]


def test_a_cluster_of_dask_that_loses_a_worker(kernel, tmp_path):
    distributed = pytest.importorskip("distributed")
    environment = {**os.environ, "SWEEP_FOLDER": str(tmp_path), "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(Path(ptxvm.__file__).parents[1])])}

    def start(*words):
        return subprocess.Popen([sys.executable, "-m", *words], env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    file = tmp_path / "scheduler.json"
    scheduler = start("distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    workers = []
    try:
        until(file.exists)
        for _ in range(2):
            workers.append(start("distributed.cli.dask_worker", "--scheduler-file", str(file), "--no-nanny", "--nthreads", "1", "--no-dashboard"))
        with distributed.Client(scheduler_file=str(file), timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            counted = []

            def progress(count, total):
                counted.append(count)
                if count == 5:
                    workers[0].send_signal(signal.SIGKILL)

            results = tmp_path / "results.jsonl"
            listed = [ptxvm.Case((i % 6, np.zeros(1, np.uint32)), label=f"case {i}") for i in range(40)]
            done = ptxvm.sweep(kernel, listed, client, check=slow, results=results, progress=progress)
        assert workers[0].wait(timeout=30) == -signal.SIGKILL
        assert done.counts == {"ok": 40}, done
        assert [r.index for r in done] == list(range(40))
        assert [int(r.arrays[0][0]) for r in done] == [(i % 6) ** 2 for i in range(40)]
        assert counted == list(range(1, 41))
        # Each case is in the file once, although some were begun twice.
        keys = [json.loads(line)["key"] for line in results.read_text().splitlines()]
        assert len(keys) == len(set(keys)) == 40
        used = {path.name.split("-")[1] for path in tmp_path.iterdir() if path.name[0].isdigit()}
        assert len(used) == 2
    finally:
        for process in [*workers, scheduler]:
            process.kill()
            process.wait()


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


SCRIPT = '''
import numpy as np
import ptxvm

kernel = ptxvm.Vm(cache=False).load("below.ptx")["below"]


def main():
    print(ptxvm.sweep(kernel, [(n, np.zeros(1, np.uint32)) for n in range(4)]).counts)


{guard}main()
'''


@pytest.mark.parametrize("guard, status, said", [('if __name__ == "__main__":\n    ', 0, "{'ok': 4}"), ("", 1, 'a script calls `ptxvm.sweep` below `if __name__ == "__main__":`')])
def test_scripts(tmp_path, guard, status, said):
    (tmp_path / "below.ptx").write_text(GUARD)
    (tmp_path / "script.py").write_text(SCRIPT.replace("{guard}", guard))
    environment = {**os.environ, "PYTHONPATH": str(Path(ptxvm.__file__).parents[1])}
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == status and said in done.stdout + done.stderr, done


def squares(done):
    """Checks the results of the cases of `cases(8)`, of which the last two trap."""
    assert [r.status for r in done] == ["ok"] * 6 + ["trap"] * 2
    assert [int(r.arrays[0][0]) for r in done if r.ok] == [0, 1, 4, 9, 16, 25]


def test_a_pool_of_ray(kernel):
    ray = pytest.importorskip("ray")
    from ray.util.multiprocessing import Pool

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with Pool(2) as pool:
            squares(ptxvm.sweep(kernel, cases(8), pool))
    finally:
        ray.shutdown()


MPI = '''
import sys
import numpy as np
import ptxvm
from mpi4py.futures import MPIPoolExecutor

if __name__ == "__main__":
    kernel = ptxvm.Vm().load("below.ptx")["below"]
    with MPIPoolExecutor() as pool:
        done = ptxvm.sweep(kernel, [(n, np.zeros(1, np.uint32)) for n in range(8)], pool)
    print(done.counts, [int(r.arrays[0][0]) for r in done if r.ok])
'''


def test_a_pool_of_mpi4py(tmp_path):
    import shutil

    pytest.importorskip("mpi4py")
    mpiexec = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if mpiexec is None:
        pytest.skip("mpiexec is not installed")
    (tmp_path / "below.ptx").write_text(GUARD)
    (tmp_path / "script.py").write_text(MPI)
    command = [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout == "{'ok': 6, 'trap': 2} [0, 1, 4, 9, 16, 25]\n", done
