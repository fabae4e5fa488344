"""Files that commands write: where the disk is full the earlier one stays, and nothing else is left."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from litecl.cli import main
from litecl.interpreter import whole_files
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.whole_files import TEMPORARY, whole_file
from litecl.perf.feeds import save_outputs
from support.command import small_model
from support.full_disk import full_disk

EARLIER = b"an earlier file of the user's"
COMMANDS = {
    "small.tflite": "quantize {path} --recipe dynamic_wi8_afp32 -o {file}",
    "report.json": "quantize {path} --quantize int8 --calibrate {x} -o {folder}/small.tflite --quantize-report {file}",
    "trace.json": "trace {path} --runs 1 --threads 1 -o {file}",
    "profile.json": "run {path} --threads 1 --profile-to {file}",
    "0_SOFTMAX_5.npy": "run {path} --cpu -o {folder}",
    "diff.html": "diff {path} {path} -o {file}",
    "bench.csv": "bench {path} --cpu --seconds 0.02 -o {file}",
    "node.json": "inspect {path} --node-data {file}",
    "board.md": "coverage --output {file}",
    "report.html": "report {path} --no-start --threads 1 -o {file}",
    "bisect.html": "bisect {path} --page {file}",
}


@pytest.mark.skipif(os.name != "posix", reason="limits of processes")
@pytest.mark.parametrize("name", COMMANDS)
def test_an_earlier_file_stays(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    path, x = small_model(tmp_path / "in"), tmp_path / "in" / "x.npy"
    np.save(x, np.random.default_rng(1).standard_normal((4, 4)).astype(np.float32))
    folder = tmp_path / "out"
    folder.mkdir()
    file = folder / name
    file.write_bytes(EARLIER)
    words = COMMANDS[name].format(path=path, x=x, folder=folder, file=file).split()
    real = whole_files._temporary

    def into_a_full_disk(path: Path) -> Path:
        if path.is_relative_to(folder):  # none of the cache
            resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
        return real(path)

    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(whole_files, "_temporary", into_a_full_disk)
            assert main(words) != 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert re.search(rf"OSError: {folder}/\S+: File too large", capsys.readouterr().err)
    assert file.read_bytes() == EARLIER
    assert not [left for left in folder.iterdir() if TEMPORARY.fullmatch(left.name)]
    assert main(words) == 0
    assert file.read_bytes() != EARLIER


@pytest.mark.skipif(os.name != "posix", reason="limits of processes")
@pytest.mark.parametrize("limit", [20, 10_000, 399_000])  # within numpy's header, its data, and its last buffer
@pytest.mark.parametrize("private", [False, True])
def test_errors_of_writing_name_the_file(tmp_path: Path, limit: int, private: bool) -> None:
    """Whether Python or numpy writes it."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for write in (lambda file: file.write(bytes(400_000)), lambda file: np.save(file, np.zeros(50_000))):
        try:
            with (
                pytest.raises(OSError, match="File too large") as caught,
                whole_file(tmp_path / "out", private=private) as file,
            ):
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
                write(file)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert caught.value.filename == str(tmp_path / "out") and caught.value.errno
        assert not [*tmp_path.iterdir()]


def test_outputs_that_cannot_be_written_leave_no_folder(tmp_path: Path) -> None:
    values = {"a": np.zeros(3, np.float32), "b": np.array([b"text"], object)}
    with pytest.raises(LiteclError, match="'b' holds strings"):
        save_outputs([{"name": name} for name in values], [*values.values()], tmp_path / "new" / "outputs")
    assert not [*tmp_path.iterdir()]


@pytest.mark.skipif(os.name != "posix", reason="/dev/stdout")
@pytest.mark.parametrize("stdout", ["-", "/dev/stdout"])
def test_a_file_for_stdout_goes_there_alone(stdout: str, tmp_path: Path) -> None:
    """The previous content of stdout's file stays, and tables go to stderr."""
    path, file = small_model(tmp_path), tmp_path / "all.json"
    file.write_bytes(EARLIER)
    with file.open("ab") as out:
        words = "inspect", str(path), "--node-data", stdout
        ran = subprocess.run([sys.executable, "-m", "litecl", *words], stdout=out, stderr=subprocess.PIPE, check=True)
    assert b"SOFTMAX" in ran.stderr
    assert file.read_bytes().startswith(EARLIER)
    assert isinstance(json.loads(file.read_bytes().removeprefix(EARLIER)), dict)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_second_interrupt_has_no_traceback() -> None:
    code = """
import signal
from litecl import cli
cli.main = lambda: 130
assert cli.process() == 130
signal.raise_signal(signal.SIGINT)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (ran.returncode, ran.stderr) == (-signal.SIGINT, b"")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_signal_while_python_ends_has_no_traceback() -> None:
    code = """
import atexit, signal
from litecl import cli
cli.main = lambda: 0
atexit.register(signal.raise_signal, signal.SIGTERM)
assert cli.process() == 0
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (ran.returncode, ran.stderr) == (-signal.SIGTERM, b"")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_whose_error_python_drops_is_sent_again(number: int) -> None:
    """In the callback of a weak reference, as imports have; the command waits for a lock."""
    script = f"""
import os, sys, threading, weakref
from litecl import cli

def main():
    held = threading.Lock()
    held.acquire()
    lost = weakref.ref(threading.Event(), lambda _: os.kill(os.getpid(), {number}))
    try:
        held.acquire(timeout=100)
    except KeyboardInterrupt:
        return 130
    finally:
        print("cleaned", flush=True)

cli.main = main
code = cli.process()
os.kill(os.getpid(), {number})
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (-number, b"cleaned\n", b"")


def test_outputs_replace_earlier_ones_together(tmp_path: Path) -> None:
    outputs, earlier = [{"name": "a"}, {"name": "b"}], np.zeros(3, np.float32)
    paths = save_outputs(outputs, [earlier, earlier], tmp_path)
    with full_disk(most_bytes=300), pytest.raises(OSError, match=r"1_b\.npy"):
        save_outputs(outputs, [earlier + 1, np.ones(1000, np.float32)], tmp_path)
    for path in paths:
        np.testing.assert_array_equal(np.load(path), earlier)
    assert sorted(tmp_path.iterdir()) == paths
