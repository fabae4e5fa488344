"""Files that are damaged, cut off, not there or cannot be written: a right answer or a typed error, never a signal."""

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from litecl.cli import main
from litecl.delegate import devices as open_devices
from litecl.delegate import disk, progress, tuning
from litecl.delegate.backend import binaries
from litecl.delegate.naming import advice
from litecl.delegate.opencl import environment
from litecl.delegate.opencl.devices.device import devices
from litecl.delegate.opencl.probes import capabilities
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.file.writer import write_file
from litecl.interpreter.ops.binary import ADD, AddOptions
from support.build import Graph, model, randn
from support.command import small_model
from support.fault_models import RNG, assert_right, prepared, raises, small
from support.full_disk import full_disk


def _flipped(content: bytes) -> bytes:
    return content[:-9] + bytes([content[-9] ^ 4]) + content[-8:]


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda c: c[:50],
        lambda c: c[: len(c) // 2],
        _flipped,
        lambda c: RNG.bytes(len(c)),
        lambda c: c[41:],
    ],
    ids=["empty", "a header", "half", "one bit", "random", "unsealed"],
)
def test_a_damaged_binary_is_built_again(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    tmp_path = tmp_path / disk.OWN
    assert_right(prepared(small(), cache_dir=tmp_path))
    kept = {path: path.read_bytes() for path in tmp_path.glob("*.bin")}
    assert kept
    for path, content in kept.items():
        path.write_bytes(damage(content))
    for path in tmp_path.glob("*.json"):
        path.write_bytes(damage(path.read_bytes()))
    open_devices._DEVICES.clear()
    capabilities._known.clear()
    interpreter = prepared(small(), cache_dir=tmp_path)
    assert_right(interpreter)
    told = interpreter.delegation_report()
    assert (told.claimed, told.cache_hits, told.warnings) == (2, 0, ())
    assert {path: disk.read_sealed(path) is not None for path in kept} == dict.fromkeys(kept, True)


def test_a_binary_under_another_name_is_not_taken(tmp_path: Path) -> None:
    disk.write_sealed(tmp_path / "a.bin", b"for one device")
    assert disk.read_sealed(tmp_path / "a.bin") == b"for one device"
    (tmp_path / "a.bin").rename(tmp_path / "b.bin")
    assert disk.read_sealed(tmp_path / "b.bin") is None


def test_a_folder_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "open_regular", raises(PermissionError(errno.EACCES, "not yours")))
    interpreter = prepared(small(), cache_dir=tmp_path)
    assert_right(interpreter)
    assert not interpreter.delegation_report().warnings


def test_a_disk_that_is_full_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with full_disk(most_bytes=3000):
        with pytest.raises(OSError, match="large"):
            disk.write_sealed(tmp_path / "large.bin", bytes(3000))
        disk.write_sealed(tmp_path / "small.bin", bytes(300))
    assert [path.name for path in tmp_path.iterdir()] == ["small.bin"]
    monkeypatch.setattr(disk, "put", raises(OSError(errno.ENOSPC, "full")))
    assert_right(prepared(small(), cache_dir=tmp_path / "none"))
    assert not list((tmp_path / "none" / disk.OWN).iterdir())


def test_compiling_into_a_full_disk_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(binaries, "REFUSED", {})
    monkeypatch.setattr(disk, "put", raises(OSError(errno.ENOSPC, "full", "x.bin")))
    words = "compile", str(small_model(tmp_path)), "--threads", "1", "--cache", str(tmp_path / "cache")
    assert main([*words]) == 1
    assert "OSError: x.bin: full" in capsys.readouterr().err
    monkeypatch.undo()
    assert main([*words]) == 0


def test_tiles_that_cannot_be_saved(tmp_path: Path) -> None:
    with full_disk(most_bytes=10), pytest.raises(OSError, match="large"):
        tuning.save_tiles(tmp_path, ("a device",), "a device", {})
    assert not [*tmp_path.iterdir()]


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name, **_: Path(f"~/.cache/{name}"))
    assert disk.folder("auto") is None
    assert_right(prepared(small()))
    with pytest.raises(DelegateError, match="home"):
        disk.default_folder()


def test_the_least_recently_used_programs_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    a, b, c, d, e = (tmp_path / f"{disk.key(name, ())}.bin" for name in "abcde")
    for age_s, path in enumerate((a, b, c, d)):
        disk.write_sealed(path, bytes(1000))
        os.utime(path, (1e9 - age_s, 1e9 - age_s))
    (tmp_path / "tuning.json").write_text("{}")
    size = disk.size_bytes(tmp_path) // 4
    assert binaries.read(tmp_path, d.stem) is not None  # which is used now
    assert disk.trim(tmp_path, 2 * size) == 2 * size
    assert {path.name for path in tmp_path.iterdir()} == {a.name, d.name, "tuning.json"}
    assert disk.trim(tmp_path, size) == size
    assert {path.name for path in tmp_path.iterdir()} == {d.name, "tuning.json"}
    disk.set_limit(tmp_path, 0)
    for left in (0, 1):  # the second time within an hour nothing is looked at
        disk.tidy(tmp_path, disk.limit(tmp_path))
        assert len(disk.files(tmp_path)) == left
        disk.write_sealed(e, bytes(1000))
    monkeypatch.setattr(disk, "_TIDY_EVERY_S", -1.0)
    disk.tidy(tmp_path, disk.limit(tmp_path))
    assert not disk.files(tmp_path)


def test_programs_that_are_made_keep_their_folder_small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(disk, "_TIDY_EVERY_S", -1.0)
    tmp_path = tmp_path / disk.OWN
    disk.set_limit(tmp_path, 0)
    assert_right(prepared(small(), cache_dir=tmp_path, num_threads=1))
    assert not disk.files(tmp_path)
    disk.set_limit(tmp_path, 1 << 30)
    assert_right(prepared(small(), cache_dir=tmp_path, num_threads=1, profile=True))
    assert disk.files(tmp_path)


@pytest.mark.parametrize("name", ["file", "file/folder"])
def test_a_folder_that_cannot_be_written_is_told_of_once(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress, "_said", set())
    (tmp_path / "file").touch()
    for _ in range(2):
        assert_right(prepared(small(), cache_dir=tmp_path / name, num_threads=1))
    told = [record.message for record in caplog.records if "cannot cache" in record.message]
    assert len(told) == 1
    assert "set XDG_CACHE_HOME to a writable folder" in told[0]


@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder of Linux")
def test_the_cache_folder_is_that_of_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert disk.default_folder() == tmp_path / "litecl"
    monkeypatch.delenv("POCL_CACHE_DIR", raising=False)
    environment.set_environment()
    assert Path(os.environ["POCL_CACHE_DIR"]).parent == tmp_path / "pocl"


_WHERE_NOTHING_CAN_BE_WRITTEN = """for m in / /tmp /var/tmp /dev/shm /work; do
mountpoint -q $m && mount -o remount,ro,bind $m; done; exec "$@" """


_NO_COMPILER = Path(__file__).parents[1] / "support" / "no_compiler"
_NOTHING = {
    "OCL_ICD_VENDORS": "/nowhere",
    "PATH": "/nowhere",
    "PYTHONPATH": os.pathsep.join(filter(None, (str(_NO_COMPILER), os.environ.get("PYTHONPATH")))),
}


@pytest.mark.skipif(sys.platform != "linux", reason="environments of Linux")
@pytest.mark.parametrize(
    ("where", "variables", "flags", "returned", "said"),
    [
        ("HOME=/proc", {"HOME": "/proc"}, (), 0, "cannot cache compiled programs in /proc/.cache/litecl"),
        ("no OpenCL", _NOTHING, (), 0, f"no OpenCL platform.*{re.escape(advice())}"),
        (
            "required",
            _NOTHING,
            ("--require-device",),
            1,
            f"DelegateError.*{re.escape(advice())}",
        ),
        ("wrong device", {}, ("--device", "nothing"), 1, "there is no device 'nothing'; the devices are 0: "),
        ("read-only root", {}, (), 0, "No usable temporary directory.*set TMPDIR.*--tmpfs /tmp"),
        (
            "read-only root",
            {},
            ("--device", "pocl"),
            None,  # PoCL may show no device there
            "PoCL has no folder.*set POCL_CACHE_DIR or TMPDIR.*--tmpfs /tmp",
        ),
    ],
    ids=["unwritable home", "no OpenCL", "required", "wrong device", "read-only root", "read-only root for PoCL"],
)
def test_every_environment_ends_with_the_sentence_that_helps(
    where: str, variables: dict[str, str], flags: tuple[str, ...], returned: int | None, said: str, tmp_path: Path
) -> None:
    write_file(small(), tmp_path / "model.tflite")
    command = [sys.executable, "-m", "litecl", "run", str(tmp_path / "model.tflite"), "--json", *flags]
    if where == "read-only root":
        command = ["unshare", "--mount", "sh", "-c", _WHERE_NOTHING_CAN_BE_WRITTEN, "sh", *command]
        if shutil.which("unshare") is None or subprocess.run(["unshare", "--mount", "true"]).returncode:
            pytest.skip("needs the right to mount")
    kept = {key: value for key, value in os.environ.items() if key not in ("XDG_CACHE_HOME", "POCL_CACHE_DIR")}
    done = subprocess.run(command, cwd="/", env=kept | variables, capture_output=True, text=True)
    if returned is None:
        returned = int("there is no device 'pocl'; the devices are " in done.stderr)
    assert done.returncode == returned, done.stderr
    assert re.search(said, done.stderr.replace("\n", " ")), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.opencl
def test_a_disk_without_room_leaves_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    if devices()[0].platform.name != environment.POCL:
        pytest.skip("other runtimes say themselves what fails")
    opened = prepared(small(), cache_dir=None)
    monkeypatch.setattr(environment, "_has_room", lambda folder: False)
    assert_right(opened)  # not run before, so its kernels are compiled now: the run fails
    assert "free space" in opened.delegation_report().warnings[0]
    open_devices._DEVICES.clear()
    interpreter = prepared(small(), cache_dir=None)
    assert_right(interpreter)
    assert not interpreter.delegation_report().claimed
    with pytest.raises(DelegateError, match="free space"):
        prepared(small(), cache_dir=None, strict=True)


_SCRIPT = """
import resource, sys
how, cache_dir = sys.argv[1:]
if how == "limited": resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
import numpy as np
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
interpreter = Interpreter("model.tflite", delegates=[CLDelegate(num_threads=1, cache_dir=cache_dir)])
if how == "cut": open("model.tflite", "r+b").truncate(100)
interpreter.allocate_tensors()
interpreter.set_tensor(0, np.ones((2, 5), np.float32))
interpreter.invoke()
(output,) = interpreter.get_output_details()
np.testing.assert_allclose(interpreter.get_tensor(output["index"]), np.float32(np.e + 1), rtol=1e-5)
alone = Interpreter("other.tflite")
if how == "cut": open("other.tflite", "r+b").truncate(100)
alone.allocate_tensors()
alone.invoke()
print(interpreter.delegation_report().claimed)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits of processes")
@pytest.mark.parametrize(("how", "claimed"), [("no home", 2), ("limited", 2), ("cut", 2)], ids=lambda value: value)
def test_a_process_of_its_own(how: str, claimed: int, tmp_path: Path) -> None:
    """No home that can be written, a limit on the size of files, models cut off in use."""
    write_file(small(), tmp_path / "model.tflite")
    g = Graph()
    weights = randn(RNG, 20_000)
    write_file(model(g.build(g.op(ADD, [g.input((1,)), g.const(weights)], AddOptions()))), tmp_path / "other.tflite")
    kept = disk.default_folder()
    assert_right(prepared(small(), num_threads=1, cache_dir=kept))
    environment = {key: value for key, value in os.environ.items() if key not in ("XDG_CACHE_HOME", "POCL_CACHE_DIR")}
    if how == "no home":
        environment["HOME"] = "/proc/nowhere"
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, how, str(kept)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == claimed
    assert ("fell back" in done.stderr or "its device failed" in done.stderr) == (claimed == 0)
