"""The container file of examples/serve builds and serves, where something can build it."""

import json
import shutil
import subprocess
import sys
import time
import urllib.request
from importlib import import_module
from pathlib import Path

import pytest

from litecl import sample
from litecl.cli.parser import helps, parser

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "examples" / "serve" / "Containerfile"


def _ran(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=900)


@pytest.fixture(scope="module")
def builder() -> str:
    """A program that builds containers here. Skips with what each says that does not."""
    reasons = []
    for name in ("podman", "docker"):
        if shutil.which(name) is None:
            reasons.append(f"no {name}")
        elif (info := _ran(name, "info")).returncode or "ERROR" in info.stdout or "Cannot connect" in info.stderr:
            reasons.append(f"{name}: {(info.stderr or info.stdout).strip().splitlines()[-1]}")
        elif (pulled := _ran(name, "pull", "--quiet", "python:3.12-slim")).returncode:
            reasons.append(f"{name} gets no python:3.12-slim: {pulled.stderr.strip().splitlines()[-1]}")
        else:
            return name
    pytest.skip("; ".join(reasons))


def test_it_builds_and_serves(builder: str, tmp_path: Path) -> None:
    sample.write(tmp_path)
    shutil.copy(FILE, tmp_path)
    assert not _ran(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(tmp_path), str(ROOT)).returncode
    (wheel,) = tmp_path.glob("litecl-*.whl")
    made = _ran(
        *(builder, "build", "-t", "litecl-test", "--build-arg", f"LITECL=./{wheel.name}"),
        *("-f", str(tmp_path / FILE.name), str(tmp_path)),
    )
    assert made.returncode == 0, made.stderr[-3000:]
    started = _ran(builder, "run", "--rm", "--detach", "-p", "127.0.0.1:18765:8000", "litecl-test")
    try:
        assert json.loads(_read("http://127.0.0.1:18765/v2/models/model"))["inputs"][0]["shape"] == [-1, 8, 8, 3]
    finally:
        _ran(builder, "stop", started.stdout.strip())


def _read(address: str) -> bytes:
    for _ in range(60):
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                read: bytes = answer.read()
                return read
        except OSError:
            time.sleep(1)
    raise AssertionError(f"{address} does not answer")


def test_its_commands_have_the_flags_that_it_gives() -> None:
    """Which needs nobody to build it."""
    text = FILE.read_text()
    served = json.loads(next(line for line in text.splitlines() if line.startswith("CMD "))[4:])
    compiled = next(line for line in text.splitlines() if line.startswith("RUN litecl"))[4:].split()
    for words in (served, compiled):
        assert words[0] == "litecl" and words[1] in helps()
        module = import_module(f"litecl.cli.commands.{words[1]}")
        parser({words[1]: module}).parse_args(words[1:])
    assert "litecl[serve]" in text.replace("${LITECL}", "litecl")
