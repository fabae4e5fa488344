"""What Windows lacks or does differently, as far as it can be tried on other systems."""

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from litecl.delegate import disk
from litecl.delegate.backend import scratch
from litecl.delegate.backend.sources import name_of, source_of
from litecl.delegate.native import clang, compiler, linking, loading
from litecl.delegate.native.clang import Unit
from litecl.delegate.native.library import Libraries
from litecl.delegate.opencl import folder
from litecl.interpreter import whole_files
from litecl.interpreter.file.writer import write
from support import small_models
from support.skips import as_itself

pytestmark = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")
CHAIN = small_models.chain()

WITHOUT = """
    import os, platform, signal, sys
    import numpy  # what others import of these is theirs
    platform.machine()
    for name in ("fork", "forkpty", "uname", "sched_getaffinity", "register_at_fork", "killpg", "getuid", "geteuid",
                 "getgid", "getpgid", "setsid", "sysconf", "getloadavg", "mkfifo", "statvfs", "posix_spawn"):
        delattr(os, name)
    for name in ("SIGKILL", "SIGALRM", "SIGHUP", "SIGUSR1", "setitimer", "alarm", "pthread_kill", "pthread_sigmask"):
        delattr(signal, name)
    for name in ("fcntl", "resource", "pwd", "grp", "termios", "readline"):
        sys.modules[name] = None  # importing it raises ImportError
"""


def child(code: str, folder: Path, *options: str) -> str:
    """Return the output of a process that runs a model, saved as ``model.tflite`` in a folder."""
    (folder / "model.tflite").write_bytes(write(CHAIN))
    command = [sys.executable, *options, "-c", textwrap.dedent(code)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


USE = """
    from litecl.delegate import CLDelegate, disk
    from litecl.interpreter import Interpreter
    from pathlib import Path
    for options in ({}, {"num_threads": 2}, {"profile": True}, {"warm_up": "background"}):
        delegate = CLDelegate("native", strict=True, cache_dir="cache", **options)
        with Interpreter("model.tflite", delegates=[delegate], memory_limit=1 << 24, time_limit=60) as interpreter:
            interpreter.allocate_tensors()
            interpreter.invoke()
            interpreter.delegation_report()
    own = disk.own("cache")
    disk.set_limit(own, 1 << 20)
    disk.tidy(own, disk.limit(own))
    assert disk.size_bytes(own)
    print(*sorted({path.suffix for path in own.iterdir()}))
"""


def test_what_the_system_does_not_have(tmp_path: Path) -> None:
    """A model is compiled, kept, run by threads and measured without it."""
    assert child(WITHOUT + USE, tmp_path).split()[-1] == ".json"


def test_files_of_text_are_utf_8(tmp_path: Path) -> None:
    """No matter which encoding the system would choose."""
    strictly = """
    import warnings
    warnings.filterwarnings("error", category=EncodingWarning, module=r"litecl\\.")
    """
    assert child(strictly + USE, tmp_path, "-X", "warn_default_encoding").split()[-1] == ".json"


@pytest.mark.parametrize("folder", [r"C\Users\new", 'the "best" ones', "größer"])
def test_names_of_files_are_quoted(tmp_path: Path, folder: str) -> None:
    """In the text that is compiled, where they tell the place of an error."""
    found, path = compiler.found(), tmp_path / folder / "mine.cl"
    assert found is not None
    path.parent.mkdir()
    path.write_text('#include "common.h"\nKERNEL void fill(ITEM int n) { größe }\n', encoding="utf-8")
    source = source_of("native.h") + source_of(str(path))
    assert name_of(source) == str(path)
    with pytest.raises(clang.KernelBuildError, match=r"mine\.cl:2:\d+: error: .*größe"):
        found.compile([Unit(str(path), source, ("-DLITECL_REGION=1", "-DVW=4"))])
    path.write_text('#include "common.h"\nKERNEL void fill(ITEM int n) {}\n')
    source = source_of("native.h") + source_of(str(path))
    assert found.compile([Unit(str(path), source, ("-DLITECL_REGION=1", "-DVW=4"))])


@as_itself
@pytest.mark.parametrize(
    ("system", "machine", "target"),
    [
        ("win32", "AMD64", ("-target", "x86_64-windows-gnu", "-march=native")),
        ("darwin", "arm64", ("-target", "arm64-apple-macosx11.0", "-mcpu=native")),
        ("linux", "x86_64", ("-march=native",)),
        ("linux", "aarch64", ("-mcpu=native",)),
        ("linux", "riscv64", ("-mcpu=native",)),
        ("freebsd14", "amd64", ("-march=native",)),
    ],
)
def test_the_target_of_each_system(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, target: tuple[str, ...]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sys.platform", system)
        patch.setattr("platform.machine", lambda: machine)
        got = compiler.native_target()
    assert got == target


@pytest.mark.parametrize(("machine", "count"), [("AMD64", 1), ("ARM64", 0)])
def test_the_only_compiler_on_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, count: int
) -> None:
    """It is that of ziglang, whatever is on the path; none on ARM, for which it does not link."""
    (tmp_path / "zig.exe").touch()
    (tmp_path / "clang").touch(mode=0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: SimpleNamespace(origin=str(tmp_path / "__init__.py")))
        patch.setattr("sys.platform", "win32")
        patch.setattr("platform.machine", lambda: machine)
        found = [*compiler._installed()]
    assert [type(each) for each in found] == [linking.ForWindows] * count


@as_itself
@pytest.mark.parametrize(("system", "start"), [("win32", b"MZ"), ("darwin", b"\xcf\xfa\xed\xfe")])
def test_libraries_of_a_system(monkeypatch: pytest.MonkeyPatch, system: str, start: bytes) -> None:
    """They are linked as that system's, by the compiler that would be found there."""
    found = compiler.found()
    assert found is not None
    if not found.linker or "__x86_64__" not in found.macros:
        pytest.skip("not the package ziglang, or not an x86-64 processor")
    with monkeypatch.context() as patch:
        patch.setattr("sys.platform", system)
        patch.setattr("platform.machine", lambda: "AMD64")
        target = compiler.native_target()
    there = linking.of_zig(found.command[0], found.source, system, "x86_64", target)
    _, content = Libraries(there, {}, None).content(Libraries(there, {}, None).crew_units())
    assert content.startswith(start)


def test_libraries_that_processes_have_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a file that is loaded cannot be removed, the next process does, unless it may be about to be loaded."""
    found = compiler.found()
    assert found is not None
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    content = found.link(found.compile([Unit("one.c", "int one(void) { return 1; }", ("-fvisibility=default",))]))
    assert loading.loaded(content).one() == 1
    assert not [*tmp_path.iterdir()]
    monkeypatch.setattr(loading, "_KEEPS", True)
    names = ("litecl-a1b2c3_4", "litecl-b1b2c3_4", "litecl-old")
    old, young, other = (tmp_path / f"{name}{loading._SUFFIX}" for name in names)
    for path in (old, young, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (time.time() - 3600,) * 2)
    loading._tidy.cache_clear()
    assert loading.loaded(content).one() == 1
    assert not old.exists()
    assert young.exists() and other.exists()
    assert len([*tmp_path.iterdir()]) == 3


@pytest.fixture
def windows_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuse to remove or replace a file that this process has open, as Windows does."""
    unlink, replace = os.unlink, os.replace

    def check(path: Path) -> None:
        held = {os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()}
        if os.path.realpath(path) in held:
            raise PermissionError(13, "it is open")

    def checked_unlink(path: Path, *, dir_fd: None = None) -> None:
        check(path)
        unlink(path)

    def checked_replace(path: Path, target: Path, *, src_dir_fd: None = None, dst_dir_fd: None = None) -> None:
        check(path)
        check(target)
        replace(path, target)

    monkeypatch.setattr(os, "unlink", checked_unlink)
    monkeypatch.setattr(os, "replace", checked_replace)
    monkeypatch.setattr(whole_files, "BY_HANDLE", False)
    yield


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no list of open files here")
@pytest.mark.usefixtures("windows_files")
def test_a_file_that_is_open_is_not_replaced(tmp_path: Path) -> None:
    """It keeps its content, and no other file is left."""
    path = tmp_path / "kept"
    disk.write_sealed(path, b"first")
    with path.open("rb"), pytest.raises(PermissionError):
        disk.write_sealed(path, b"second")
    assert disk.read_sealed(path) == b"first"
    disk.write_sealed(path, b"third")
    assert disk.read_sealed(path) == b"third"

    with pytest.raises(TypeError):
        disk.write_atomically(path, b"half", "no bytes")  # type: ignore[arg-type]
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("locks", [True, False])
def test_folders_of_pocl_go_where_a_lock_tells_that_nobody_uses_them(
    locks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "_LOCKS", locks)
    monkeypatch.setattr(folder.atexit, "register", lambda *arguments: None)
    left = Path(folder.make(tmp_path))
    monkeypatch.setattr(scratch, "_NEW_S", -1.0)
    for number in [each for each in range(3, 64) if Path(f"/proc/self/fd/{each}").exists()]:
        if os.path.realpath(f"/proc/self/fd/{number}").startswith(str(left)):
            os.close(number)  # as when its process is killed
    folder.make(tmp_path)
    assert left.exists() is not locks
