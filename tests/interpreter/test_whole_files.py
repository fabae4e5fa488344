"""Files that are written as a whole: over earlier ones, through links, into pipes, and where the disk is full."""

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from litecl.interpreter import tensor_files
from litecl.interpreter.regular_files import is_trusted, open_regular
from litecl.interpreter.whole_files import TEMPORARY, put, put_text, whole_file
from support.full_disk import full_disk

posix = pytest.mark.skipif(os.name != "posix", reason="links, modes and pipes of POSIX")


def test_what_raises_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    put(path, b"one ", b"two")
    with pytest.raises(ZeroDivisionError), whole_file(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    with full_disk(most_bytes=3), pytest.raises(OSError, match="large"):
        put_text(path, "longer than that")
    assert path.read_bytes() == b"one two"
    assert [*tmp_path.iterdir()] == [path]
    put_text(path, "drei ü\n")
    assert path.read_bytes() == "drei ü\n".encode()


def test_a_device_tensors_file_is_whole(tmp_path: Path) -> None:
    path, values = tmp_path / "tensors.npz", np.arange(1000, dtype=np.float32)
    tensor_files.write(path, {"x": values})
    with full_disk(most_bytes=300), pytest.raises(OSError, match="large"):
        tensor_files.write(path, {"x": values + 1})
    np.testing.assert_array_equal(tensor_files.read(path)["x"], values)
    assert [*tmp_path.iterdir()] == [path]


@posix
def test_a_link_stays_one_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link, dangling = tmp_path / "folder" / "target", tmp_path / "link", tmp_path / "dangling"
    target.write_bytes(b"before")
    link.symlink_to("folder/target")
    dangling.symlink_to("folder/new")
    put(link, b"after")
    put(dangling, b"new")
    assert link.is_symlink() and target.read_bytes() == b"after"
    assert dangling.is_symlink() and (tmp_path / "folder" / "new").read_bytes() == b"new"
    put(link, b"own", private=True)
    assert not link.is_symlink() and target.read_bytes() == b"after"


@posix
@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_modes(umask: int, tmp_path: Path) -> None:
    """A new file has the usual mode, an earlier one keeps its own, and a private one is this user's."""
    before = os.umask(umask)
    try:
        put(tmp_path / "new", b"")
        (tmp_path / "script").touch(mode=0o755)
        (tmp_path / "script").chmod(0o751)
        put(tmp_path / "script", b"x")
        put(tmp_path / "own", b"", private=True)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"new": 0o666 & ~umask, "script": 0o751, "own": 0o600}


@posix
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs the right to give files away")
def test_the_owner_stays(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.chown(tmp_path / "file", 12345, 12346)
    put(tmp_path / "file", b"x")
    status = (tmp_path / "file").stat()
    assert (status.st_uid, status.st_gid, status.st_size) == (12345, 12346, 1)


@posix
def test_a_pipe_and_a_device_are_written_and_stay(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read = list[bytes]()
    reading = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reading.start()
    put(tmp_path / "pipe", b"through")
    reading.join(10)
    assert read == [b"through"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    put("/dev/null", b"gone")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(OSError, match=r"'/dev/full'$"):
        put("/dev/full", b"more")
    with pytest.raises(OSError, match=r"cannot be sought.*'/dev/null'$"), whole_file(Path("/dev/null")):
        raise OSError("it cannot be sought")  # as numpy says: without a number
    code = "from litecl.interpreter.whole_files import put; put('/dev/stdout', b'told')"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"told"


@posix
def test_a_folder_that_cannot_be_written_is_an_error_and_the_file_stays(tmp_path: Path) -> None:
    code = """
import os, sys
from litecl.interpreter.whole_files import put
os.setuid(12345)
try:
    put(sys.argv[1], b"new")
except OSError as error:
    print(error.errno, error.filename)
"""
    if os.geteuid() != 0:
        pytest.skip("needs the right to become another user")
    (tmp_path / "file").write_bytes(b"old")
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(0o755)
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path / "file")], capture_output=True, text=True)
    assert ran.stdout.split() == [str(errno.EACCES), str(tmp_path / "file")], ran.stderr
    assert (tmp_path / "file").read_bytes() == b"old"


def test_the_name_of_what_a_killed_process_leaves(tmp_path: Path) -> None:
    with whole_file(tmp_path / "file"):
        (left,) = tmp_path.iterdir()
        assert TEMPORARY.fullmatch(left.name)


@posix
def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    for name in ("file", "link"):
        with open_regular(tmp_path / name) as file:
            assert file.read() == b"content"
    cases = {"pipe": errno.EINVAL, "": errno.EISDIR, "none": errno.ENOENT}
    for name, number in cases.items():
        with pytest.raises(OSError) as caught:
            open_regular(tmp_path / name)
        assert caught.value.errno == number
    with pytest.raises(OSError, match="symbolic links"):
        open_regular(tmp_path / "link", links=False)
    assert not {number for number in os.listdir("/proc/self/fd") if _leads_to(number, tmp_path)}  # noqa: PTH208


def _leads_to(number: str, folder: Path) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{number}").startswith(str(folder))  # noqa: PTH115
    except OSError:
        return False


@posix
def test_whom_files_are_trusted_to(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    for mode, trusted in ((0o600, True), (0o644, True), (0o620, False), (0o602, False), (0o777, False)):
        path.chmod(mode)
        assert is_trusted(path.stat()) is trusted
