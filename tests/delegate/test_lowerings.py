"""Lowerings without a device: what depends on its kind."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from litecl.delegate.cl_op import Const, Launch, Pads, Step, Target
from litecl.delegate.cpu.lines import LineConvolution
from litecl.delegate.matmul.geometry import geometry
from litecl.delegate.ops.conv_2d import Convolution
from litecl.delegate.ops.depthwise_conv_2d import Depthwise
from litecl.interpreter.graph import Shape
from litecl.interpreter.kit.window import fit
from litecl.interpreter.ops.conv_2d import Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import Padding
from litecl.perf.models.layers import Layers
from support.by_name import case_of, launches
from support.lowerings import CPU, GPU, convolution, floats, node


@pytest.mark.parametrize("padding", Padding)
def test_a_window_lies_where_the_interpreter_has_it(padding: Padding) -> None:
    """The zeros before an image, which follow from the shape of the output."""
    for length, size, stride, dilation, (before, after) in product(
        (5, 6, 9, 16), (1, 2, 3, 5), (1, 2, 3), (1, 2), ((0, 0), (1, 2))
    ):
        if padding == Padding.VALID and (size - 1) * dilation >= length + before + after:
            continue
        along = fit(padding, before + length + after, size, stride, dilation)
        down = fit(padding, 7, 3, 1)
        options = Conv2DOptions(padding, stride, 1, dilation_w_factor=dilation)
        out = (2, down.output, along.output, 4)
        g = geometry(options, (2, 7, length, 4), (3, size), 4, out, Pads(left=before, right=after))
        assert (g.pad_y, g.pad_x) == (down.before, along.before + before)


def lowered(steps: Sequence[Step]) -> list[Launch]:
    return [step for step in steps if isinstance(step, Launch)]


def convolved(x: Shape, filter_: Shape, stride: int, target: Target) -> list[Launch]:
    record, call = convolution(x, filter_, stride, target)
    return lowered(record.steps(call))


def record_of(launch: Launch, kind: type) -> Any:
    (found,) = (arg for arg in launch.args if isinstance(arg, kind))
    return found


def test_winograd_is_for_cpus() -> None:
    assert [launch.kernel for launch in convolved((1, 28, 28, 64), (64, 3, 3, 64), 1, CPU)] == ["winograd"]
    assert [launch.kernel for launch in convolved((1, 28, 28, 64), (64, 3, 3, 64), 1, GPU)] == ["conv_2d"]


@pytest.mark.parametrize("known", [True, False])
def test_one_row_by_many_weights_is_dot_products_on_a_cpu(known: bool) -> None:
    """A GPU multiplies matrices: there neighbours read weights side by side."""
    inputs = [floats(1, 1024), floats(512, 1024, known=known)]
    kernels = []
    for target in (CPU, GPU):
        record, call = node(FULLY_CONNECTED, FullyConnectedOptions(), inputs, target)
        kernels.append([launch.kernel for launch in lowered(record.steps(call))])
    assert kernels == [["fully_connected"], ["gemm"] if known else ["pack", "gemm"]]


def test_a_gpu_numbers_columns_first() -> None:
    """Neighbouring work-items take neighbouring columns; those of a CPU take rows, and several tiles of them."""
    on_cpu, on_gpu = (convolved((1, 14, 14, 64), (128, 3, 3, 64), 2, target)[0] for target in (CPU, GPU))
    share = record_of(on_gpu, Convolution)
    assert (share.item_rows, share.item_columns) == (on_gpu.defines["MR"], 4)  # one tile
    assert on_gpu.global_size[0] * share.item_columns == 128
    assert on_gpu.global_size[1] * share.item_rows >= 7 * 7
    assert on_gpu.defines["PANEL"] == 32 * 4  # as wide as a group
    spans = record_of(on_cpu, LineConvolution)
    assert on_cpu.local_size == (1, 1, 1) and on_cpu.defines["PANEL"] in (32, 48)
    assert on_cpu.global_size[0] * spans.item_spans * spans.span >= 7 * 7
    assert on_cpu.global_size[1] * spans.item_columns >= 128


def test_a_gpu_takes_few_pixels_of_a_depthwise_convolution() -> None:
    """A work-item of a CPU takes whole rows of all channels, one of a GPU a few pixels of a vector of them."""
    inputs = [floats(1, 28, 28, 96), floats(1, 3, 3, 96, known=True), floats(96, known=True)]
    options = DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1)
    shares = []
    for target in (CPU, GPU):
        record, call = node(DEPTHWISE_CONV_2D, options, inputs, target)
        (launch,) = lowered(record.steps(call))
        shares.append((launch, record_of(launch, Depthwise)))
    (_, on_cpu), (launch, on_gpu) = shares
    assert on_cpu.item_pixels == 28 and on_cpu.item_channels == 96
    assert (on_gpu.item_rows, on_gpu.item_pixels, on_gpu.item_channels) == (1, launch.defines["PIXELS"], 4)


def told(launch: Launch, name: str) -> int:
    """Return a field of a record that a launch of a plan is given."""
    (record,) = (
        arg.data for arg in launch.args if isinstance(arg, Const) and arg.data is not None and arg.data.dtype.names
    )
    for part in name.split("."):
        record = record[part]
    return int(record[0])


def planned(table: str, op: str, name: str, target: Target) -> Launch:
    return launches(case_of(table, op, name), target)[-1]


@pytest.mark.parametrize("side, ahead", [(14, [2, 0, 0]), (28, [2, 0, 0]), (56, [2, 2, 2])])
def test_an_image_that_the_node_before_computed_is_prefetched_if_it_is_large(side: int, ahead: list[int]) -> None:
    """A chain of depthwise convolutions, whose first image comes from outside: rows that each prefetches."""
    layers = Layers()
    x = layers.graph.input((1, side, side, 192))
    for _ in ahead:
        x = layers.depthwise(x, 1)
    assert [told(one, "ahead") for one in launches((layers.file(x), [np.zeros((1, side, side, 192))]), CPU)] == ahead


@pytest.mark.parametrize("type_", ["INT8", "UINT8"])
def test_pixels_of_a_line_share_what_they_read_on_a_cpu(type_: str) -> None:
    case = ("integer_device", "CONV_2D", f"{type_}, 3x3, 16 to 33")
    assert [told(planned(*case, target), "gather.lines") for target in (CPU, GPU)] == [1, 0]


def test_pixels_of_few_channels_fill_a_vector_of_a_cpu() -> None:
    case = ("integer_device", "DEPTHWISE_CONV_2D", "INT8, 3x3, 4")
    on_cpu, on_gpu = planned(*case, replace(CPU, vector_width=4)), planned(*case, GPU)
    assert on_cpu.defines["FLAT"] == 4 and "FLAT" not in on_gpu.defines
    assert planned(*case, replace(CPU, vector_width=8)).defines["FLAT"] == 2  # one channel to a lane
    assert told(on_gpu, "item_rows") == 1 < told(on_cpu, "item_rows")


@pytest.mark.parametrize(
    "case",
    [
        ("vector_width", "EXP", "131"),
        ("pool_2d", "AVERAGE_POOL_2D", "3x2, strides 1 and 2"),
        ("lstm", "UNIDIRECTIONAL_SEQUENCE_LSTM", "plain"),
        ("hybrid", "FULLY_CONNECTED", "8 bits, 9 x 64 to 130"),
    ],
)
def test_work_items_of_a_cpu_have_groups_of_their_own(case: tuple[str, str, str]) -> None:
    """Those of a GPU come in groups that fill it, and no group is larger than the device allows."""
    fed = case_of(*case)
    assert {np.prod(launch.local_size) for launch in launches(fed, CPU)} == {1}
    few = replace(GPU, max_work_group_size=16)
    assert {np.prod(launch.local_size) for launch in launches(fed, GPU)} <= {32, 64}
    assert max(np.prod(launch.local_size) for launch in launches(fed, few)) == 16
