"""Dot products of bytes and words by x86's instructions (kernels_cl/x86_dots.h), on every level of processor."""

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.delegate.backend.sources import source_of
from litecl.delegate.native import compiler, loading
from litecl.delegate.native.clang import Compiler, Unit
from litecl.interpreter.graph import Array
from support.assembly import assembly

_FOUND = compiler.found()
pytestmark = pytest.mark.skipif(
    _FOUND is None or "__x86_64__" not in _FOUND.macros, reason="no compiler for an x86-64 processor"
)
TARGETS = {  # a processor and the ints in its vectors: the instructions for bytes and for words
    ("x86-64", 4): ("pmaddwd", "pmaddwd"),
    ("haswell", 8): ("vpmaddwd", "vpmaddwd"),
    ("alderlake", 4): ("{vex}vpdpbusd", "{vex}vpdpwssd"),
    ("alderlake", 8): ("{vex}vpdpbusd", "{vex}vpdpwssd"),
    ("skylake-avx512", 16): ("vpmaddwd", "vpmaddwd"),
    ("cascadelake", 4): ("vpdpbusd", "vpdpwssd"),
    ("cascadelake", 8): ("vpdpbusd", "vpdpwssd"),
    ("cascadelake", 16): ("vpdpbusd", "vpdpwssd"),
}
FUNCTIONS = """
__attribute__((visibility("default"))) void bytes(__global const int *x, __global const int *w, __global int *sum) {
    *(__global intv_u *)sum = DOT4(*(__global intv_u *)sum, *(__global const intv_u *)x, *(__global const intv_u *)w);
}
__attribute__((visibility("default"))) void words(__global const int *x, __global const int *w, __global int *sum) {
    *(__global intv_u *)sum = DOT2(*(__global intv_u *)sum, *(__global const intv_u *)x, *(__global const intv_u *)w);
}
"""


def _for(processor: str) -> Compiler:
    assert _FOUND is not None
    return replace(_FOUND, target=(f"-march={processor}",))


def _unit(width: int) -> Unit:
    text = source_of("native.h") + "#define T uchar\n" + source_of("quantized.h") + FUNCTIONS
    return Unit("dots.cl", text, (f"-DVW={width}", "-DLITECL_REGION=1"))


@pytest.mark.parametrize(("processor", "width"), TARGETS)
def test_instructions(processor: str, width: int) -> None:
    made = assembly(_for(processor), _unit(width))
    text = "".join(made.split())
    assert all(name in text for name in TARGETS[processor, width])


@pytest.mark.parametrize(("processor", "width"), TARGETS)
def test_products(processor: str, width: int) -> None:
    """The extremes of both factors are among the numbers, whose sums exceed 16 bits."""
    assert _FOUND is not None
    made_for = _for(processor)
    if missing := sorted(filter(_is_feature, made_for.macros.keys() - _FOUND.macros.keys())):
        pytest.skip(f"this processor has no {', '.join(missing)}")
    made = loading.loaded(made_for.link(made_for.compile([_unit(width)])))
    rng = np.random.default_rng(7)
    for _ in range(50):
        x = rng.integers(0, 256, (width, 4)).astype(np.uint8)
        w = rng.integers(-128, 128, (width, 4)).astype(np.int8)
        x[0], w[0], x[-1], w[-1] = 255, -128, 255, 127
        _check(made.bytes, x, w)
        a, b = (rng.integers(-(1 << 15), 1 << 15, (width, 2)).astype(np.int16) for _ in range(2))
        a[0], b[0] = -(1 << 15), [-(1 << 15), (1 << 15) - 1]
        _check(made.words, a, b)


def _is_feature(macro: str) -> bool:
    return macro.startswith(("__AVX", "__FMA", "__F16C", "__BMI", "__SSE"))


def _check(function: Any, x: Array, w: Array) -> None:
    sums = np.arange(len(x), dtype=np.int32) - 3
    wanted = sums + (x.astype(np.int64) * w).sum(1)
    function(*(ctypes.c_void_p(array.ctypes.data) for array in (x, w, sums)))
    np.testing.assert_array_equal(sums, wanted)
