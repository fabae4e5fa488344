"""What LiteRT cannot answer for an operator: errors, results without elements, and where it strays from TensorFlow."""

from typing import Any

import numpy as np
import pytest

from litecl.cases.values import i32, scalar
from litecl.interpreter.errors import LiteclError, ModelError, ShapeError, UnsupportedOp
from litecl.interpreter.graph import Array, Quantization, Shape, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import BUILTINS, binary
from litecl.interpreter.ops.arg_max import ArgMaxOptions
from litecl.interpreter.ops.concatenation import ConcatenationOptions
from litecl.interpreter.ops.gather import GatherOptions
from litecl.interpreter.ops.pack import PackOptions, UnpackOptions
from litecl.interpreter.ops.pad import MirrorPadOptions
from litecl.interpreter.ops.quantize import FAKE_QUANT, FakeQuantOptions
from litecl.interpreter.ops.reduce import ReducerOptions
from litecl.interpreter.ops.reshape import ReshapeOptions, SqueezeOptions
from litecl.interpreter.ops.space_to_depth import SpaceToDepthOptions
from litecl.interpreter.ops.split import SplitOptions, SplitVOptions
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.schema import TensorType

_NONE = NoOptions()
_X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def _spec(value: Array) -> TensorSpec:
    return TensorSpec(TensorType.of(value.dtype), value.shape, data=value)


def _evaluate(op: Op, options: Any, *inputs: Array) -> list[Array]:
    specs = op.infer(options, [_spec(x) for x in inputs])
    results = op.run(options, inputs)
    for spec, result in zip(specs, results, strict=True):
        assert spec.shape is None or spec.shape == result.shape
        assert spec.dtype == result.dtype
    return results


REFUSED: list[tuple[str, Any, list[Array], type[LiteclError], str]] = [
    ("ADD", binary.AddOptions(), [_X, _X[:, :2]], ShapeError, r"shapes \[2, 3, 4\], \[2, 2, 4\] do not broadcast"),
    ("ADD", binary.AddOptions(), [_X, _X.astype(np.int32)], ShapeError, "types differ: FLOAT32, INT32"),
    ("ADD", binary.AddOptions(), [_X], ShapeError, "expected 2 inputs, got 1"),
    ("SIN", _NONE, [i32(1)], ShapeError, "expected type FLOAT32, got INT32"),
    ("DIV", binary.DivOptions(), [i32(1), i32(0)], ModelError, "division by 0"),
    ("FLOOR_DIV", _NONE, [i32(1), i32(0)], ModelError, "division by 0"),
    ("FLOOR_DIV", _NONE, [_X, np.zeros(4, np.float32)], ModelError, "division by 0"),
    ("FLOOR_MOD", _NONE, [i32(1), i32(0)], ModelError, "division by 0"),
    ("POW", _NONE, [i32(2), i32(-1)], ModelError, "negative exponent"),
    ("SUM", ReducerOptions(), [_X, i32(3)], ShapeError, "axis 3 out of range for rank 3"),
    ("ARG_MAX", ArgMaxOptions(), [_X, scalar(0)], ShapeError, "expected output_type INT32 or INT64, got FLOAT32"),
    (
        "ARG_MAX",
        ArgMaxOptions(TensorType.INT32),
        [_X[:, :0], scalar(1)],
        ShapeError,
        "at least one element along axis 1",
    ),
    ("CONCATENATION", ConcatenationOptions(5), [_X, _X], ShapeError, "axis 5 out of range for rank 3"),
    ("CONCATENATION", ConcatenationOptions(0), [_X, _X[:, :2]], ShapeError, "differ beyond axis 0"),
    ("PACK", PackOptions(2, 0), [_X, _X[0]], ShapeError, "shapes differ"),
    ("UNPACK", UnpackOptions(3, 0), [_X], ShapeError, "expected 3 along axis 0"),
    ("PAD", _NONE, [_X, i32([[1, 0]])], ShapeError, r"expected paddings of shape \[3, 2\], got \[1, 2\]"),
    ("PAD", _NONE, [_X[0, 0], i32([[-1, 0]])], ShapeError, "must not be negative"),
    ("MIRROR_PAD", MirrorPadOptions(), [_X[0, 0], i32([[4, 0]])], ShapeError, "wider than a dimension of 4"),
    ("RESHAPE", ReshapeOptions(), [_X, i32(5, -1)], ShapeError, "24 elements"),
    ("RESHAPE", ReshapeOptions(), [_X, i32(-1, -1)], ShapeError, "24 elements"),
    ("SQUEEZE", SqueezeOptions((1,)), [_X], ShapeError, r"dimension 1 of shape \[2, 3, 4\] is not 1"),
    ("EXPAND_DIMS", _NONE, [_X, scalar(4)], ShapeError, "axis 4 out of range for rank 4"),
    ("SLICE", _NONE, [_X, i32(0, 0, 3), i32(1, 1, 2)], ShapeError, "not within shape"),
    ("STRIDED_SLICE", StridedSliceOptions(), [_X, i32(0), i32(1), i32(0)], ShapeError, "stride 0"),
    ("STRIDED_SLICE", StridedSliceOptions(shrink_axis_mask=1), [_X, i32(2), i32(3), i32(1)], ShapeError, "index 2"),
    ("SPLIT", SplitOptions(2), [scalar(1), _X], ShapeError, "dimension 3 does not divide into 2"),
    ("SPLIT_V", SplitVOptions(2), [_X, i32(1, 1), scalar(2)], ShapeError, "do not add up to 4"),
    ("TRANSPOSE", _NONE, [_X, i32(0, 1, 1)], ShapeError, "expected a permutation of 3 axes"),
    ("GATHER", GatherOptions(0), [_X, i32(2)], ModelError, "index 2 to 2 out of range for dimension 2"),
    ("GATHER", GatherOptions(0), [_X, i32(-1)], ModelError, "index -1 to -1 out of range"),
    ("GATHER_ND", _NONE, [_X, i32([[0, 3]])], ModelError, "out of range for dimension 3"),
    ("SCATTER_ND", _NONE, [i32([[5]]), _X[0, 0, :1], i32(4)], ModelError, "out of range for dimension 4"),
    ("TILE", _NONE, [_X, i32(1)], ShapeError, "expected 3 multiples"),
    ("BROADCAST_TO", _NONE, [_X, i32(2, 3, 5)], ShapeError, "do not broadcast"),
    ("RANGE", _NONE, [scalar(0), scalar(5), scalar(-1)], ShapeError, "delta -1 does not lead from 0 to 5"),
    ("TOPK_V2", _NONE, [_X, scalar(5)], ShapeError, "k 5 out of range for dimension 4"),
    ("SEGMENT_SUM", _NONE, [_X, i32(0, 2)], ModelError, "consecutive segment ids from 0"),
    ("SPACE_TO_DEPTH", SpaceToDepthOptions(2), [_X[None]], ShapeError, "does not divide into blocks of 2"),
    ("REVERSE_V2", _NONE, [_X, i32(3)], ShapeError, "axis 3 out of range"),
]


@pytest.mark.parametrize(("name", "options", "inputs", "error", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refuses(name: str, options: Any, inputs: list[Array], error: type[LiteclError], message: str) -> None:
    op = BUILTINS[name]
    assert isinstance(op, Op)
    with pytest.raises(error, match=message):
        _evaluate(op, options, *inputs)


@pytest.mark.parametrize("type_", [TensorType.INT8, TensorType.INT16, TensorType.UINT8])
def test_quantized_values_are_not_taken_for_integers(type_: TensorType) -> None:
    quantization = Quantization(np.float32([0.5]), np.int64([3]))
    spec = TensorSpec(type_, (4,), quantization=quantization)
    power = BUILTINS["POW"]
    with pytest.raises(UnsupportedOp, match=f"no kernel for quantized {type_.name}"):
        power.infer(_NONE, [spec, spec])


@pytest.mark.parametrize(
    ("name", "inputs", "shape"),
    [
        ("RANGE", [scalar(3), scalar(3), scalar(1)], (0,)),
        ("WHERE", [np.zeros((2, 3), np.bool_)], (0, 2)),
        ("WHERE", [np.array(False)], (0, 0)),
        ("WHERE", [np.array(True)], (1, 0)),
    ],
)
def test_results_without_elements(name: str, inputs: list[Array], shape: Shape) -> None:
    op = BUILTINS[name]
    assert isinstance(op, Op)
    (result,) = _evaluate(op, _NONE, *inputs)
    assert result.shape == shape


def test_an_ellipsis_may_stand_for_no_axis() -> None:
    # LiteRT lets it cover at least one and drops the last index; TensorFlow does not.
    options = StridedSliceOptions(ellipsis_mask=2)
    operands = (i32(1, 0, 0, 2), i32(2, 0, 2, 4), i32(1, 1, 1, 1))
    (result,) = _evaluate(STRIDED_SLICE, options, _X, *operands)
    np.testing.assert_array_equal(result, _X[1:2, ..., 0:2, 2:4])


def test_fake_quant_of_a_narrow_range() -> None:
    x = np.linspace(-2, 2, 41, dtype=np.float32)
    (result,) = _evaluate(FAKE_QUANT, FakeQuantOptions(-1.0, 1.0, 8, narrow_range=True), x)
    np.testing.assert_allclose(result, np.floor(np.clip(x.astype(np.float64), -1, 1) * 127 + 0.5) / 127, atol=1e-6)


@pytest.mark.parametrize("shrunk", [False, True])
def test_slices_at_computed_places_have_known_shapes(shrunk: bool) -> None:
    x = TensorSpec(TensorType.FLOAT32, (5, 4))
    unknown = TensorSpec(TensorType.INT32, (2,))
    if shrunk:
        options = StridedSliceOptions(begin_mask=2, end_mask=2, shrink_axis_mask=1)
        (spec,) = STRIDED_SLICE.infer(options, [x, unknown, unknown, _spec(i32(1, 1))])
        assert spec.shape == (4,)
    else:
        (spec,) = BUILTINS["SLICE"].infer(_NONE, [x, unknown, _spec(i32(1, 4))])
        assert spec.shape == (1, 4)
