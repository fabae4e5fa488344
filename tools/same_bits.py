"""Compiles models with ``deterministic=True`` for five processors, runs them there (two are emulated by qemu-user), and
prints whose outputs differ in a bit. FOLDER keeps models, inputs and packs: a run that was broken off compiles no model
again, and other models need another folder.

Usage: PYTHONPATH=tests python -m tools.same_bits FOLDER [MODEL...]

Without models, it takes the fifty largest of floats up to 5 MB in ../shared/models. board_cases.py writes operators'
cases as models with inputs. Emulation needs qemu-user; a Debian of that architecture is unpacked into
~/.cache/litecl-tests (0.2 GB each).
"""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from litecl.cli import main as litecl
from litecl.interpreter import Interpreter
from litecl.perf.feeds import random_inputs
from support.shared import MODELS, invoked

_ROOT = Path(__file__).parents[1]
_TARGETS = {
    "x86-64-v3": "x86_64-linux:x86-64-v3",
    "x86-64-v4": "x86_64-linux:x86-64-v4",
    "host": "host",
    "cortex-a76": "aarch64-linux:cortex-a76",
    "riscv64": "riscv64-linux",
}
_EMULATED = {"cortex-a76": ("aarch64", "arm64", "cortex-a76"), "riscv64": ("riscv64", "riscv64", "rv64")}
"""qemu's name of the architecture, Debian's, and the emulated processor."""


def main(folder: Path, models: Sequence[Path]) -> int:
    """Compile, run and compare; return the number of models with a difference that the report doesn't announce."""
    folder.mkdir(parents=True, exist_ok=True)
    names = _numbered(folder, models or _largest(50))
    results = {}
    for target, machine in _TARGETS.items():
        failed = {name: why for name in names if (why := _compiled(folder, name, target, machine))}
        results[target] = {name: {"failed": why} for name, why in failed.items()} | _run(folder, target)
    unannounced = 0
    for name, model in names.items():
        said = _said({target: result.get(name, {"failed": "did not run"}) for target, result in results.items()})
        unannounced += said.startswith("DIFFERS")
        print(f"{model}: {said}")
    print(f"{len(names)} models on {len(_TARGETS)} processors, {unannounced} not as promised")
    return unannounced


def _largest(count: int) -> list[Path]:
    paths = [model.path for model in invoked("float32", "dynamic-range-int8", "float16-weights", "int8+float-io/mixed")]
    fitting = [path for path in paths if path.stat().st_size < 5_000_000 and _may_be_emulated(path)]
    return sorted(fitting, key=lambda path: -path.stat().st_size)[:count]


def _may_be_emulated(path: Path) -> bool:
    """Return whether a model takes numbers, and its tensors are small enough for an emulated processor."""
    interpreter = Interpreter(path)
    numbers = all(np.dtype(detail["dtype"]).kind not in "OS" for detail in interpreter.get_input_details())
    return numbers and all(np.prod(detail["shape"]) < 1 << 22 for detail in interpreter.get_tensor_details())


def _numbered(folder: Path, models: Sequence[Path]) -> dict[str, str]:
    """Write models and inputs to the folder; return the models' names by number. The inputs are those beside the model,
    or random ones.
    """
    names = {}
    for number, path in enumerate(models):
        names[f"{number:03}"] = str(path.relative_to(MODELS) if path.is_relative_to(MODELS) else path)
        copy = folder / f"{number:03}.tflite"
        copy.write_bytes(path.read_bytes())
        if path.with_suffix(".npz").exists():
            copy.with_suffix(".npz").write_bytes(path.with_suffix(".npz").read_bytes())
            continue
        feeds = random_inputs(Interpreter(copy).get_input_details(), number).values()
        np.savez(copy.with_suffix(".npz"), **{f"feed{i}": feed for i, feed in enumerate(feeds)})  # type: ignore[arg-type]
    return names


def _compiled(folder: Path, name: str, target: str, machine: str) -> str:
    """Make a pack of a model, for one thread and for two; return why that failed, or ""."""
    pack = folder / f"{name}.{target}.pack"
    if pack.exists():
        return ""
    flags = ["--deterministic", "--threads", "1", "--threads", "2", "--for", machine, "-o", str(pack), "--json"]
    with redirect_stdout(io.StringIO()) as said:
        code = litecl(["compile", str(folder / f"{name}.tflite"), *flags])
    return f"litecl compile: {said.getvalue().strip()}" if code else ""


def _run(folder: Path, target: str) -> dict[str, Any]:
    """Return the target's rows by model."""
    command, environment = _python(target)
    script = str(_ROOT / "tools" / "same_bits_run.py")
    ran = subprocess.run(
        [*command, script, str(folder), target], env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    return {row["model"]: row for row in map(json.loads, ran.stdout.splitlines())}


def _python(target: str) -> tuple[list[str], Mapping[str, str]]:
    """Return the command of a target's Python, and its environment."""
    environment = {**os.environ, "PYTHONPATH": str(_ROOT / "src")}
    if target not in _EMULATED:
        return [sys.executable], environment
    architecture, debian, processor = _EMULATED[target]
    emulator = shutil.which(f"qemu-{architecture}")
    if emulator is None:
        raise SystemExit(f"qemu-{architecture} is not installed (Debian: apt-get install qemu-user)")
    fetched = ["tools/debian_root.sh", "trixie", "python3-numpy", "python3-flatbuffers"]
    given = {**os.environ, "ARCHITECTURE": debian}
    root = subprocess.run(fetched, cwd=_ROOT, env=given, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    libraries = f"/usr/lib/{architecture}-linux-gnu"
    shown = f"LD_LIBRARY_PATH={libraries}/blas:{libraries}/lapack"
    environment |= {"PYTHONHOME": "/usr", "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
    return [emulator, "-cpu", processor, "-L", root, "-E", shown, f"{root}/usr/bin/python3.13"], environment


def _said(rows: Mapping[str, Mapping[str, Any]]) -> str:
    if failed := {target: row["failed"] for target, row in rows.items() if "failed" in row}:
        return f"DIFFERS: {failed}"
    groups: dict[str, list[str]] = {}
    for target, row in rows.items():
        for threads in ("1", "2"):
            groups.setdefault(" ".join(row[threads]), []).append(f"{target}/{threads}")
    report, *others = sorted({row["report"] for row in rows.values()})
    if others:
        return f"DIFFERS: the reports are {[report, *others]}"
    if len(groups) == 1:
        return f"same bits; {report}"
    apart = " | ".join(", ".join(targets) for targets in groups.values())
    return f"{'announced' if 'but for' in report else 'DIFFERS'}: {apart}; {report}"


if __name__ == "__main__":
    sys.exit(min(main(Path(sys.argv[1]).resolve(), [*map(Path, sys.argv[2:])]), 100))
