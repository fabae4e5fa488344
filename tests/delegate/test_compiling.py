"""Compilers of the processor's own back end: processes that an interrupt ends, objects that are kept, errors."""

import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cli.command import progress
from litecl.delegate import CLDelegate, disk
from litecl.delegate.backend import scratch
from litecl.delegate.backend.sources import source_of
from litecl.delegate.native import backend, clang, compiler, library
from litecl.delegate.native.clang import Compiler, Unit
from litecl.delegate.progress import BuildStep
from litecl.interpreter.errors import DelegateError, KernelBuildError
from litecl.interpreter.file.writer import write
from support import compare, small_models
from support.full_disk import full_disk
from support.small_models import native, prepared, reference, run

pytestmark = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")
RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 5)).astype(np.float32)
CHAIN = small_models.chain()


def test_objects_are_shared_by_models(tmp_path: Path) -> None:
    """A model whose kernels another one has had compiled needs the table of its functions alone."""
    steps = list[BuildStep]()
    native(CHAIN, cache_dir=tmp_path, progress=steps.append)
    (compiled,) = {step.total for step in steps}
    assert compiled == len(steps) - 1 > 2
    steps.clear()
    dense = native(small_models.lstm(), cache_dir=tmp_path, progress=steps.append)
    assert dense.delegation_report().cache_hits > 0
    steps.clear()
    library.Libraries(_found(), {"VW": 4}, tmp_path)
    native(CHAIN, cache_dir=tmp_path, profile=False, progress=steps.append)
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
        native(CHAIN, cache_dir=tmp_path, progress=interrupt)
    assert not [path for path in tmp_path.rglob("*") if path.suffix == ".bin"]
    assert not _children()
    compare.assert_close(run(native(CHAIN, cache_dir=tmp_path), X), run(reference(CHAIN), X), compare.DEVICE["float32"])


def test_what_was_compiled_before_an_interrupt_is_kept(tmp_path: Path) -> None:
    def interrupt(step: BuildStep) -> None:
        if step.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        native(CHAIN, cache_dir=tmp_path, progress=interrupt)
    assert not _children()
    kept = {path.stem for path in tmp_path.rglob("*.bin")}
    assert len(kept) == 2
    assert {path.suffix for path in (tmp_path / disk.OWN).iterdir()} <= {".bin", ".json", ".TAG"}
    steps = list[BuildStep]()
    again = native(CHAIN, cache_dir=tmp_path, progress=steps.append)
    (left,) = {step.total for step in steps}
    steps.clear()
    native(CHAIN, cache_dir=tmp_path / "another", progress=steps.append)
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
        assert {path.suffix for path in cache.rglob("*")} <= {"", ".TAG", ".bin", ".json"}


def test_slow_compiling_is_told_of(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Once: to the log, and by commands on stderr where that is no terminal."""
    monkeypatch.setattr("litecl.delegate.progress._LONG_S", 0.0)
    monkeypatch.setattr("litecl.cli.command._LONG_S", 0.0)
    with caplog.at_level(logging.INFO, "litecl"), progress("preparing", None) as bar:
        native(CHAIN, cache_dir=tmp_path, progress=bar.building)
    assert caplog.text.count("files are compiled and stay cached") == 1
    assert capsys.readouterr().err.count("this happens once") == 1


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


def _sources(bodies: dict[str, str]) -> list[Unit]:
    """Kernel files of one function each, with a macro that differs."""
    prelude = source_of("native.h")
    return [
        Unit(f"{name}.cl", f'{prelude}#line 1 "{name}.cl"\nvoid {name}(void) {{ {body} }}\n', (f"-DVW={2 << n % 4}",))
        for n, (name, body) in enumerate(bodies.items())
    ]


@pytest.mark.parametrize("wrong", range(5))
def test_an_error_is_of_its_own_source(monkeypatch: pytest.MonkeyPatch, wrong: int) -> None:
    """No matter which others its process compiles: those before it are made."""
    monkeypatch.setattr("litecl.delegate.native.processes.processors", lambda: 1)
    units = _sources({f"f{n}": "nothing_there();" if n == wrong else "" for n in range(5)})
    made = list[int]()
    with pytest.raises(KernelBuildError, match=rf"(?s)^f{wrong}\.cl with -DVW.*f{wrong}\.cl:1.*nothing_there"):
        made.extend(number for number, _ in _found().compiled(units))
    assert made == [*range(wrong)]


def test_a_process_compiles_several_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every process gets some; a source's result doesn't depend on the others."""
    units, started = _sources({f"f{n}": f"volatile int x = {n} + VW;" for n in range(7)}), list[object]()
    real = subprocess.Popen

    def popen(*args: Any, **options: Any) -> "subprocess.Popen[bytes]":
        started.append(args)
        return real(*args, **options)

    monkeypatch.setattr("subprocess.Popen", popen)
    alone = [_found().compile([unit])[0] for unit in units]
    assert len(started) == len(units) == len({*alone})
    for processors in (1, 2, 5, 50):
        monkeypatch.setattr("litecl.delegate.native.processes.processors", lambda count=processors: count)
        started.clear()
        assert _found().compile(units) == alone
        assert len(started) == min(processors, len(units))
        assert _found().compile(units[::-1]) == alone[::-1]


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
    other = tmp_path / "no-clang"
    other.write_text("#!/bin/sh\necho 'unknown option -dM' >&2\nexit 2\n")
    other.chmod(0o755)
    reason = prepared(CHAIN, compiler=other, cache_dir=None).delegation_report().nodes[0].reason
    assert reason.endswith("the compiler failed (exit status 2): unknown option -dM")


def _hanging(path: Path, *, after: int) -> Path:
    """Return a compiler that works a number of times, then waits for a child, which writes its process id to a file."""
    real = _found()
    path.write_text(
        f"""#!/bin/sh
echo x >> {path}.calls
if [ $(wc -l < {path}.calls) -gt {after} ]; then sleep 1000 & echo $! >> {path}.pids; wait; fi
exec {" ".join(real.command)} "$@"
"""
    )
    path.chmod(0o700)
    return path


def _gone(path: Path) -> bool:
    """Return whether the children of a hanging compiler were ended, and there were some."""
    numbers = Path(f"{path}.pids").read_text().split()
    states = [Path(f"/proc/{number}/stat") for number in numbers]
    return bool(numbers) and not any(s.exists() and s.read_text().rpartition(")")[2].split()[0] != "Z" for s in states)


@pytest.mark.skipif(sys.platform != "linux", reason="a shell, and processes as Linux shows them")
@pytest.mark.parametrize("after", [0, 2, 3, 4])
def test_a_compiler_that_hangs_leaves_the_cpu(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether it hangs when asked for its version, in its first compilation or later: one wait for all regions of a
    model.
    """
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("litecl.delegate.progress._said", set())
    path = _hanging(tmp_path / "clang", after=after)
    start_s = time.monotonic()
    options: dict[str, Any] = {"compiler": path, "cache_dir": None, "compile_timeout": 1.0, "num_threads": 1}
    with caplog.at_level(logging.WARNING, "litecl"):
        interpreter = prepared(CHAIN, deny_ops={"EXP"}, **options)
    assert time.monotonic() - start_s < 60  # and not a second for every region and question
    compare.assert_close(run(interpreter, X), run(reference(CHAIN), X), compare.DEVICE["float32"])
    assert not interpreter.delegation_report().claimed
    assert "the compiler made nothing in 1 s, and was ended" in caplog.text
    assert _gone(path)
    assert not _children()
    assert {each.name for each in tmp_path.iterdir()} == {"clang", "clang.calls", "clang.pids"}
    with pytest.raises(DelegateError, match=r"made nothing in 1 s.*compile_timeout"):
        prepared(CHAIN, strict=True, **options)


@pytest.mark.skipif(sys.platform != "linux", reason="a shell, and processes as Linux shows them")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_leaves_nothing_of_a_command_that_compiles(name: str, tmp_path: Path) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    (model := tmp_path / "model.tflite").write_bytes(write(CHAIN))
    path = _hanging(tmp_path / "clang", after=2)
    words = "run", str(model), "--compiler", str(path), "--cache", str(tmp_path / "cache"), "-o", str(tmp_path / "out")
    process = subprocess.Popen(
        [sys.executable, "-m", "litecl", *words],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not Path(f"{path}.pids").exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.1)  # the compiler has started
    number = getattr(signal, name)
    process.send_signal(number)
    assert b"Traceback" not in process.communicate(timeout=60)[1]
    assert process.returncode == (130 if name == "SIGINT" else -number)
    assert _gone(path)
    assert not [*temporary.iterdir()] and not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), "30"])
def test_a_time_limit_that_is_none(value: Any) -> None:
    with pytest.raises(DelegateError, match="compile_timeout: expected more than 0 s"):
        CLDelegate(compile_timeout=value)


def test_no_limit_and_one_given_as_a_string() -> None:
    assert CLDelegate.from_strings({"compile_timeout": "2.5"}).compile_timeout == 2.5
    assert CLDelegate.from_strings({"compile_timeout": "none"}).compile_timeout is None
    native(CHAIN, cache_dir=None, compile_timeout=None)


_KILLED = """
import os, signal
from litecl.delegate.native import clang
with clang.folder() as folder:
    (folder / "source.cl").touch()
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="locks of files")
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But not what lives, is new, is of another machine or user, or is not litecl's."""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    for _ in range(4):
        subprocess.run([sys.executable, "-c", _KILLED], env=environment, check=False, capture_output=True)
    left, remote, new, foreign = sorted(tmp_path.iterdir())
    (remote / scratch.LOCK).write_bytes(b"another machine")
    if os.geteuid() == 0:
        os.chown(foreign, 12345, 12345)
    others = [tmp_path / f"{scratch.BUILD}{name}" for name in ("mine", "link", "pipe", "with-dash")]
    mine, link, pipe, dash = others
    begun = tmp_path / f"{scratch.BUILD}{'0' * 16}"  # not locked yet
    (tmp_path / "elsewhere").mkdir()
    for folder_ in (mine, pipe, dash, begun):
        folder_.mkdir()
    os.mkfifo(pipe / scratch.LOCK)
    link.symlink_to(left)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    clang._tidied.cache_clear()
    with scratch.temporary(tmp_path, scratch.BUILD) as alive:
        for each in tmp_path.iterdir():
            if each not in (new, begun) and not each.is_symlink():
                os.utime(each, (1e9, 1e9))
        with clang.folder() as own:
            kept = {*tmp_path.iterdir()} - {begun}
        for age_s in (600, 3700):
            assert begun.exists()
            os.utime(begun, (time.time() - age_s,) * 2)
            scratch.remove_left(tmp_path, scratch.BUILD)
        assert not begun.exists()
    expected = {remote, new, alive, own, *others, tmp_path / "elsewhere"}
    assert kept == (expected | {foreign} if os.geteuid() == 0 else expected)
    clang._tidied.cache_clear()


@pytest.mark.skipif(sys.platform != "linux", reason="files of a process by number")
def test_a_lock_that_cannot_be_written_is_closed(tmp_path: Path) -> None:
    before = len([*Path("/proc/self/fd").iterdir()])
    with full_disk(0), scratch.temporary(tmp_path, scratch.BUILD) as folder:
        assert folder.is_dir()
    assert len([*Path("/proc/self/fd").iterdir()]) == before and not [*tmp_path.iterdir()]
