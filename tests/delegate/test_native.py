"""The back end for the processor itself: regions as functions, threads, loops, times, other processors."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.backend.sources import source_of
from litecl.delegate.native import backend, compiler, workers
from litecl.delegate.native.clang import Compiler, Unit
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DeviceNotFound, LimitError, ModelError
from litecl.interpreter.file.writer import write
from support import compare, small_models
from support.loop_models import COUNTER, below, growing, int32, while_model
from support.small_models import native, reference, run

pytestmark = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")
RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 5)).astype(np.float32)
CHAIN = small_models.chain()


def test_a_region_is_one_function() -> None:
    interpreter = native(CHAIN)
    compare.assert_close(run(interpreter, X), run(reference(CHAIN), X), compare.DEVICE["float32"])
    report = interpreter.delegation_report()
    assert report.device == "native"
    assert [str(partition.manner) for partition in report.partitions] == ["one kernel"]
    counters = report.counters
    assert (counters.kernel_launches, counters.host_syncs) == (1, 1)


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "found", lambda directory=None: None)
    assert backend.Native().devices() == []
    with pytest.raises(DeviceNotFound, match="pip install ziglang"):
        native(CHAIN)


def test_neither_pyopencl_nor_a_driver_is_needed(tmp_path: Path) -> None:
    """In a thread with the smallest stack that Python gives, and little address space: compilers have their own."""
    (tmp_path / "model.tflite").write_bytes(write(CHAIN))
    code = """
        import resource, sys, threading
        sys.modules["pyopencl"] = None  # importing it raises ImportError
        from litecl.delegate import CLDelegate
        from litecl.interpreter import Interpreter

        def use():
            interpreter = Interpreter("model.tflite", delegates=[CLDelegate("native", strict=True, cache_dir=None)])
            interpreter.allocate_tensors()
            interpreter.invoke()
            print(interpreter.delegation_report().counters.kernel_launches, "launch")

        resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))
        threading.stack_size(32 << 10)
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "1 launch\n"), ran.stderr


def test_helpers_serve_many_threads() -> None:
    """Interpreters in several threads share helpers: one that finds them busy works alone. All results are right."""
    faults = list[str]()
    wanted = run(reference(CHAIN), X)

    def work() -> None:
        interpreter = native(CHAIN, num_threads=2)
        for _ in range(500):
            if not compare.is_close(run(interpreter, X), wanted, compare.DEVICE["float32"]):
                faults.append("wrong")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_helpers_are_hired_once() -> None:
    """Threads that build at the same time start no more helpers than one of them would."""
    under_way, most = 0, list[int]()

    class Library:
        @staticmethod
        def hire(count: int) -> int:
            nonlocal under_way
            under_way += 1
            most.append(under_way)
            time.sleep(0.01)  # others run, as they do while a function of C runs
            under_way -= 1
            return count

    crew = workers.Crew(cast(Any, Library), 0, 0, 0)
    threads = [threading.Thread(target=crew.hire, args=(2,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_goes_on_without_helpers() -> None:
    interpreter = native(CHAIN, num_threads=2)
    before = run(interpreter, X)
    child = os.fork()
    if not child:
        code = 1
        try:  # or the child would go on as the tests
            signal.alarm(120)  # a child that waits for nothing takes seconds on a busy machine
            again = run(interpreter, X), run(native(CHAIN, num_threads=2), X)
            code = 0 if all(np.array_equal(x, before) for x in again) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(run(interpreter, X), before)


@pytest.mark.parametrize("threads", [1, 2])
def test_times_of_launches(threads: int) -> None:
    interpreter = native(CHAIN, num_threads=threads, profile=True)
    run(interpreter, X)
    rows = interpreter.delegation_report().kernels
    assert len(rows) == sum(partition.launches for partition in interpreter.delegation_report().partitions)
    assert all(0 < row.duration_ms < 1e3 for row in rows)


@pytest.mark.parametrize("options", [{}, {"queue_loops": True}], ids=["one function", "one by one"])
def test_no_times_without_profile(options: dict[str, Any]) -> None:
    interpreter = native(CHAIN, **options)
    run(interpreter, X)
    assert not interpreter.delegation_report().kernels


def test_states_stay_between_invokes() -> None:
    model, rng = small_models.lstm(), np.random.default_rng(2)
    interpreter, wanted = native(model), reference(model)
    for _ in range(3):
        x = rng.standard_normal((1, 3, 4)).astype(np.float32)
        compare.assert_close(run(interpreter, x), run(wanted, x), compare.DEVICE["float32"])


def test_how_loops_end() -> None:
    """max_loop_iterations ends a loop; where time is limited the host runs launches one by one, and ends a long one."""
    endless = while_model(COUNTER, below(10**9), growing)
    feeds = [int32(0), RNG.standard_normal(5).astype(np.float32)]
    for options in ({}, {"queue_loops": True}):
        limited = native(endless, max_loop_iterations=50, **options)
        for detail, feed in zip(limited.get_input_details(), feeds, strict=True):
            limited.set_tensor(detail["index"], feed)
        for _ in range(2):
            with pytest.raises(ModelError, match="more than 50 iterations"):
                limited.invoke()
    timed = Interpreter(endless, delegates=[CLDelegate("native", strict=True)], time_limit=0.2)
    timed.allocate_tensors()
    (row,) = timed.delegation_report().partitions
    assert str(row.manner) == "queued (time_limit does not interrupt a running kernel)"
    with pytest.raises(LimitError):
        timed.invoke()


@pytest.mark.parametrize("threads", [1, 2])
def test_launches_one_by_one(threads: int) -> None:
    """They compute the same, and the host takes their times."""
    model = while_model(COUNTER, below(7), growing)
    results = []
    for options in ({}, {"queue_loops": True, "profile": True}):
        interpreter = native(model, num_threads=threads, **options)
        for start in (0, 5, 9):
            interpreter.set_tensor(0, int32(start))
            interpreter.set_tensor(1, X[0])
            interpreter.invoke()
            results += [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    for a, b in zip(results[:6], results[6:], strict=True):
        np.testing.assert_array_equal(a, b)
    interpreter.set_tensor(0, int32(3))
    interpreter.invoke()
    rows = interpreter.delegation_report().kernels
    assert {row.runs for row in rows if row.subgraph == 2} == {4}
    assert interpreter.delegation_report().counters.kernel_launches == sum(row.runs for row in rows)


TARGETS = {
    "aarch64-linux-gnu": ("-mcpu=cortex-a76",),
    "aarch64-macos": ("-mcpu=apple-m1",),
    "arm-linux-gnueabihf": ("-mcpu=cortex-a72",),
    "riscv64-linux-gnu": ("-march=rv64gcv",),
    "x86_64-windows-gnu": ("-march=x86-64-v3",),
}


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_compile_for_processors_that_are_not_there(target: str) -> None:
    found = compiler.found()
    assert found is not None
    if found.source != "of ziglang":
        pytest.skip(f"{found.source} may know this machine's processor alone")
    other = Compiler(found.command, found.source, found.linker, ("-target", target, *TARGETS[target]))
    text = source_of("native.h") + source_of("softmax.cl")
    kernel = Unit("softmax.cl", text, ("-DVW=4", "-DLITECL_REGION=1"))
    assert all(other.compile([kernel, Unit("crew.c", source_of("crew.c"))]))
