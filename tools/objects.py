"""Compiles kernels ahead: writes a package for pip, ``litecl_objects``, with the objects of models and of operators'
device cases for several processors (delegate/native/ahead.py). Whoever installs it beside the same version of litecl,
with the same compiler, compiles only what is missing.

Usage: PYTHONPATH=tests python -m tools.objects FOLDER [MODEL ...] [--for MACHINE ...] [--no-cases]
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import litecl
from litecl import CLDelegate, Interpreter
from litecl.delegate.native import ahead, kinds, packing, probe
from litecl.interpreter.errors import LiteclError
from support.all_cases import DEVICE_CASES, content

_LEVELS = ("x86-64-v3", "alderlake", "icelake-client", "znver5", "sapphirerapids")
"""Each has another set of ``ahead.SAME``: AVX2, with AVX-VNNI; AVX-512 from Ice Lake and Zen 4 on, with AVX-VNNI, and
with FP16.
"""
_PROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "litecl-objects"
description = "Kernels of litecl, compiled ahead"
license = "Apache-2.0"
version = "{version}"
dependencies = ["litecl=={version}"]

[tool.setuptools]
packages = ["litecl_objects"]
package-data = {{ litecl_objects = ["*/*"] }}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--for", dest="machines", nargs="+", default=[f"x86_64-linux:{name}" for name in _LEVELS])
    parser.add_argument("--no-cases", action="store_true")
    given = parser.parse_args()
    models = [path.read_bytes() for path in given.models]
    if not given.no_cases:
        models += [content(case) for case in DEVICE_CASES]
    package = given.folder / ahead.PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (given.folder / "pyproject.toml").write_text(_PROJECT.format(version=litecl.__version__), encoding="utf-8")
    for machine in map(kinds.machine, given.machines):
        _compile(package / machine.name.replace(":", "-"), machine, models)


def _compile(folder: Path, machine: kinds.Machine, models: Sequence[bytes]) -> None:
    """Fill a new folder with the objects for a machine."""
    start_s, failed = time.perf_counter(), 0
    target = packing.target(machine, folder)
    for model in models:
        for threads in (1, 2):
            delegate = CLDelegate(device=target.device(threads), num_threads=threads)
            try:
                Interpreter(model_content=model, delegates=[delegate]).allocate_tensors()
            except LiteclError:  # an operator that no kernel has
                failed += 1
    target.packed()  # the helper threads'
    for other in {*folder.iterdir()} - {path for path in folder.glob("*.bin") if not path.match("library-*")}:
        other.unlink()
    probe.keep(target.compiler, folder / ahead.COMPILER)
    sizes = [path.stat().st_size for path in folder.glob("*.bin")]
    took_s = time.perf_counter() - start_s
    print(f"{machine.name}: {len(sizes)} objects, {sum(sizes)} bytes, {failed} failures, {took_s:.0f} s", flush=True)


if __name__ == "__main__":
    main()
