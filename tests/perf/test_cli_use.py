"""The command ``litecl``: inputs and signatures, programs ahead of time, completion, quick help, narrow terminals."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules

import numpy as np
import pyopencl
import pytest

from litecl.cli import commands, parser
from litecl.delegate import devices
from litecl.delegate.native import compiler
from support.build import randn
from support.command import RNG, data, failure, small_model, text
from support.pocl_processor import as_itself


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return small_model(tmp_path)


def test_run_of_a_signature_by_its_names(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "feeds.npz", x=randn(RNG, 2, 4))
    found = data(capsys, "run", path, "--cpu", "--signature", "serving_default", "--input", tmp_path / "feeds.npz")
    assert [(value["name"], value["shape"]) for value in found["outputs"]] == [("y", [2, 4])]
    assert "signature 'other' not found" in failure(capsys, "run", path, "--signature", "other")
    assert data(capsys, "run", path, "--cpu", "--shape", "main_in0=5,4")["outputs"][0]["shape"] == [5, 4]
    assert "--shape: there is no input 'z'" in failure(capsys, "run", path, "--shape", "z=1,4")


def test_compile_and_cache(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "programs"
    flags = "--device", "basic", "--cache", folder
    compiled = data(capsys, "compile", path, *flags, "--require-device")
    assert compiled["size_bytes"] > 0
    built = [file for row in compiled["models"] for file in row["built"]]
    assert sum(file["size_bytes"] for file in built) == compiled["size_bytes"]
    assert all(file.stat().st_mode & 0o044 == 0o044 for file in folder.iterdir())  # another user reads it
    monkeypatch.setattr(devices, "_DEVICES", {})  # as in another process
    assert data(capsys, "run", path, *flags)["delegation"]["cache_hits"] >= 1
    (row,) = data(capsys, "cache", "--cache", folder)["folders"]
    assert (row["size_bytes"], row["limit_bytes"]) == (compiled["size_bytes"], 1 << 30)
    assert data(capsys, "cache", "--cache", folder, "--limit", "1K")["removed_bytes"] == compiled["size_bytes"]
    (row,) = data(capsys, "cache", "--cache", folder)["folders"]
    assert (row["size_bytes"], row["limit_bytes"]) == (0, 1024)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data(capsys, "compile", path, "--device", "basic")["folder"] == str(tmp_path / "litecl")
    assert "removed 0 B" in text(capsys, "cache", "--cache", folder, "--clean")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_completion_has_every_command_and_its_flags(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = text(capsys, "completion", shell)
    assert all(info.name in script for info in iter_modules(commands.__path__))
    assert "require-device" in script
    if shell == "bash" and shutil.which("bash"):
        words = "cache --cl", "bench m.tflite --against l", f"run {__file__[:-1]}"
        asked = [
            f"COMP_WORDS=(litecl {word}) COMP_CWORD={len(word.split())}; _shtab_litecl; echo ${{COMPREPLY[@]}}"
            for word in words
        ]
        done = subprocess.run(["bash", "-c", "\n".join([script, *asked])], capture_output=True, text=True)
        assert done.stdout.splitlines() == ["--clean", "litert litert-reference", __file__]


@as_itself
def test_version_and_help_import_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    """What takes a second to import, numpy and rich above all, is imported by the commands that need it."""
    script = "import sys\nfrom litecl.cli import main\ntry: main([sys.argv[1]])\nexcept SystemExit: pass\n"
    script += "print(sorted({'numpy', 'rich', 'litecl.interpreter'} & {*sys.modules}))"
    for flag in ("--version", "--help"):
        done = subprocess.run([sys.executable, "-c", script, flag], capture_output=True, text=True)
        assert done.stdout.endswith("[]\n"), done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")
@pytest.mark.parametrize(
    ("wrapped", "asked", "told"),
    [
        ("{} | head -1", ["coverage", "--json"], ""),  # more than a pipe holds
        ("{} | true", ["completion", "bash"], ""),
        ("{} > /dev/full", ["completion", "bash"], "OSError: [Errno 28] No space left on device"),
        ("{} >&-", ["completion", "bash"], ""),
    ],
)
def test_a_stdout_that_takes_no_more_ends_without_a_traceback(wrapped: str, asked: list[str], told: str) -> None:
    script = "from litecl.cli import main; raise SystemExit(main())"
    command = shlex.join([sys.executable, "-c", script, *asked])
    done = subprocess.run(["bash", "-c", wrapped.format(command)], capture_output=True, text=True)
    assert done.stderr.strip() == told


def test_an_interrupt_while_a_command_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(parser, "import_module", interrupted)
    assert parser.main(["run", "model.tflite"]) == 130


def test_compile_without_a_device_warns(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_opencl() -> None:
        raise pyopencl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setattr(pyopencl, "get_platforms", no_opencl)
    monkeypatch.setattr(compiler, "found", lambda directory=None: None)
    assert f"WARNING: {path}: no region runs on a device: no OpenCL platform" in text(capsys, "compile", path)


def test_tables_hold_at_80_columns(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command in (["devices"], ["inspect", path, "--nodes", "--delegate"], ["run", path], ["bench", path, "--cpu"]):
        shown = text(capsys, *command).splitlines()
        assert max(len(line) for line in shown if "─" in line or "━" in line) <= 80
        assert any("default for" in line or "min ms" in line or "reason" in line for line in shown)
