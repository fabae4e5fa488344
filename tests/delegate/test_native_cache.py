"""The cache of the processor's own back end, damaged: what it holds is compiled again, and no process ends."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from litecl.delegate import devices, disk
from litecl.delegate.native import compiler
from litecl.delegate.tuning import Tuning, load
from tools.fault_models import assert_right, prepared, small

pytestmark = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")


def _made(folder: Path) -> int:
    """Run a model in a device that is opened anew; return how much came from the cache."""
    devices._DEVICES.clear()
    interpreter = prepared(small(), device="native", strict=True, cache_dir=folder)
    assert_right(interpreter)
    return interpreter.delegation_report().cache_hits


def _replaced(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(change(path.read_bytes()))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").touch()


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def _grown(path: Path) -> None:
    os.truncate(path, 1 << 24)  # mostly a hole


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what a model needs."""
    folder = tmp_path_factory.mktemp("kept")
    assert _made(folder) == 0
    return folder


@pytest.fixture
def filled(kept: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(kept, tmp_path / "filled")


_DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": _replaced(lambda content: b""),
    "half": _replaced(lambda content: content[: len(content) // 2]),
    "one bit": _replaced(lambda content: content[:-9] + bytes([content[-9] ^ 4]) + content[-8:]),
    "huge": _grown,
    "a folder": _folder,
    "a loop of links": _loop,
}


@pytest.mark.parametrize("damage", _DAMAGES)
def test_a_damaged_cache_is_filled_again(damage: str, filled: Path) -> None:
    found = [*filled.glob("*.bin")]
    for path in found:
        _DAMAGES[damage](path)
    assert _made(filled) == 0
    if damage != "a folder":
        assert all(disk.read_sealed(path) is not None for path in found)
        assert _made(filled) > 0


def test_objects_under_each_others_names(filled: Path) -> None:
    first, second, *_ = sorted(filled.glob("*.bin"))
    shutil.move(first, filled / "other")
    shutil.move(second, first)
    shutil.move(filled / "other", second)
    for path in filled.glob("library-*.bin"):
        path.unlink(missing_ok=True)
    _made(filled)


@pytest.mark.parametrize("content", [b"9" * 5000, b"-1", b"1e9", b"\xff\xfe", b"", b"0", b"{}"], ids=range(7))
def test_a_limit_that_is_none(content: bytes, tmp_path: Path) -> None:
    """More digits than Python turns into a number, and other things that no limit is."""
    (tmp_path / "limit.json").write_bytes(content)
    assert disk.limit(tmp_path) == (0 if content == b"0" else 1 << 30)


def test_tuning_that_is_no_tuning(filled: Path) -> None:
    assert _made(filled) > 0
    (device,) = devices._DEVICES.values()
    path = filled / f"{disk.key('tuning', device.identity)}.json"
    for content in (b"[" * 100_000, b'{"version": 3, "tuning": []}', bytes(1 << 20), b"null", b"\x80"):
        path.write_bytes(content)
        assert load(filled, device.identity) == Tuning()
        assert _made(filled) > 0
