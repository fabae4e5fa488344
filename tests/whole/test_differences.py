"""Where litecl and LiteRT's reference kernels compute something else: every row of docs/differences.md, on all devices.

LiteRT's side is tested too, so that a row that no longer holds fails. Loops are in test_swapped_updates.py.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case, lstm
from litecl.cases.litert_faults import IMAGE, INFINITIES, OTHERS, WEIGHTS, Difference, f32
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError, ShapeError, UnsupportedOp
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import binary
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.binary import ATAN2
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.pool_2d import MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.spectral import RFFT2D
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType
from support import compare, devices, oracle

INF = np.inf
NONE = NoOptions()


@devices.on_each_and_the_cpu
@pytest.mark.parametrize("row", [*INFINITIES, *OTHERS], ids=lambda row: row.case.name)
def test_litecl(row: Difference, device: Any) -> None:
    for got, wanted in zip(_outputs(row.case, device), row.ours, strict=True):
        compare.assert_close(got.reshape(wanted.shape), wanted, 1e-6 if wanted.dtype.kind == "f" else 0.0)


@pytest.mark.parametrize("row", [*INFINITIES, *OTHERS], ids=lambda row: row.case.name)
def test_litert(row: Difference) -> None:
    for got, wanted in zip(oracle.run(write(row.case.model()), row.case.feeds), row.theirs, strict=True):
        compare.assert_close(got.reshape(-1)[: wanted.size].reshape(wanted.shape), wanted, 1e-6)


@pytest.mark.parametrize("row", INFINITIES[:4], ids=lambda row: row.case.name)
def test_litert_by_default_keeps_infinities_too(row: Difference) -> None:
    (got,) = oracle.run(write(row.case.model()), row.case.feeds, oracle.RESOLVERS["default"])
    compare.assert_close(got, row.ours[0], 1e-6)


SMALL = f32(0.5, -0.25, 1.5, -2, 0.125, 3, -1, 0.75)
FINITE = (
    *(Case(op.name, op, op.options(), [SMALL, f32(2)]) for op in (binary.ADD, binary.SUB, binary.MUL, binary.DIV)),
    *(replace(row.case, inputs=[SMALL.reshape(IMAGE.shape), *row.case.inputs[1:]]) for row in INFINITIES[5:8]),
)
ACTIVATIONS = [(ActivationFunctionType.TANH, np.tanh), (ActivationFunctionType.SIGN_BIT, np.signbit)]


def _with(case: Case, function: ActivationFunctionType) -> Case:
    return replace(case, options=replace(case.options, fused_activation_function=function))


@devices.on_each_and_the_cpu
@pytest.mark.parametrize("function, of_numpy", ACTIVATIONS, ids=["TANH", "SIGN_BIT"])
@pytest.mark.parametrize("case", FINITE, ids=lambda case: case.op.name)
def test_activations_that_litert_leaves_out(case: Case, function: Any, of_numpy: Any, device: Any) -> None:
    (plain,) = oracle.run(write(case.model()), case.feeds)
    activated = _with(case, function)
    (theirs,) = oracle.run(write(activated.model()), case.feeds)
    np.testing.assert_array_equal(theirs, plain)
    (ours,) = _outputs(activated, device)
    compare.assert_close(ours, np.asarray(of_numpy(plain), np.float32), compare.DEVICE["float32"])


def _integers(op: Any) -> list[Case]:
    scale = Quantization(f32(0.5), np.int64([0]))
    plain = [np.int32([1, 2, 3]), np.int32([4, -5, 6])]
    quantized = Case(
        "quantized",
        op,
        op.options(),
        [value.astype(np.int8) for value in plain],
        quantization={0: scale, 1: scale},
        outputs=(TensorSpec(TensorType.INT8, None, quantization=scale),),
    )
    return [Case("INT32", op, op.options(), plain), quantized]


@devices.on_each_and_the_cpu
@pytest.mark.parametrize("function", [function for function, _ in ACTIVATIONS], ids=lambda function: function.name)
@pytest.mark.parametrize("case", [case for op in (binary.ADD, binary.MUL) for case in _integers(op)], ids=repr)
def test_activations_that_integers_do_not_have(case: Case, function: Any, device: Any) -> None:
    with pytest.raises(UnsupportedOp, match=f"{case.op.name}: no kernel for fused {function.name} of (int32|INT8)"):
        _outputs(_with(case, function), device)


def _in_blocks() -> Case:
    """8-bit weights with two scales a row; nothing but its bias is left in LiteRT."""
    rng = np.random.default_rng(8)
    by = Quantization(rng.uniform(0.01, 0.1, (3, 2)).astype(np.float32), np.zeros((3, 2), np.int64), 1, block_size=4)
    weights = rng.integers(-127, 128, (3, 8)).astype(np.int8)
    inputs = [f32(*rng.standard_normal(16)).reshape(2, 8), weights, f32(1, 2, 3)]
    return Case("blocks", FULLY_CONNECTED, FullyConnectedOptions(), inputs, WEIGHTS, quantization={1: by}, version=9)


@devices.on_each_and_the_cpu
def test_8_bit_weights_with_scales_of_blocks(device: Any) -> None:
    case = _in_blocks()
    x, weights, bias = (np.asarray(value, np.float64) for value in case.inputs)
    wanted = x @ (weights * case.quantization[1].scale.repeat(4, axis=1)).T + bias
    (theirs,) = oracle.run(write(case.model()), case.feeds)
    np.testing.assert_array_equal(theirs, np.broadcast_to(f32(1, 2, 3), (2, 3)))
    (ours,) = _outputs(case, device)
    compare.assert_close(ours, wanted.astype(np.float32), 0.01)  # rows of the input are rounded to 8 bits


@devices.on_each_and_the_cpu
@pytest.mark.parametrize("type_", [np.float32, np.int8], ids=["float", "hybrid"])
def test_rows_without_elements_are_the_bias(type_: Any, device: Any) -> None:
    """LiteRT leaves the bias out."""
    scale = Quantization(f32(0.5), np.int64([0]))
    inputs = [np.zeros((2, 0), np.float32), np.zeros((3, 0), type_), f32(1, -2, 3)]
    by = {} if type_ is np.float32 else {1: scale}
    options = FullyConnectedOptions(keep_num_dims=True)
    case = Case("no depth", FULLY_CONNECTED, options, inputs, WEIGHTS, quantization=by, version=9)
    (theirs,) = oracle.run(write(case.model()), case.feeds)
    np.testing.assert_array_equal(theirs, np.zeros((2, 3)))
    (ours,) = _outputs(case, device)
    np.testing.assert_array_equal(ours, np.broadcast_to(f32(1, -2, 3), (2, 3)))


def _windowed(op: Any, options: Any, *weights: tuple[int, ...]) -> Case:
    """A VALID window of 3 x 3 on an image of its size."""
    values = [np.ones(shape, np.float32) for shape in ((1, 3, 3, 2), *weights)]
    return Case(op.name, op, options(padding=Padding.VALID, stride_w=1, stride_h=1), values, WEIGHTS)


@devices.on_each_and_the_cpu
@pytest.mark.parametrize(
    "case",
    [
        _windowed(CONV_2D, Conv2DOptions, (4, 3, 3, 2), (4,)),
        _windowed(DEPTHWISE_CONV_2D, partial(DepthwiseConv2DOptions, depth_multiplier=2), (1, 3, 3, 4), (4,)),
        _windowed(MAX_POOL_2D, partial(Pool2DOptions, filter_width=3, filter_height=3)),
    ],
    ids=lambda case: case.op.name,
)
def test_valid_windows_larger_than_the_image(case: Case, device: Any) -> None:
    model = case.model()
    (graph,) = model.subgraphs
    smaller = replace(graph, tensors=(replace(graph.tensors[0], shape=(1, 2, 2, 2)), *graph.tensors[1:]))
    content, feed = write(replace(model, subgraphs=(smaller,))), np.ones((1, 2, 2, 2), np.float32)
    (theirs,) = oracle.run(content, [feed])
    assert theirs.shape[:3] == (1, 0, 0)
    delegates = [] if device is None else [CLDelegate(device)]
    with pytest.raises(ShapeError, match="expected at least 3 elements for the window, got 2"):
        Interpreter(content, delegates=delegates).allocate_tensors()


@devices.on_each_and_the_cpu
def test_outer_batches_of_integer_weights(device: Any) -> None:
    """From the second outer batch on LiteRT takes the scales of other rows; with one batch dimension it is right."""
    rng = np.random.default_rng(9)
    x, weights = f32(*rng.standard_normal(48)), rng.integers(-127, 128, 120).astype(np.int8)
    x *= np.exp2(np.arange(12, dtype=np.float32)).repeat(4)  # rows of unlike scales
    by = {1: Quantization(f32(0.01), np.int64([0]))}

    def case(*batches: int) -> Case:
        inputs = [x.reshape(*batches, 2, 4), weights.reshape(*batches, 4, 5)]
        options = BatchMatMulOptions()
        return Case("batches", BATCH_MATMUL, options, inputs, WEIGHTS, quantization=by, version=4)

    (right,) = oracle.run(write(case(6).model()), case(6).feeds)
    (theirs,) = oracle.run(write(case(2, 3).model()), case(2, 3).feeds)
    right = right.reshape(theirs.shape)
    np.testing.assert_array_equal(theirs[0], right[0])
    assert np.abs(theirs[1] / right[1]).max() < 0.5
    (ours,) = _outputs(case(2, 3), device)
    for got, wanted in zip(ours.reshape(-1, 5), right.reshape(-1, 5), strict=True):
        compare.assert_close(got, wanted, 0.02)  # rows of the input are rounded to 8 bits


@devices.on_each_and_the_cpu
def test_atan2_broadcasts(device: Any) -> None:
    """LiteRT reads past the smaller operand."""
    y, x = f32(1, -2, 3, -4, 0.5, 6).reshape(2, 3), f32(2, -1).reshape(2, 1)
    (ours,) = _outputs(Case("ATAN2", ATAN2, NONE, [y, x]), device)
    compare.assert_close(ours, np.arctan2(y, x), compare.DEVICE["float32"])


@devices.on_each_and_the_cpu
def test_merged_outputs_of_a_batch(device: Any) -> None:
    """LiteRT computes them apart; merged they change from run to run."""
    (apart,) = (case for case in lstm.BOTH_WAYS if case.name == "batch first")
    assert apart.inputs[0] is not None and apart.inputs[0].shape[0] == 2
    forwards, backwards = oracle.run(write(apart.model()), apart.feeds)
    (ours,) = _outputs(replace(apart, options=replace(apart.options, merge_outputs=True)), device)
    compare.assert_close(ours, np.concatenate([forwards, backwards], -1), compare.DEVICE["float32"])


def _outputs(case: Case, device: Any) -> list[Array]:
    delegates = [] if device is None else [CLDelegate(device, num_threads=1, strict=True)]
    interpreter = Interpreter(model_content=write(case.model()), delegates=delegates)
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), case.feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return [np.asarray(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


@devices.on_each_and_the_cpu
def test_spectra_of_one_column(device: Any) -> None:
    """LiteRT's reference kernel takes the real part, negated, for the imaginary one."""
    x = f32(*range(1, 13)).reshape(3, 4)
    case = Case("one column", RFFT2D, NONE, [x, np.array([1, 1], np.int32)], frozenset({1}))
    (got,) = _outputs(case, device)
    np.testing.assert_array_equal(got, np.array([[1 + 0j]], np.complex64))
    (theirs,) = oracle.run(write(case.model()), case.feeds)
    np.testing.assert_array_equal(theirs, np.array([[1 - 1j]], np.complex64))
    tall = replace(case, inputs=[np.arange(80, dtype=np.float32).reshape(5, 16, 1) % 7, np.array([16, 1], np.int32)])
    (got,) = _outputs(tall, device)
    compare.assert_close(got, np.fft.fft(tall.inputs[0], axis=1).astype(np.complex64), 1e-6)


@devices.on_each_and_the_cpu
def test_a_constant_of_zeros_is_refused_by_floor_div_on_devices_too(device: Any) -> None:
    case = Case("FLOOR_DIV", binary.FLOOR_DIV, NONE, [f32(1, 2), f32(1, 0)], frozenset({1}))
    with pytest.raises(ModelError, match="FLOOR_DIV: division by 0"):
        _outputs(case, device)
