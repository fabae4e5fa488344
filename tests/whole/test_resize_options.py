"""RESIZE_BILINEAR with align_corners and half_pixel_centers, which files of older litert-torch have.

To a constant size LiteRT's default kernels align the corners; its other kernels refuse it. To a size that nodes
compute, even from constants, all of them apply both options.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Node, Quantization, TensorSpec
from litecl.interpreter.ops.binary import ADD, AddOptions
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


def _case(type_: TensorType, x: tuple[int, ...], size: tuple[int, int], options: Any, constant: bool = True) -> Case:
    rng = np.random.default_rng(17)
    if type_ == TensorType.FLOAT32:
        inputs: list[Array | None] = [rng.standard_normal(x).astype(np.float32), np.array(size, np.int32)]
        return Case(type_.name, RESIZE_BILINEAR, options, inputs, frozenset({1}), version=4)
    info = np.iinfo(type_.dtype)
    elements = rng.integers(info.min, info.max + 1, x).astype(type_.dtype)
    inputs = [elements, np.array(size, np.int32)]
    held = frozenset({1}) if constant else frozenset()
    outputs = (TensorSpec(type_, None, quantization=_BY),)
    return Case(type_.name, RESIZE_BILINEAR, options, inputs, held, {}, {0: _BY}, outputs, version=4)


def _run(case: Case, device: Any) -> Array:
    return _run_file(write(case.model()), case.feeds, device)


def _run_file(content: bytes, feeds: Sequence[Array], device: Any) -> Array:
    delegates = [] if device is None else [CLDelegate(device, num_threads=1, strict=True)]
    interpreter = Interpreter(model_content=content, delegates=delegates)
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


@devices.on_each_and_the_cpu
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


@devices.on_each_and_the_cpu
@pytest.mark.parametrize("type_", [TensorType.FLOAT32, *_INTEGERS], ids=lambda type_: type_.name)
def test_a_size_that_is_computed_from_constants(type_: TensorType, device: Any) -> None:
    """LiteRT computes it while the model runs, and applies both options; litecl knows it before."""
    case = _case(type_, *_SIZES[0], _BOTH)
    (graph,) = case.model().subgraphs
    (node,) = graph.nodes
    size, last = graph.tensors[node.inputs[1]], len(graph.tensors)
    tensors = (
        *(replace(tensor, data=None) if i == node.inputs[1] else tensor for i, tensor in enumerate(graph.tensors)),
        replace(size, name="less", data=np.array(size.data) - 1),
        replace(size, name="one", data=np.array([1, 1], np.int32)),
    )
    tensors = tuple(replace(t, shape=()) if i == node.outputs[0] else t for i, t in enumerate(tensors))
    sum_ = Node(ADD, (last, last + 1), (node.inputs[1],), AddOptions())
    content = write(Model((replace(graph, tensors=tensors, nodes=(sum_, node)),)))
    (wanted,) = oracle.run(content, case.feeds)
    (aligned,) = oracle.run(write(_case(type_, *_SIZES[0], _ALIGNED).model()), case.feeds)
    assert not np.allclose(wanted, aligned)
    tolerance = 1e-6 if type_ == TensorType.FLOAT32 else 0
    np.testing.assert_allclose(_run_file(content, case.feeds, device), wanted, rtol=tolerance, atol=tolerance)


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
