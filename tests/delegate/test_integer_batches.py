"""BATCH_MATMUL by constant bytes with a scale for every column, for which LiteRT has no kernel."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.cases.quantize import affine
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import UnsupportedOp
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.schema import TensorType as T
from litecl.perf.feeds import run_on
from support import devices
from support.all_cases import content, expected
from support.shared import SHARED

_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ((7, 37), (37, 21), {}),
    ((40, 16), (16, 3), {}),
    ((1, 300), (300, 2), {}),
    ((3, 5, 16), (16, 9), {}),
    ((3, 5, 16), (9, 16), {"adj_y": True}),
    ((3, 16, 5), (3, 9, 16), {"adj_x": True, "adj_y": True}),
    ((2, 1, 5, 16), (3, 16, 9), {}),
    ((5, 16), (4, 16, 9), {}),
)


def _case(type_: T, x: tuple[int, ...], y: tuple[int, ...], **options: bool) -> Case:
    rng = np.random.default_rng(x[-1] + y[-1])
    limits = np.iinfo(np.int8 if type_ == T.INT8 else np.int16)
    a = rng.integers(limits.min, limits.max, x, endpoint=True).astype(limits.dtype)
    b = rng.integers(-128, 128, y).astype(np.int8)
    depth, axis = x[-2 if options.get("adj_x") else -1], len(y) - (2 if options.get("adj_y") else 1)
    scales = rng.uniform(0.01, 0.03, y[axis])
    step = 0.03 * 0.02 * 74 * 0.58 * depth**0.5 / 0.4  # so that most sums are within the range
    zeros = (3, -5) if type_ == T.INT8 else (0, 0)
    return Case(
        "by columns",
        BATCH_MATMUL,
        BatchMatMulOptions(**options),
        [a, b],
        frozenset({1}),
        {0: type_, 1: T.INT8},
        {0: affine(0.03, zeros[0]), 1: affine(list(scales), [0] * len(scales), axis)},
        [TensorSpec(type_, None, quantization=affine(step, zeros[1]))],
        3,
    )


def _by_litert(case: Case) -> Array:
    """Column by column, each quantized as a whole."""
    y, how = case.inputs[1], case.quantization[1]
    assert how is not None
    axis, parts = how.quantized_dimension, []
    for column, scale in enumerate(how.scale):
        one = np.take(y, [column], axis)
        parts += expected(
            replace(case, inputs=[case.inputs[0], one], quantization={**case.quantization, 1: affine(float(scale), 0)})
        )
    return np.concatenate(parts, -1)


def _run(content: bytes | str, delegates: list[CLDelegate], feed: Array) -> Array:
    interpreter = Interpreter(content, delegates=delegates)
    (output,) = run_on(interpreter, [feed])
    if delegates:
        report = interpreter.delegation_report()
        assert all(row.claimed for row in report.nodes) and not report.failures
    return output


@devices.on_each_and_the_cpu
@pytest.mark.parametrize("type_", [T.INT8, T.INT16])
@pytest.mark.parametrize(("x", "y", "options"), _SHAPES)
def test_scales_of_columns(
    type_: T, x: tuple[int, ...], y: tuple[int, ...], options: dict[str, bool], device: Any
) -> None:
    case = _case(type_, x, y, **options)
    wanted = _by_litert(case)
    assert len(np.unique(wanted)) > 1
    np.testing.assert_array_equal(_run(content(case), devices.delegates(device), case.feeds[0]), wanted)


@devices.on_each_and_the_cpu
@pytest.mark.parametrize("type_", [T.INT8, T.INT16])
def test_scales_of_rows_are_refused(type_: T, device: Any) -> None:
    """Sums of products whose factors differ cannot be rescaled."""
    case = _case(type_, (5, 16), (16, 16))
    how = case.quantization[1]
    assert how is not None
    case = replace(case, quantization={**case.quantization, 1: replace(how, quantized_dimension=0)})
    with pytest.raises(UnsupportedOp, match="scales along dimension 0, expected 1"):
        _run(content(case), devices.delegates(device), case.feeds[0])


@devices.on_each
@pytest.mark.parametrize("name", ["k", "q"])
def test_files_of_einsums(name: str, device: Any) -> None:
    file = SHARED / f"faults/static_w8_a16_quantized_{name}_einsum.tflite"
    if not file.is_file():
        pytest.skip(f"{file} is not beside this checkout")
    feed = np.random.default_rng(3).integers(-(1 << 15), 1 << 15, (8, 100, 128)).astype(np.int16)
    wanted = _run(str(file), [], feed)
    assert len(np.unique(wanted)) > 100
    np.testing.assert_array_equal(_run(str(file), [CLDelegate(device, num_threads=2)], feed), wanted)
