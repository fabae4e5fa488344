"""Tables of functions of integers: LiteRT's, whatever instructions numpy has at hand."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from litecl.cases import Case
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import gelu, unary
from litecl.interpreter.recurrent import integer_lstm_8
from litecl.interpreter.schema import TensorType
from litecl.perf.feeds import run_on
from support import oracle

_INT16 = np.arange(-(2**15), 2**15).astype(np.int16)[None]


def _quantization(scale: float) -> Quantization:
    return Quantization(np.array([scale], np.float32), np.array([0], np.int64))


def _case(op: Op, options: object, in_scale: float, out_scale: float) -> Case:
    output = TensorSpec(TensorType.INT16, _INT16.shape, quantization=_quantization(out_scale))
    by = {0: _quantization(in_scale)}
    return Case("table", op, options, [_INT16], quantization=by, outputs=[output], version=op.versions[-1])


def _run(case: Case) -> Array:
    interpreter = Interpreter(write(case.model()))
    return run_on(interpreter, [_INT16])[0]


def _scales(count: int) -> list[tuple[float, float]]:
    rng = np.random.default_rng(0)
    return [(10 ** rng.uniform(-5.5, -2.5), 10 ** rng.uniform(-6, -3)) for _ in range(count)]


@pytest.mark.parametrize("op", [unary.EXP, unary.LOG], ids=lambda op: op.name)
def test_every_entry_is_litert_s(op: Op) -> None:
    for scales in _scales(60):
        case = _case(op, NoOptions(), *scales)
        np.testing.assert_array_equal(_run(case), oracle.run(write(case.model()), [_INT16])[0], str(scales))


@pytest.mark.parametrize("op", [unary.LOGISTIC, unary.TANH], ids=lambda op: op.name)
@pytest.mark.parametrize("away", [-0.0013, -0.00101, -0.00098, 0.00098, 0.00101, 0.0013])
def test_scales_near_a_power_of_two(op: Op, away: float) -> None:
    """They count as one within a thousandth of their logarithm to base 2."""
    case = _case(op, NoOptions(), 2.0 ** (-12 + away), 1 / 32768)
    np.testing.assert_array_equal(_run(case), oracle.run(write(case.model()), [_INT16])[0])


def _tables() -> str:
    """Return a digest of the functions' results for every integer, at many scales."""
    sums = []
    for scales in _scales(40):
        for op, options in (
            (unary.EXP, NoOptions()),
            (unary.LOG, NoOptions()),
            (gelu.GELU, gelu.GeluOptions(True)),
            (gelu.GELU, gelu.GeluOptions(False)),
        ):
            sums.append(hash(_run(_case(op, options, *scales)).tobytes()))
    sums.append(hash(integer_lstm_8.sigmoid(_INT16).tobytes()))
    return str(sums)


@pytest.mark.skipif(sys.platform != "linux", reason="numpy's dispatch is limited by an environment variable")
@pytest.mark.long
def test_tables_are_the_same_without_the_processor_s_vectors() -> None:
    """In a process whose numpy may use only what every x86-64 processor has."""
    core = pytest.importorskip("numpy._core._multiarray_umath")
    features = " ".join(name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name))
    code = "import test_lookup; print(test_lookup._tables())"
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={
                **os.environ,
                **extra,
                "PYTHONHASHSEED": "0",
                "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)]),
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for extra in ({}, {"NPY_DISABLE_CPU_FEATURES": features})
    ]
    assert found[0] == found[1] != ""
