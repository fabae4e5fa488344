"""How a pack is written and read: as a whole, or not at all."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from litecl.delegate.native import kinds, pack
from litecl.interpreter.errors import DelegateError
from support.full_disk import full_disk

_LIBRARIES = {name: np.random.default_rng(seed).bytes(1 << 21) for seed, name in enumerate(("library-a", "library-b"))}


def _write(path: Path, name: str) -> int:
    """Write a pack of one library; return its size."""
    libraries = {name: _LIBRARIES[name]}
    packed = pack.Packed(kinds.here().name, "1", (), "any", {}, (), pack.digests(libraries, libraries))
    return pack.write(path, {}, [1], [packed], libraries, "asymmetric")


def _library(path: Path) -> str:
    """The name of the one library of a pack, which is as it was written."""
    found = pack.read(path)
    (machine,) = found.machines
    (name,) = machine.libraries
    assert found.library(machine, name) == _LIBRARIES[name]
    return name


def test_two_writers(tmp_path: Path) -> None:
    """A reader finds one writer's whole file."""
    path, contents = tmp_path / "both.pack", set()
    for name in _LIBRARIES:
        _write(path, name)
        assert _library(path) == name
        contents.add(path.read_bytes())
    with ThreadPoolExecutor(2) as pool:
        writing = [pool.submit(lambda n=name: [_write(path, n) for _ in range(5)]) for name in _LIBRARIES]
        while not all(done.done() for done in writing):
            assert path.read_bytes() in contents
        assert all(done.result() for done in writing)
    assert [*tmp_path.iterdir()] == [path]


def test_a_full_disk_leaves_the_pack_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "one.pack"
    for before in (False, True):
        if before:
            _write(path, "library-a")
        with full_disk(most_bytes=1 << 20), pytest.raises(OSError, match="too large"):
            _write(path, "library-b")
        assert [*tmp_path.iterdir()] == ([path] if before else [])
    assert _library(path) == "library-a"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_is_no_pack(tmp_path: Path) -> None:
    """Nobody waits for a writer. But a pack may be written through one."""
    os.mkfifo(path := tmp_path / "pipe.pack")
    with pytest.raises(DelegateError, match="expected a regular file, got a pipe"):
        pack.read(path)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(path.read_bytes)
        assert _write(path, "library-a") == len(read.result())
