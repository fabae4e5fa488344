"""The container file of examples/serve builds and serves, where something can build it."""

import json
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from litecl import sample
from litecl.cli.parser import helps, parser

pytestmark = pytest.mark.nightly  # builds a container

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "examples" / "serve" / "Containerfile"
_BASE = "docker.io/library/python:3.12-slim"
_PORT = 18765
_ADDRESS = f"http://127.0.0.1:{_PORT}/v2"
_FOUND = {  # the words that find an image which a builder has already
    "podman": ("image", "inspect"),
    "docker": ("image", "inspect"),
    "buildah": ("inspect", "--type", "image"),
}


def _ran(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=900)


def _last(ran: subprocess.CompletedProcess[str]) -> str:
    return (ran.stderr or ran.stdout).strip().splitlines()[-1]


@pytest.fixture(scope="module")
def builder() -> str:
    """A program that builds containers here. Skips with what each says that does not."""
    reasons = []
    for name, found in _FOUND.items():
        if shutil.which(name) is None:
            reasons.append(f"no {name}")
        elif (info := _ran(name, "info")).returncode or "ERROR" in info.stdout or "Cannot connect" in info.stderr:
            reasons.append(f"{name}: {_last(info)}")
        elif _ran(name, *found, _BASE).returncode and (pulled := _ran(name, "pull", "--quiet", _BASE)).returncode:
            reasons.append(f"{name} gets no {_BASE}: {_last(pulled)}")
        else:
            return name
    pytest.skip("; ".join(reasons))


@pytest.fixture(scope="module")
def image(builder: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image that the file makes of the sample and a wheel of this checkout."""
    folder = tmp_path_factory.mktemp("image")
    sample.write(folder)
    shutil.copy(FILE, folder)
    assert not _ran(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(folder), str(ROOT)).returncode
    (wheel,) = folder.glob("litecl-*.whl")
    # Where processes may make no namespaces, as in a container, buildah isolates by chroot alone.
    isolation = ("--isolation", "chroot") if builder == "buildah" else ()
    given = ("-t", "litecl-test", "--build-arg", f"LITECL=./{wheel.name}", "-f", str(folder / FILE.name))
    made = _ran(builder, "build", *isolation, *given, str(folder))
    assert made.returncode == 0, made.stderr[-3000:]
    return "litecl-test"


@pytest.fixture(scope="module")
def served(builder: str, image: str) -> Iterator[None]:
    """A container of the image, which runs its command. buildah's shares the machine's ports."""
    if builder == "buildah":
        container = _ran(builder, "from", "--pull-never", f"localhost/{image}").stdout.strip()
        words = [builder, "run", "--isolation", "chroot", container, "--", *_command(), "--port", str(_PORT)]
    else:
        words = [builder, "run", "--rm", "-p", f"127.0.0.1:{_PORT}:8000", image]
    with subprocess.Popen(words) as process:
        yield
        process.terminate()
    if builder == "buildah":
        _ran(builder, "rm", container)


@pytest.mark.usefixtures("served")
def test_it_builds_and_serves() -> None:
    assert _read(f"{_ADDRESS}/health/ready") == {"ready": True}
    assert _read(f"{_ADDRESS}/models/model")["inputs"][0]["shape"] == [-1, 8, 8, 3]


def _read(address: str) -> Any:
    for _ in range(60):
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                return json.load(answer)
        except OSError:
            time.sleep(1)
    raise AssertionError(f"{address} does not answer")


def _command() -> list[str]:
    """Return the command that containers of the file run."""
    command: list[str] = json.loads(next(x for x in FILE.read_text().splitlines() if x.startswith("CMD "))[4:])
    return command


def test_its_commands_have_the_flags_that_it_gives() -> None:
    """Which needs nobody to build it."""
    text = FILE.read_text()
    compiled = next(line for line in text.splitlines() if line.startswith("RUN litecl"))[4:].split()
    for words in (_command(), compiled):
        assert words[0] == "litecl" and words[1] in helps()
        module = import_module(f"litecl.cli.commands.{words[1]}")
        parser({words[1]: module}).parse_args(words[1:])
    assert "litecl[serve]" in text.replace("${LITECL}", "litecl")
