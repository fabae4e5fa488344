"""RESIZE_BILINEAR with align_corners and half_pixel_centers, which files of older litert-torch have.

To a constant size LiteRT's default kernels align the corners; its other kernels refuse it. To a size that is computed
while the model runs all of them apply both options.
"""

from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.ops.resize import (
    RESIZE_BILINEAR,
    ResizeBilinearOptions,
    fixed_interpolation,
    interpolation,
)
from litecl.interpreter.schema import TensorType
from support import devices, oracle

_BY = Quantization(np.float32([0.5]), np.int64([0]))
_INTEGERS = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
_SIZES = (((1, 4, 5, 3), (9, 7)), ((2, 7, 6, 5), (3, 4)), ((1, 1, 4, 2), (3, 1)), ((1, 5, 4, 8), (5, 11)))
_BOTH, _ALIGNED = ResizeBilinearOptions(True, True), ResizeBilinearOptions(align_corners=True)
_DEVICES = [None, *devices.with_native()]


def _case(type_: TensorType, x: tuple[int, ...], size: tuple[int, int], options: Any, constant: bool = True) -> Case:
    info = np.iinfo(type_.dtype)
    elements = np.random.default_rng(17).integers(info.min, info.max + 1, x).astype(type_.dtype)
    inputs = [elements, np.array(size, np.int32)]
    held = frozenset({1}) if constant else frozenset()
    outputs = (TensorSpec(type_, None, quantization=_BY),)
    return Case(type_.name, RESIZE_BILINEAR, options, inputs, held, {}, {0: _BY}, outputs, version=4)


def _run(case: Case, device: Any) -> Array:
    delegates = [] if device is None else [CLDelegate(device, num_threads=1, strict=True)]
    interpreter = Interpreter(model_content=write(case.model()), delegates=delegates)
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), case.feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


@pytest.mark.parametrize("device", _DEVICES, ids=devices.named)
@pytest.mark.parametrize(("x", "size"), _SIZES)
@pytest.mark.parametrize("type_", _INTEGERS, ids=lambda type_: type_.name)
def test_integers_to_a_constant_size(type_: TensorType, x: Any, size: Any, device: Any) -> None:
    case, aligned = (_case(type_, x, size, options) for options in (_BOTH, _ALIGNED))
    got = _run(case, device)
    (wanted,) = oracle.run(write(aligned.model()), aligned.feeds)
    np.testing.assert_array_equal(got, wanted)
    if type_ == TensorType.INT16:
        return  # XNNPACK has no kernel for it
    (by_default,) = oracle.run(write(case.model()), case.feeds, oracle.RESOLVERS["default"])
    assert np.abs(got.astype(int) - by_default).max() <= 1  # XNNPACK rounds positions to 1/2048


@pytest.mark.parametrize(("x", "size"), [_SIZES[0], *_SIZES[2:]])
@pytest.mark.parametrize("type_", _INTEGERS, ids=lambda type_: type_.name)
def test_integers_to_a_size_of_the_run(type_: TensorType, x: Any, size: Any) -> None:
    case = _case(type_, x, size, _BOTH, constant=False)
    (wanted,) = oracle.run(write(case.model()), case.feeds)
    np.testing.assert_array_equal(_run(case, None), wanted)


def test_positions_stay_within_the_image() -> None:
    """With both options positions of a much smaller image would lie past the last row."""
    for positions in (interpolation, fixed_interpolation):
        lower, upper, _ = positions(_BOTH, 9, 2)
        assert (lower.tolist(), upper.tolist()) == ([3, 8], [4, 8])


@pytest.mark.parametrize("type_", _INTEGERS, ids=lambda type_: type_.name)
def test_litert_refuses_constant_sizes_without_xnnpack(type_: TensorType) -> None:
    case = _case(type_, *_SIZES[0], _BOTH)
    for kernels in ("reference", "default") if type_ == TensorType.INT16 else ("reference",):
        with pytest.raises(RuntimeError, match="align_corners must be False"):
            oracle.run(write(case.model()), case.feeds, oracle.RESOLVERS[kernels])
