"""The native back end's cache, damaged: its entries are compiled again, and no process dies."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from litecl.delegate import devices, disk
from litecl.delegate.native import compiler, probe
from litecl.delegate.tuning import Tuning, load
from support.fault_models import assert_right, prepared, small

pytestmark = [
    pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang"),
    pytest.mark.kept_plans,
]

SEAL_BYTES = 41  # a line that names the format, and a SHA-256


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
    """Return a folder with everything that a model needs."""
    folder = tmp_path_factory.mktemp("kept") / disk.OWN
    assert _made(folder) == 0
    return folder


@pytest.fixture
def filled(kept: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(kept, tmp_path / disk.OWN)


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


def test_a_byte_that_is_changed_anywhere_is_noticed(filled: Path) -> None:
    """In the seal at every byte, in the content in each of 64 parts."""
    for path in (*filled.glob("*.bin"), *filled.glob("compiler-*.json")):
        content = path.read_bytes()
        assert disk.read_sealed(path) is not None
        for place in (*range(SEAL_BYTES), *np.linspace(SEAL_BYTES, len(content) - 1, 64, dtype=int)):
            path.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
            assert disk.read_sealed(path) is None, (path.name, place)
        path.write_bytes(content)
    assert _made(filled) > 0


def test_files_under_each_others_names(filled: Path) -> None:
    """None of them is used, and the result is right."""
    paths = sorted(filled.glob("*.bin"))
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, [*contents[1:], contents[0]], strict=True):
        path.write_bytes(content)
    assert _made(filled) == 0
    assert [path.read_bytes() for path in paths] == contents


def test_objects_under_each_others_names(filled: Path) -> None:
    first, second, *_ = sorted(filled.glob("*.bin"))
    shutil.move(first, filled / "other")
    shutil.move(second, first)
    shutil.move(filled / "other", second)
    for path in filled.glob("library-*.bin"):
        path.unlink(missing_ok=True)
    _made(filled)


def test_two_writers(tmp_path: Path) -> None:
    """A reader finds one writer's whole file."""
    path, contents = tmp_path / "both.bin", [bytes([i]) * (1 << 18) for i in (1, 2)]
    disk.write_sealed(path, contents[0])
    with ThreadPoolExecutor(2) as pool:
        writing = [pool.submit(lambda c=c: [disk.write_sealed(path, c) for _ in range(40)]) for c in contents]
        found = [disk.read_sealed(path) for _ in range(60)]
        for done in writing:
            done.result()
    assert {*found} <= {*contents}
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names a level of x86 processors")
def test_the_cache_of_another_machine(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a home folder that two share: nothing is taken from the other, its facts under this one's name neither."""
    tmp_path = tmp_path / disk.OWN
    with monkeypatch.context() as patch:
        patch.setattr(probe, "_first_processor", lambda: "another one")
        patch.setattr(probe, "_tried", lambda found: replace(found, target=("-march=x86-64-v2",), known=None))
        compiler.found.cache_clear()
        assert _made(tmp_path) == 0
        others = {path.name for path in tmp_path.iterdir()}
    compiler.found.cache_clear()
    (facts,) = tmp_path.glob("compiler-*.json")
    (name,) = (path.name for path in kept.glob("compiler-*.json"))
    shutil.copy(facts, tmp_path / name)
    assert _made(tmp_path) == 0
    assert disk.read_sealed(tmp_path / name) == disk.read_sealed(kept / name) != disk.read_sealed(facts)
    assert {path.name for path in tmp_path.iterdir()} > others
    assert not {path.name for path in kept.glob("*.bin")} & others
    assert _made(tmp_path) > 0


@pytest.mark.parametrize(
    "facts", [b"{}", b"[]", b"null", b"no JSON", b'{"source": "", "target": [], "facts": {"new": 1}}']
)
def test_facts_of_another_version(facts: bytes, filled: Path) -> None:
    """Whose seal is right."""
    (path,) = filled.glob("compiler-*.json")
    disk.write_sealed(path, facts)
    compiler.found.cache_clear()
    assert _made(filled) > 0
    assert disk.read_sealed(path) != facts


_LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
from support.fault_models import assert_right, prepared, small
interpreter = prepared(small(), device="native", cache_dir=sys.argv[2])
assert_right(interpreter)
print(interpreter.delegation_report().claimed)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits of processes")
@pytest.mark.parametrize(("most", "claimed"), [(0, 0), (3000, 0), (1 << 20, 2)])
def test_files_that_take_no_more(most: int, claimed: int, tmp_path: Path) -> None:
    """As on a full disk: the compiler's, then the cache's. The CPU runs the model, and nothing is left half."""
    (tmp_path / "empty").mkdir()
    command = [sys.executable, "-c", _LIMITED, str(most), str(tmp_path / "empty")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == claimed
    assert ("its device failed" in done.stderr) == (claimed == 0)
    assert all(disk.read_sealed(path) is not None for path in (tmp_path / "empty" / disk.OWN).glob("*.bin"))


@pytest.mark.parametrize("content", [b"9" * 5000, b"-1", b"1e9", b"\xff\xfe", b"", b"0", b"{}"], ids=range(7))
def test_a_limit_that_is_none(content: bytes, tmp_path: Path) -> None:
    """More digits than Python turns into a number, and other things that no limit is."""
    (tmp_path / "limit.json").write_bytes(content)
    assert disk.limit(tmp_path) == (0 if content == b"0" else 1 << 30)


def test_tuning_that_is_no_tuning(filled: Path) -> None:
    assert _made(filled) > 0
    (device,) = devices._DEVICES.values()
    path = filled / f"{disk.key('tuning', device.identity)}.json"
    for content in (b"[" * 100_000, b'{"version": 4, "tuning": []}', bytes(1 << 20), b"null", b"\x80"):
        path.write_bytes(content)
        assert load(filled, device.identity) == Tuning()
        assert _made(filled) > 0
