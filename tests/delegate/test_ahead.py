"""Objects compiled ahead, in a package: which of them a processor uses."""

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from litecl import kernels_cl
from litecl.delegate.native import ahead, compiler, kinds, packing, probe
from litecl.delegate.native.clang import Compiler
from litecl.delegate.progress import BuildStep
from litecl.perf.devices import device_rows
from support import small_models
from support.small_models import native, prepared, reference, run

pytestmark = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")
MODEL = small_models.chain()
X = np.random.default_rng(7).standard_normal((2, 5)).astype(np.float32)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Compiler, Path]:
    """The compiler, and a folder of the objects of a model with one thread."""
    folder = tmp_path_factory.mktemp("made")
    target = packing.target(kinds.machine(kinds.HOST), folder)
    prepared(MODEL, device=target.device(1), num_threads=1)
    for path in folder.glob("library-*"):
        path.unlink()
    return target.compiler, folder


@pytest.fixture
def package(made: tuple[Compiler, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package's folder of them, installed for this test."""
    folder = tmp_path / ahead.PACKAGE / "here"
    shutil.copytree(made[1], folder)
    (folder.parent / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    _keep(folder, made[0])
    yield folder
    ahead.suitable.cache_clear()


def _keep(folder: Path, made_with: Compiler) -> None:
    probe.keep(made_with, folder / ahead.COMPILER)
    ahead.suitable.cache_clear()


def _compiled(cache: Path, **options: object) -> int:
    """Run the model; return the number of files that were compiled for it."""
    steps = list[BuildStep]()
    interpreter = native(MODEL, num_threads=1, cache_dir=cache, progress=steps.append, **options)
    np.testing.assert_allclose(run(interpreter, X), run(reference(MODEL), X), rtol=1e-5)
    assert ("compiled ahead for" in str(interpreter.delegation_report())) == (not options)
    return max((step.total for step in steps), default=0)


def test_nothing_is_compiled(package: Path, tmp_path: Path) -> None:
    """And nothing in the package changes, not even a time."""
    before = {path: path.stat().st_mtime_ns for path in package.iterdir()}
    assert _compiled(tmp_path / "cache") == 0
    assert {path: path.stat().st_mtime_ns for path in package.iterdir()} == before
    assert any("; kernels compiled ahead for" in row.platform for row in device_rows())


def test_the_same_bits_everywhere_are_compiled_here(package: Path, tmp_path: Path) -> None:
    """Not even the library that others have linked in the same cache is used."""
    _compiled(tmp_path / "cache")
    assert _compiled(tmp_path / "cache", deterministic=True) > 0


def test_a_damaged_object_is_compiled(package: Path, tmp_path: Path) -> None:
    path = min(package.glob("*.bin"))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert _compiled(tmp_path / "cache") == 1


OTHERS: dict[str, Callable[[dict[str, str]], object]] = {
    "of another code path": lambda macros: macros.update(__AVX512VNNI__="0", __ARM_FEATURE_MATMUL_INT8="0"),
    "with more features": lambda macros: macros.update(__AVXVNNIINT8__="1", __ARM_FEATURE_BF16="2"),
    "for another system": lambda macros: macros.update(_WIN32="2"),
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_objects_for_others_are_not_used(
    made: tuple[Compiler, Path], package: Path, change: Callable[[dict[str, str]], object]
) -> None:
    assert ahead.suitable(_found()) is not None
    macros = dict(made[0].macros)
    change(macros)
    _keep(package, replace(made[0], known=replace(made[0].facts, macros=macros)))
    assert ahead.suitable(_found()) is None


def test_objects_of_another_compiler_are_not_used(made: tuple[Compiler, Path], package: Path) -> None:
    _keep(package, replace(made[0], known=replace(made[0].facts, version="clang version 1")))
    assert ahead.suitable(_found()) is None


def test_what_kernels_test_is_compared() -> None:
    """Apart from the probe, which is no kernel, and from macros of GPUs and of WebAssembly."""
    files = [path for path in Path(kernels_cl.__file__).parent.glob("*.*") if path.suffix in (".c", ".cl", ".h")]
    text = "".join(path.read_text(encoding="utf-8") for path in files if path.name != "probe.c")
    tested = set(re.findall(r"(?:defined\(|ifn?def )(__?[A-Za-z]\w*)", text))
    others = re.compile(r"__(AMDGCN|GFX\d+|NVPTX|NV_CL_C_VERSION|has_builtin|wasm_\w+)_*")
    assert len(tested) > 20
    assert not {name for name in tested if not name.startswith(ahead.SAME) and not others.fullmatch(name)}


def _found() -> Compiler:
    found = compiler.found()
    assert found is not None
    return found
