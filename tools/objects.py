"""Compiles kernels ahead: writes a package for pip, ``litecl_objects``, with the objects of models, of operators'
device cases and of some networks for several processors (delegate/native/ahead.py). Whoever installs it beside the same
version of litecl, with the same compiler, compiles only what is missing.

Usage: PYTHONPATH=tests python -m tools.objects FOLDER [MODEL ...] [--for MACHINE ...] [--only-models]
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import litecl
from litecl import CLDelegate, Interpreter
from litecl.delegate.backend import binaries
from litecl.delegate.native import ahead, compiler, kinds, packing, probe
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from support import networks, quantize_models
from support.all_cases import DEVICE_CASES, content

_MACHINES = (
    *(f"x86_64-linux:{name}" for name in ("x86-64-v3", "alderlake", "skylake-avx512", "cascadelake")),
    *(f"x86_64-linux:{name}" for name in ("icelake-client", "znver5", "sapphirerapids")),
    *(f"aarch64-linux:{name}" for name in ("cortex-a53", "cortex-a76")),
)
"""Each has another set of ``ahead.SAME``: AVX2, with AVX-VNNI; AVX-512, with VNNI, with VBMI (Ice Lake, Zen 4), with
AVX-VNNI, with FP16; ARM's base, with dot products and FP16.
"""
_NETWORKS = (networks.mobilenet_v1, networks.mobilenet_v2, networks.efficientnet_b0)
_SIDE = 96  # of their images
_PROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "litecl-objects"
description = "Kernels of litecl, compiled ahead"
readme = {{ text = "Install it with `pip install 'litecl[objects]'`.", content-type = "text/markdown" }}
license = "Apache-2.0"
version = "{version}"
dependencies = {needed}

[tool.setuptools]
packages = ["litecl_objects"]
package-data = {{ litecl_objects = ["*/*"] }}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--for", dest="machines", nargs="+", default=_MACHINES)
    parser.add_argument("--only-models", action="store_true", help="leave out cases and networks")
    given = parser.parse_args()
    models = [path.read_bytes() for path in given.models]
    if not given.only_models:
        models += [content(case) for case in DEVICE_CASES]
        models += _networks()
    package = given.folder / ahead.PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    found = compiler.found()
    needed = [f"litecl=={litecl.__version__}"]
    if found is not None and found.source == compiler.OF_ZIGLANG:
        needed.append(f"ziglang=={version('ziglang')}")
    project = _PROJECT.format(version=litecl.__version__, needed=needed)
    (given.folder / "pyproject.toml").write_text(project, encoding="utf-8")
    for machine in map(kinds.machine, given.machines):
        _compile(package / machine.name.replace(":", "-"), machine, models)


def _networks() -> Iterator[bytes]:
    """Yield networks with random weights, in floats and quantized to int8."""
    for network in _NETWORKS:
        yield (in_floats := network(_SIDE))
        model = read(in_floats)
        yield write(quantize_models.quantized(model, data=quantize_models.samples_of(model, 1))[0])


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
    if folder in binaries.REFUSED:
        raise binaries.REFUSED[folder]
    for other in {*folder.iterdir()} - {path for path in folder.glob("*.bin") if not path.match("library-*")}:
        other.unlink()
    probe.keep(target.compiler, folder / ahead.COMPILER)
    sizes = [path.stat().st_size for path in folder.glob("*.bin")]
    took_s = time.perf_counter() - start_s
    print(f"{machine.name}: {len(sizes)} objects, {sum(sizes)} bytes, {failed} failures, {took_s:.0f} s", flush=True)


if __name__ == "__main__":
    main()
