"""The caller's mode of float arithmetic: kernels do not depend on it, and leave it as it was."""

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from litecl.delegate.native import compiler, loading
from litecl.delegate.native.clang import Unit
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import MUL, MulOptions
from litecl.interpreter.ops.unary import SQRT
from litecl.perf.models.build import Graph, model
from support.small_models import prepared, reference, run

_FOUND = compiler.found()
pytestmark = pytest.mark.skipif(
    _FOUND is None or "__x86_64__" not in _FOUND.macros, reason="no compiler for an x86-64 processor"
)
CODE = """
__attribute__((visibility("default"))) unsigned mode(void) { return __builtin_ia32_stmxcsr(); }
__attribute__((visibility("default"))) void set_mode(unsigned mode) { __builtin_ia32_ldmxcsr(mode); }
"""
DEFAULT, CONTROL = 0x1F80, 0xFFC0
MODES = {"denormals flushed": 0x9FC0, "rounded up": 0x5F80, "rounded to zero": 0x7F80}
SIZE = 200_000  # enough for several threads


def _library() -> ctypes.CDLL:
    assert _FOUND is not None
    made = loading.loaded(_FOUND.link(_FOUND.compile([Unit("mode.c", CODE)])))
    made.mode.restype = ctypes.c_uint
    return made


def _roots_of_products() -> Model:
    graph = Graph()
    x = graph.input((SIZE,))
    return model(graph.build(graph.op(SQRT, [graph.op(MUL, [x, x], MulOptions())], NoOptions())))


def _values() -> Array:
    """Numbers whose squares are denormal, or need rounding."""
    rng = np.random.default_rng(3)
    return np.where(np.arange(SIZE) % 2, 1e-20, 1.0).astype(np.float32) * rng.uniform(0.5, 2, SIZE).astype(np.float32)


def check(mode: int, threads: int, folder: str) -> None:
    """The mode is set before the first region is prepared, so that helpers begin with it."""
    made, x = _library(), _values()
    wanted = run(reference(_roots_of_products()), x)
    made.set_mode(mode)
    try:
        interpreter = prepared(
            _roots_of_products(), device="native", strict=True, num_threads=threads, cache_dir=folder
        )
        for _ in range(20):  # helpers take part in some
            got = run(interpreter, x)
            assert made.mode() & CONTROL == mode & CONTROL
            assert np.array_equal(got, wanted)
    finally:
        made.set_mode(DEFAULT)


@pytest.mark.parametrize("name", MODES)
def test_one_thread(name: str, tmp_path: Path) -> None:
    check(MODES[name], 1, str(tmp_path))


def test_helpers(tmp_path: Path) -> None:
    """In a process of its own, which has none yet."""
    code = "\n".join(f"check({mode}, 2, {str(tmp_path)!r})" for mode in MODES.values())
    command = [sys.executable, "-c", f"from delegate.test_float_mode import check\n{code}"]
    ran = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
