"""The back end for the processor itself: compiling in other processes, sharing what was compiled, threads."""

import logging
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
from litecl.delegate.native import backend, compiler, library, workers
from litecl.delegate.native.clang import Compiler, Unit
from litecl.delegate.progress import BuildStep
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError, DeviceNotFound, KernelBuildError, LimitError, ModelError
from litecl.interpreter.file.writer import write
from litecl.perf.cli.command import progress
from support import compare, small_models
from support.loop_models import COUNTER, below, growing, int32, while_model
from support.small_models import prepared, reference, run

pytestmark = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")
RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 5)).astype(np.float32)
CHAIN = small_models.chain()


def native(model: Any = CHAIN, **options: Any) -> Interpreter:
    """An interpreter with the processor's own back end, which must not fail."""
    return prepared(model, **{"device": "native", "strict": True, **options})


def test_a_region_is_one_function() -> None:
    interpreter = native()
    compare.assert_close(run(interpreter, X), run(reference(CHAIN), X), compare.DEVICE["float32"])
    report = interpreter.delegation_report()
    assert report.device == "native"
    assert [str(partition.manner) for partition in report.partitions] == ["one kernel"]
    counters = report.counters
    assert (counters.kernel_launches, counters.host_syncs) == (1, 1)


def test_objects_are_shared_by_models(tmp_path: Path) -> None:
    """A model whose kernels another one has had compiled needs the table of its functions alone."""
    steps = list[BuildStep]()
    native(cache_dir=tmp_path, progress=steps.append)
    (compiled,) = {step.total for step in steps}
    assert compiled == len(steps) - 1 > 2
    steps.clear()
    dense = native(small_models.lstm(), cache_dir=tmp_path, progress=steps.append)
    assert dense.delegation_report().cache_hits > 0
    steps.clear()
    library.Libraries(_found(), {"VW": 4}, tmp_path)
    native(cache_dir=tmp_path, profile=False, progress=steps.append)
    assert not steps


def _found() -> Compiler:
    found = compiler.found()
    assert found is not None
    return found


def test_an_interrupt_ends_every_compiler(tmp_path: Path) -> None:
    """Nothing half-written is in the cache, no process is left, and a second try succeeds."""

    def interrupt(step: BuildStep) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        native(cache_dir=tmp_path, progress=interrupt)
    assert not [path for path in tmp_path.rglob("*") if path.suffix == ".bin"]
    assert not _children()
    compare.assert_close(run(native(cache_dir=tmp_path), X), run(reference(CHAIN), X), compare.DEVICE["float32"])


def test_what_was_compiled_before_an_interrupt_is_kept(tmp_path: Path) -> None:
    def interrupt(step: BuildStep) -> None:
        if step.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        native(cache_dir=tmp_path, progress=interrupt)
    assert not _children()
    kept = {path.stem for path in tmp_path.rglob("*.bin")}
    assert len(kept) == 2
    assert {path.suffix for path in tmp_path.rglob("*")} <= {".bin", ".json"}
    steps = list[BuildStep]()
    again = native(cache_dir=tmp_path, progress=steps.append)
    (left,) = {step.total for step in steps}
    steps.clear()
    native(cache_dir=tmp_path / "another", progress=steps.append)
    (all_of_them,) = {step.total for step in steps}
    assert left == all_of_them - 2
    compare.assert_close(run(again, X), run(reference(CHAIN), X), compare.DEVICE["float32"])


def test_ctrl_c_ends_a_process_that_compiles(tmp_path: Path) -> None:
    """At several moments: no file that is half-written is left, neither in the cache nor beside it."""
    (tmp_path / "model.tflite").write_bytes(write(CHAIN))
    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    temporary.mkdir()
    code = """
        import sys
        from litecl.delegate import CLDelegate
        from litecl.interpreter import Interpreter

        print("begin", flush=True)
        Interpreter("model.tflite", delegates=[CLDelegate("native", cache_dir="cache")]).allocate_tensors()
    """
    for after_s in (0.0, 0.05, 0.1, 0.2, 0.3):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(after_s)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode in (-signal.SIGINT, 0)
        assert not [*temporary.iterdir()]
        assert {path.suffix for path in cache.rglob("*")} <= {".bin", ".json"}


def test_slow_compiling_is_told_of(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Once: to the log, and by commands on stderr where that is no terminal."""
    monkeypatch.setattr("litecl.delegate.progress._LONG_S", 0.0)
    monkeypatch.setattr("litecl.perf.cli.command._LONG_S", 0.0)
    with caplog.at_level(logging.INFO, "litecl"), progress("preparing", None) as bar:
        native(cache_dir=tmp_path, progress=bar.building)
    assert caplog.text.count("files are done, and will be kept") == 1
    assert capsys.readouterr().err.count("this is done once") == 1


def _children() -> list[str]:
    """The processes that this one has started and that run a compiler."""
    found = subprocess.run(
        ["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False
    )
    return [line for line in found.stdout.splitlines() if "clang" in line]


def test_what_a_compiler_says_is_in_the_error() -> None:
    unit = Unit("wrong.cl", source_of("native.h") + '#line 1 "wrong.cl"\nvoid f() { nothing_there(); }\n', ("-DVW=8",))
    with pytest.raises(KernelBuildError, match=r"(?s)wrong\.cl with -DVW=8.*wrong\.cl:1.*nothing_there"):
        _found().compile([unit])


def test_a_compiler_that_is_gone_is_an_error_or_the_cpu_takes_over(tmp_path: Path) -> None:
    gone = Compiler((str(tmp_path / "gone"),), "a test")
    with pytest.raises(KernelBuildError, match="No such file"):
        _ = gone.version
    found = backend.NativeFound(_found())
    broken = backend.NativeDevice(found, None)
    broken._libraries._compiler = Compiler(("false",), "a test")
    with pytest.raises(KernelBuildError, match="false"):
        broken._libraries.crew()


def test_a_compiler_of_the_users(tmp_path: Path) -> None:
    path = tmp_path / "my-clang"
    path.write_text(f'#!/bin/sh\nexec {" ".join(_found().command)} "$@"\n')
    path.chmod(0o755)
    interpreter = prepared(CHAIN, compiler=path, strict=True, cache_dir=tmp_path / "cache")
    compare.assert_close(run(interpreter, X), run(reference(CHAIN), X), compare.DEVICE["float32"])
    assert interpreter.delegation_report().device == "native"
    old = tmp_path / "old-clang"
    old.write_text("#!/bin/sh\necho clang version 9.0.0 >&2\n")
    old.chmod(0o755)
    with pytest.raises(KernelBuildError, match=r"expected clang 16 or newer, got 'clang version 9\.0\.0"):
        prepared(CHAIN, compiler=old, strict=True, cache_dir=None)
    with pytest.raises(DelegateError, match="compiler is for the processor itself"):
        prepared(CHAIN, compiler=path, device="pocl", strict=True)


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "found", lambda directory=None: None)
    assert backend.Native().devices() == []
    with pytest.raises(DeviceNotFound, match="pip install ziglang"):
        native()


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
    """Interpreters of several workers in several threads: whoever finds helpers busy works alone, and all are right."""
    faults = list[str]()
    wanted = run(reference(CHAIN), X)

    def work() -> None:
        interpreter = native(num_threads=2)
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
    interpreter = native(num_threads=2)
    before = run(interpreter, X)
    child = os.fork()
    if not child:
        code = 1
        try:  # or the child would go on as the tests
            signal.alarm(20)
            again = run(interpreter, X), run(native(num_threads=2), X)
            code = 0 if all(np.array_equal(x, before) for x in again) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(run(interpreter, X), before)


@pytest.mark.parametrize("threads", [1, 2])
def test_times_of_launches(threads: int) -> None:
    interpreter = native(num_threads=threads, profile=True)
    run(interpreter, X)
    rows = interpreter.delegation_report().kernels
    assert len(rows) == sum(partition.launches for partition in interpreter.delegation_report().partitions)
    assert all(0 < row.duration_ms < 1e3 for row in rows)


@pytest.mark.parametrize("options", [{}, {"queue_loops": True}], ids=["one function", "one by one"])
def test_no_times_without_profile(options: dict[str, Any]) -> None:
    interpreter = native(**options)
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
    found = _found()
    if found.source != "of ziglang":
        pytest.skip(f"{found.source} may know this machine's processor alone")
    other = Compiler(found.command, found.source, found.linker, ("-target", target, *TARGETS[target]))
    text = source_of("native.h") + source_of("softmax.cl")
    kernel = Unit("softmax.cl", text, ("-DVW=4", "-DLITECL_REGION=1"))
    assert all(other.compile([kernel, Unit("crew.c", source_of("crew.c"))]))
