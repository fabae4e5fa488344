"""How shapes that fill few lanes of a vector are lowered, without a device."""

from typing import Any

import numpy as np
import pytest

from litecl.delegate.cl_op import Launch, Operand, Target
from litecl.delegate.cpu.lines import lines_of
from litecl.delegate.kit.loops import LoopNest, loop_nest, periodic
from litecl.delegate.kit.strided import copy, view
from litecl.delegate.matmul.geometry import Geometry, abreast
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.schema import Padding, TensorType
from support.lowerings import CPU, GPU, convolution, floats, node


def kernels(op: Op, options: Any, inputs: list[TensorSpec], target: Target = CPU) -> list[str]:
    record, call = node(op, options, inputs, target)
    return [step.kernel for step in record.steps(call) if isinstance(step, Launch)]


def window(**fields: int) -> Geometry:
    plain = {"images": 1, "height": 1, "width": 1, "channels": 4, "group_channels": 4, "columns": 8, "group_columns": 8}
    return Geometry(**plain | {"out_height": 1, "out_width": 1} | fields)


def test_a_column_of_pixels_is_a_row() -> None:
    column = window(height=20, kernel_height=5, stride_y=2, dilation_y=3, pad_y=1, out_height=7, stride_x=9)
    row = window(width=20, kernel_width=5, stride_x=2, dilation_x=3, pad_x=1, out_width=7)
    assert column.lying == row and row.lying == row
    padded = window(height=20, kernel_height=5, pad_x=1, out_height=7, out_width=2)
    assert padded.lying == padded


@pytest.mark.parametrize(
    ("changes", "by_lines"),
    [
        ({}, True),
        ({"dilation_x": 2}, False),
        ({"out_width": 3}, False),
        ({"out_width": 10}, True),
        ({"out_width": 10, "channels": 32}, False),
        ({"channels": 1 << 14}, False),
    ],
    ids=["plain", "taps apart", "tiles left empty", "partly", "partly, deep", "lines that do not stay cached"],
)
def test_convolutions_by_lines(changes: dict[str, int], by_lines: bool) -> None:
    plain = {"height": 30, "width": 30, "kernel_height": 3, "kernel_width": 3, "out_height": 28, "out_width": 28}
    assert (lines_of(window(**plain | changes), CPU) is not None) == by_lines


@pytest.mark.parametrize(
    ("changes", "block"),
    [({}, 28), ({"dilation_y": 2}, 1), ({"height": 300}, 1), ({"stride_y": 3, "out_height": 9}, 9)],
    ids=["small", "rows apart", "large", "stride"],
)
def test_the_input_of_several_lines_is_copied_at_once(changes: dict[str, int], block: int) -> None:
    """That of all lines that a work-item computes, unless the image exceeds the memory for copies."""
    shape = {"height": 30, "width": 30, "kernel_height": 3, "kernel_width": 3, "out_height": 28, "out_width": 28}
    lines = lines_of(window(**shape | changes), CPU)
    assert lines is not None and lines.block(28, 4096) == block
    assert lines.item_floats(block) <= 4096


def test_a_gpu_has_no_lines() -> None:
    for target, kernel in ((CPU, "conv_lines"), (GPU, "conv_2d")):
        record, call = convolution((1, 28, 28, 3), (8, 3, 3, 3), 1, target)
        assert [step.kernel for step in record.steps(call) if isinstance(step, Launch)] == [kernel]


@pytest.mark.parametrize(
    ("shape", "turn", "kernel"),
    [
        ((1, 3, 32, 32), (0, 2, 3, 1), "interleave"),
        ((2, 32, 32, 7), (0, 3, 1, 2), "interleave"),
        ((1, 8, 32, 32), (0, 2, 3, 1), "transpose"),
        ((1, 3, 2, 4), (0, 2, 3, 1), "copy"),
        ((3, 32, 32, 2), (3, 0, 1, 2), "interleave"),
        ((3, 4, 32, 2), (0, 3, 2, 1), "copy"),
    ],
)
def test_images_of_few_channels_are_interleaved(shape: tuple[int, ...], turn: tuple[int, ...], kernel: str) -> None:
    """As their pixels lie side by side in one view; on a GPU, work-items copy elements."""
    turned = view(shape).transpose(turn)
    memory, result = (Operand(TensorSpec(TensorType.FLOAT32, s)) for s in (shape, turned.shape))
    cpu, gpu = (copy(memory, turned, result, view(turned.shape), "int", target) for target in (CPU, GPU))
    assert cpu.kernel == kernel
    assert gpu.kernel != "interleave"


@pytest.mark.parametrize(("columns", "pixels"), [(1, 16), (2, 8), (3, 4), (8, 2), (9, 1), (16, 1)])
def test_pixels_abreast_fill_a_vector(columns: int, pixels: int) -> None:
    shape = {"height": 32, "width": 32, "out_height": 32, "out_width": 32}
    assert abreast(window(**shape, columns=columns, group_columns=columns), CPU) == pixels
    assert abreast(window(**shape, columns=columns, group_columns=columns), GPU) == 1


def test_phases_of_few_columns_are_one_convolution() -> None:
    def lowered(columns: int) -> list[str]:
        shape = TensorSpec(TensorType.INT32, (4,), data=np.array([1, 16, 20, columns], np.int32))
        inputs = [shape, floats(columns, 2, 2, 8, known=True), floats(1, 8, 10, 8)]
        return kernels(TRANSPOSE_CONV, TransposeConvOptions(Padding.SAME, 2, 2), inputs)

    assert lowered(1) == ["gemm", "copy"]
    assert lowered(8) == ["conv_2d"] * 4


@pytest.mark.parametrize(
    ("depth", "units", "kernel"), [(1568, 32, "fully_connected"), (128, 128, "gemm"), (8, 3, "gemm")]
)
def test_deep_rows_with_few_columns_are_dots(depth: int, units: int, kernel: str) -> None:
    assert kernels(FULLY_CONNECTED, FullyConnectedOptions(), [floats(1, depth), floats(units, depth, known=True)]) == [
        kernel
    ]


def test_rows_in_which_an_operand_repeats_are_joined() -> None:
    def nest(*shapes: tuple[int, ...]) -> LoopNest:
        return loop_nest(*(np.broadcast_to(view(shape), (3, 32, 2)) for shape in shapes))

    joined = periodic(nest((3, 32, 2), (3, 1, 2)), CPU)
    assert (joined.row, joined.steps, joined.dims) == (64, (1, -2), (3,))
    for apart in (nest((3, 32, 2), (3, 32, 1)), loop_nest(view((5, 3)), np.broadcast_to(view((3,)), (5, 3)))):
        assert periodic(apart, CPU) == apart
    assert periodic(nest((3, 32, 2), (3, 1, 2)), GPU) == nest((3, 32, 2), (3, 1, 2))


@pytest.mark.parametrize(("last", "bits"), [(2, "long"), (3, "int"), (1, "int")])
def test_short_rows_that_stay_together_are_single_elements(last: int, bits: str) -> None:
    _, call = convolution((1, 4, 4, 4), (4, 1, 1, 4), 1, CPU)
    at = view((40, 50, last)).swapaxes(0, 1)[1:]
    launch = copy(call.input(0), at, call.outputs[0], view(at.shape), "int", CPU)
    assert launch.defines["T"] == bits


def test_few_elements_are_not_widened() -> None:
    _, call = convolution((1, 4, 4, 4), (4, 1, 1, 4), 1, CPU)
    at = view((4, 5, 2)).swapaxes(0, 1)
    assert copy(call.input(0), at, call.outputs[0], view(at.shape), "int", CPU).defines["T"] == "int"
