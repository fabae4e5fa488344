"""Tables of bytes that are looked up by instructions that permute bytes (kernels_cl/byte_tables.h), by processor."""

import ctypes
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from litecl.cases import Case
from litecl.cases.quantize import affine
from litecl.delegate import CLDelegate
from litecl.delegate.backend.sources import source_of
from litecl.delegate.native import compiler, kinds, loading
from litecl.delegate.native.backend import Native
from litecl.delegate.native.clang import Compiler, Unit
from litecl.delegate.native.cross import compiler_for
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.quantize import QUANTIZE
from litecl.interpreter.ops.unary import LOGISTIC
from litecl.interpreter.schema import TensorType as T
from litecl.perf.feeds import run_on
from support import devices
from support.all_cases import content
from support.assembly import assembly

_FOUND = compiler.found()
needs_x86 = pytest.mark.skipif(
    _FOUND is None or "__x86_64__" not in _FOUND.macros, reason="no compiler for an x86-64 processor"
)
X86 = {  # a processor and the ints in its vectors: the instruction
    ("x86-64", 4): None,
    ("nehalem", 4): "pshufb",
    ("haswell", 8): "vpshufb",
    ("skylake-avx512", 16): "vpshufb",
    ("icelake-server", 16): "vperm[it]2b",
    ("znver4", 16): "vperm[it]2b",
}
ARM = {"aarch64-linux:cortex-a72": 1, "aarch64-macos:apple-m1": 1, "aarch64-linux:neoverse-v1": 1, "armv7-linux": 0}
FUNCTION = """
__attribute__((visibility("default"))) void looked_up(__global const uchar *x, __global const uchar *table,
                                                      __global uchar *y, int n, int per_item) {
    for (int i = 0; i * per_item < n; ++i) look_up(i, 0, 0, x, table, y, n, per_item);
}
"""


def _unit(width: int) -> Unit:
    text = source_of("native.h") + source_of("table.cl") + FUNCTION
    macros = {"VW": width, "LITECL_REGION": 1, "T": "uchar", "R": "uchar", "BYTES": 1}
    return Unit("tables.cl", text, tuple(f"-D{name}={value}" for name, value in macros.items()))


def _for(processor: str) -> Compiler:
    assert _FOUND is not None
    return replace(_FOUND, target=(f"-march={processor}",))


@needs_x86
@pytest.mark.parametrize(("processor", "width"), X86)
def test_instructions_of_x86(processor: str, width: int) -> None:
    name = X86[processor, width]
    made = re.findall(r"pshufb|vpshufb|vperm[it]2b", assembly(_for(processor), _unit(width)))
    assert not made if name is None else any(re.fullmatch(name, word) for word in made)


@pytest.mark.skipif(_FOUND is None or _FOUND.source != "of ziglang", reason="no compiler for all machines")
@pytest.mark.parametrize("machine", ARM)
def test_instructions_of_arm(machine: str) -> None:
    """A table is 64 entries, four times."""
    made = assembly(compiler_for(kinds.machine(machine)), _unit(4))
    assert len(re.findall(r"\btb[lx](?:\.16b)?\t", made)) == 4 * ARM[machine]


@needs_x86
@pytest.mark.parametrize(("processor", "width"), X86)
def test_lengths_and_alignments(processor: str, width: int) -> None:
    """Every length up to some vectors, in one share and in several, from any address; nothing beyond is written."""
    assert _FOUND is not None
    made_for = _for(processor)
    if missing := sorted(filter(_is_feature, made_for.macros.keys() - _FOUND.macros.keys())):
        pytest.skip(f"this processor has no {', '.join(missing)}")
    made = loading.loaded(made_for.link(made_for.compile([_unit(width)])))
    rng = np.random.default_rng(11)
    table = rng.permutation(256).astype(np.uint8)
    for n in (*range(200), 256, 1000):
        for per_item in {n or 1, 4 * width, 4 * width + 1}:
            shift = int(rng.integers(0, 64))
            x = np.resize(rng.permutation(256).astype(np.uint8), n + shift)[shift:]
            memory = np.full(n + 2 * shift + 1, 77, np.uint8)
            pointers = (ctypes.c_void_p(array.ctypes.data) for array in (x, table, memory[shift:]))
            made.looked_up(*pointers, n, per_item)
            np.testing.assert_array_equal(memory[shift : shift + n], table[x])
            assert (np.delete(memory, np.s_[shift : shift + n]) == 77).all()


def _is_feature(macro: str) -> bool:
    return macro.startswith(("__AVX", "__FMA", "__F16C", "__BMI", "__SSE", "__SSSE"))


def _run(case: Case, delegates: Sequence[CLDelegate]) -> Array:
    interpreter = Interpreter(model_content=content(case), delegates=delegates)
    (output,) = run_on(interpreter, [case.feeds[0]])
    if delegates:
        report = interpreter.delegation_report()
        assert report.nodes[0].claimed and not report.failures
    return output


ZERO_POINTS = (-128, -100, -1, 0, 5, 127)


@pytest.mark.parametrize("from_", [T.INT8, T.UINT8])
@pytest.mark.parametrize("to", [T.INT8, T.UINT8])
def test_shifts_of_bytes(from_: T, to: T) -> None:
    """QUANTIZE at the same scale moves all 256 elements by the difference of the zero points, and saturates."""
    if not Native().devices():
        pytest.skip("no compiler for the processor: pip install ziglang")
    x = np.resize(np.arange(256).astype(np.uint8).view(from_.dtype), 389)
    up, higher = (128 if type_ == T.UINT8 else 0 for type_ in (from_, to))
    for zero in ZERO_POINTS:
        for wanted in ZERO_POINTS:
            output = (TensorSpec(to, None, quantization=affine(0.1, wanted + higher)),)
            case = Case("", QUANTIZE, NoOptions(), [x], quantization={0: affine(0.1, zero + up)}, outputs=output)
            expected = np.clip(x.astype(int) - (zero + up) + (wanted + higher), *_limits(to))
            for got in (_run(case, []), _run(case, [CLDelegate("native")])):
                np.testing.assert_array_equal(got, expected)


def _limits(type_: T) -> tuple[int, int]:
    return np.iinfo(type_.dtype).min, np.iinfo(type_.dtype).max


@pytest.mark.parametrize("device", ["native", *devices.tested()], ids=lambda device: getattr(device, "name", device))
@pytest.mark.parametrize("n", [1, 63, 64, 65, 129, 70001])
def test_on_devices(device: object, n: int) -> None:
    """Shares of two threads end where they may."""
    x = np.resize(np.random.default_rng(n).permutation(256).astype(np.uint8), n).view(np.int8)
    outputs = (TensorSpec(T.INT8, None, quantization=affine(1 / 256, -128)),)
    case = Case("", LOGISTIC, NoOptions(), [x], quantization={0: affine(0.05, 3)}, outputs=outputs)
    np.testing.assert_array_equal(_run(case, [CLDelegate(device, num_threads=2)]), _run(case, []))
