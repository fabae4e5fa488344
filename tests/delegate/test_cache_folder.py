"""The cache folder: litecl removes nothing that it did not write, and reads nothing that others could have written."""

import errno
import json
import logging
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from litecl.cli import main
from litecl.delegate import devices, disk, progress
from litecl.delegate.native import compiler
from litecl.delegate.tuning import Measurement, Tuning, file_of, measurement, save
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.file.writer import write_file
from support.fault_models import assert_right, prepared, small
from support.full_disk import full_disk

pytestmark = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")
posix = pytest.mark.skipif(os.name != "posix", reason="owners, modes and pipes of POSIX")
NAME = f"{disk.key('gemm', ('one',))}.bin"  # of a program


def _use(cache_dir: object) -> int:
    """Run a model on a device that is opened anew; return how much came from the cache."""
    devices._DEVICES.clear()
    interpreter = prepared(small(), device="native", strict=True, cache_dir=cache_dir)
    assert_right(interpreter)
    return interpreter.delegation_report().cache_hits


@pytest.fixture(autouse=True)
def _everything_is_tidied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_TIDY_EVERY_S", -1.0)
    monkeypatch.setattr(progress, "_said", set())


@pytest.fixture
def users(tmp_path: Path) -> Iterator[Path]:
    """A folder with files of a user's, which are there at the end, whatever they are named."""
    (tmp_path / "photos").mkdir()
    names = ("thesis.doc", "holiday.bin", "limit.json", "tidied.json", "photos/one.jpg", NAME, "litecl-notes.tmp")
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
        os.utime(tmp_path / name, (1e9, 1e9))
    yield tmp_path
    assert {name: (tmp_path / name).read_bytes() for name in names} == {name: name.encode() for name in names}


def test_users_files_stay_whatever_the_limit(users: Path) -> None:
    disk.set_limit(disk.own(users), 0)
    assert _use(users) == 0
    assert not disk.files(disk.own(users))


@pytest.mark.parametrize("options", [("--clean",), ("--limit", "0")])
def test_users_files_stay_when_the_cache_is_emptied(options: tuple[str, ...], users: Path) -> None:
    assert main(["cache", "--cache", str(users), *options]) == 0
    disk.set_limit(disk.own(users), 1 << 30)
    assert _use(users) == 0
    assert _use(users) > 0
    assert main(["cache", "--cache", str(users), *options]) == 0
    assert not disk.files(disk.own(users))


def test_compile_leaves_users_files(users: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_file(small(), users / "model.tflite")
    arguments = ["compile", str(users / "model.tflite"), "--cache", str(users), "--device", "native", "--json"]
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["folder"] == str(disk.own(users))
    assert {file["file"] for file in told["models"][0]["built"]} == {path.name for path in disk.files(disk.own(users))}
    assert _use(users) > 0
    assert _use(disk.own(users)) > 0  # as it is listed


def test_other_files_in_the_cache_itself_stay_and_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _use(tmp_path)
    own = disk.own(tmp_path)
    (own / "mine").mkdir()
    (own / "mine" / NAME).write_bytes(b"mine")
    (own / "notes.bin").write_bytes(b"notes")
    (tmp_path / "elsewhere").write_bytes(b"mine too")
    if os.name == "posix":
        (own / NAME).symlink_to(tmp_path / "elsewhere")
    assert main(["cache", "--cache", str(tmp_path), "--clean"]) == 0
    assert "left alone in this folder: mine, notes.bin" in capsys.readouterr().out
    assert main(["cache", "--cache", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["folders"][0]["others"] == ["mine", "notes.bin"]
    assert (own / "mine" / NAME).read_bytes() == b"mine"
    assert (own / "notes.bin").read_bytes() == b"notes"
    assert (tmp_path / "elsewhere").read_bytes() == b"mine too"
    assert not disk.files(own)


def test_what_a_killed_process_was_writing_is_removed_later(tmp_path: Path) -> None:
    own = disk.own(tmp_path)
    disk.set_limit(own, 0)
    old, new = own / f"litecl-{'0' * 16}.tmp", own / f"litecl-{'1' * 16}.tmp"
    for path in (old, new):
        path.touch()
    os.utime(old, (1e9, 1e9))
    assert main(["cache", "--cache", str(tmp_path), "--clean"]) == 0
    assert not old.exists()
    assert new.exists()


def _link(own: Path, elsewhere: Path) -> None:
    elsewhere.mkdir()
    own.symlink_to(elsewhere)


def _file(own: Path, elsewhere: Path) -> None:
    own.write_bytes(b"a user's")


def _others(own: Path, elsewhere: Path) -> None:
    own.mkdir(0o700)
    (own / NAME).write_bytes(b"a user's")


def _writable(own: Path, elsewhere: Path) -> None:
    own.mkdir()
    own.chmod(0o777)


def _foreign(own: Path, elsewhere: Path) -> None:
    own.mkdir(0o700)
    os.chown(own, 12345, 12345)


_REFUSED: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "a link": (_link, "expected a folder of litecl's own, got a link or a file"),
    "a file": (_file, "expected a folder of litecl's own, got a link or a file"),
    "a user's folder": (_others, "has files, but no CACHEDIR.TAG"),
    "writable by others": (_writable, "others may write to it.* mode 0777"),
    "of another user": (_foreign, "belongs to another user.*owner 12345"),
}


@posix
@pytest.mark.parametrize("case", _REFUSED)
def test_a_folder_that_is_not_trusted_is_not_used(
    case: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """One warning, no cache, and an error of commands that are about it."""
    make, said = _REFUSED[case]
    if case == "of another user" and os.geteuid():
        pytest.skip("needs the right to give files away")
    own = tmp_path / "cache" / disk.OWN
    own.parent.mkdir()
    make(own, tmp_path / "elsewhere")
    before = sorted(tmp_path.rglob("*"))
    with caplog.at_level(logging.WARNING, "litecl"):
        assert [_use(own.parent), _use(own.parent)] == [0, 0]
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning.startswith("no compiled programs are cached, so every process compiles anew: ")
    assert sorted(tmp_path.rglob("*")) == before
    for options in ((), ("--clean",), ("--limit", "1M")):
        assert main(["cache", "--cache", str(own.parent), *options]) == 1
        assert said.partition(".*")[0] in " ".join(capsys.readouterr().err.split())
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(DelegateError, match=said):
        disk.own(own.parent)


@posix
@pytest.mark.parametrize("umask", [0, 0o077, 0o777])
def test_modes_do_not_depend_on_the_umask(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        _use(tmp_path / "new" / "folder")
        disk.set_limit(disk.own(tmp_path / "new" / "folder"), 1 << 20)
        save(disk.own(tmp_path / "new" / "folder"), ("a device",), "a device", Measurement(Tuning()))
    finally:
        os.umask(before)
    made = [*(tmp_path).rglob("*")]
    assert len(made) > 5
    for path in made:
        assert stat.S_IMODE(path.lstat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@posix
def test_a_program_that_others_can_write_is_not_run(tmp_path: Path) -> None:
    _use(tmp_path)
    for path in disk.files(disk.own(tmp_path)):
        path.chmod(0o666)
    assert _use(tmp_path) == 0
    assert _use(tmp_path) > 0
    assert {stat.S_IMODE(path.stat().st_mode) for path in disk.files(disk.own(tmp_path))} == {0o600}


@posix
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs the right to give files away")
def test_a_program_of_another_user_is_not_run(tmp_path: Path) -> None:
    _use(tmp_path)
    for path in disk.files(disk.own(tmp_path)):
        os.chown(path, 12345, 12345)
    assert _use(tmp_path) == 0


_CHILD = """
import numpy.testing  # before the user changes, who may not read it
from support.fault_models import assert_right, prepared, small
import sys, os
os.setgid(12345), os.setuid(12345)
interpreter = prepared(small(), device="native", strict=True, cache_dir=sys.argv[1])
assert_right(interpreter)
print(interpreter.delegation_report().cache_hits)
"""


@posix
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs the right to become another user")
@pytest.mark.parametrize("shared", [True, False])
def test_what_the_administrator_made_can_be_shared(shared: bool) -> None:
    """As an image's: readable after ``chmod -R a+rX``; without it a warning names that command."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        _use(folder)
        if shared:
            subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        path = os.pathsep.join(sys.path)
        command = [sys.executable, "-c", _CHILD, folder]
        ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, cwd="/")
    assert ran.returncode == 0, ran.stderr
    assert (int(ran.stdout) > 0) == shared
    assert ("chmod -R a+rX" in ran.stderr) != shared


@posix
@pytest.mark.parametrize("link", [False, True])
def test_a_pipe_or_a_link_among_the_files_is_not_read(link: bool, tmp_path: Path) -> None:
    """No thread waits for a writer, and the entry is replaced; a link's target stays."""
    _use(tmp_path)
    own = disk.own(tmp_path)
    found = [path for path in own.iterdir() if path.suffix in (".bin", ".json")]
    contents = {path: path.read_bytes() for path in found}
    for path in found:
        path.unlink()
        if link:
            (tmp_path / f"{path.name}.real").write_bytes(contents[path])
            path.symlink_to(tmp_path / f"{path.name}.real")
        else:
            os.mkfifo(path)
    compiler.found.cache_clear()
    done = threading.Event()
    hits = list[int]()
    working = threading.Thread(target=lambda: (hits.append(_use(tmp_path)), done.set()), daemon=True)
    working.start()
    assert done.wait(60)
    assert hits == [0]
    programs = [path for path in found if path.suffix == ".bin"]
    assert all(stat.S_ISREG(path.lstat().st_mode) for path in programs)
    if link:
        assert {path: (tmp_path / f"{path.name}.real").read_bytes() for path in found} == contents


@posix
def test_a_pipe_instead_of_measurements_is_none(tmp_path: Path) -> None:
    os.mkfifo(file_of(tmp_path, ("a device",)))
    assert measurement(tmp_path, ("a device",)) is None
    os.mkfifo(tmp_path / "limit.json")
    assert disk.limit(tmp_path) == 1 << 30


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.write_sealed(tmp_path / NAME, bytes(100))
    assert disk.read_sealed(tmp_path / NAME) == bytes(100)
    monkeypatch.setattr(disk, "_MOST_FILE_BYTES", 99)
    assert disk.read_sealed(tmp_path / NAME) is None


@pytest.mark.parametrize("chunk", range(4))
def test_damage_in_any_chunk_of_a_large_file(chunk: int, tmp_path: Path) -> None:
    """Which threads digest. The last chunk is a short one."""
    size = disk._CHUNK_BYTES
    content = np.random.default_rng(3).bytes(3 * size + 5)
    disk.write_sealed(tmp_path / NAME, content)
    assert disk.read_sealed(tmp_path / NAME) == content
    with (tmp_path / NAME).open("r+b") as file:
        file.seek(-len(content) + chunk * size + 4, os.SEEK_END)
        file.write(bytes([content[chunk * size + 4] ^ 1]))
    assert disk.read_sealed(tmp_path / NAME) is None


def test_a_digest_is_the_same_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """And another one if chunks change places, or large arrays do."""
    size = disk._CHUNK_BYTES
    content = np.random.default_rng(4).integers(0, 256, 9 * size, np.uint8)
    parts = [content[: 4 * size], content[4 * size : 4 * size + 7], content[5 * size :]]
    expected = disk.digest(b"head", parts)
    assert disk.digest(b"head", [parts[2], parts[1], parts[0]]) != expected
    assert disk.digest(b"head", [np.roll(parts[0], size), *parts[1:]]) != expected

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert disk.digest(b"head", parts) == expected


@posix
def test_a_folder_that_becomes_a_link_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "users").mkdir()
    (tmp_path / "users" / NAME).write_bytes(b"a user's")
    (tmp_path / "link").symlink_to(tmp_path / "users")
    assert disk.trim(tmp_path / "link", 0) == 0
    assert (tmp_path / "users" / NAME).exists()


def test_a_limit_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """A disk that is full leaves the earlier limit."""
    own = disk.own(tmp_path)
    disk.set_limit(own, 12345)
    with full_disk(most_bytes=2), pytest.raises(OSError, match="large"):
        disk.set_limit(own, 99_999)
    assert disk.limit(own) == 12345


def test_programs_that_cannot_be_removed_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*path: object, **options: object) -> None:
        raise PermissionError(errno.EROFS, "read-only")

    _use(tmp_path)
    count = len(disk.files(disk.own(tmp_path)))
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        assert main(["cache", "--cache", str(tmp_path), "--clean"]) == 1
    assert f"{count} files could not be removed" in capsys.readouterr().out
