"""Models that join and cut tensors."""

from typing import Any

import numpy as np

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.pool_2d import Pool2DOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.split import SPLIT, SplitOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support import compare, oracle
from support.build import Graph, randn

RNG = np.random.default_rng(8)
RELU = ActivationFunctionType.RELU


def conv(g: Graph, x: int, channels: int, size: int = 1, stride: int = 1) -> int:
    depth = g.tensors[x].static_shape[-1]
    filter_ = g.const(randn(RNG, channels, size, size, depth, scale=depth**-0.5 / size))
    options = Conv2DOptions(stride_w=stride, stride_h=stride, fused_activation_function=RELU)
    return g.op(CONV_2D, [x, filter_, g.const(randn(RNG, channels))], options)


def joined(g: Graph, *parts: int, axis: int = -1) -> int:
    return g.op(CONCATENATION, parts, ConcatenationOptions(axis=axis))


def pooled(g: Graph, op: Any, x: int, size: int = 2, stride: int = 2) -> int:
    options = Pool2DOptions(
        padding=Padding.SAME, stride_w=stride, stride_h=stride, filter_width=size, filter_height=size
    )
    return g.op(op, [x], options)


def scaled(g: Graph, x: int) -> int:
    channels = g.tensors[x].static_shape[-1]
    return g.op(
        ADD,
        [g.op(MUL, [x, g.const(randn(RNG, channels))], MulOptions()), g.const(randn(RNG, channels))],
        AddOptions(RELU),
    )


def integers(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def reshaped(g: Graph, x: int, *shape: int) -> int:
    return g.op(RESHAPE, [x, g.const(integers(*shape))], ReshapeOptions(shape))


def cut(g: Graph, x: int, axis: int, pieces: int) -> list[int]:
    specs = SPLIT.infer(SplitOptions(pieces), [g.tensors[a := g.const(np.int32(axis))], g.tensors[x]])
    return g.node(SPLIT, [a, x], specs, SplitOptions(pieces))


def agrees(model_: Model, **options: Any) -> Interpreter:
    """Run a model on the device twice, with different inputs, and compare with the reference kernels."""
    content = write(model_)
    interpreter = Interpreter(model_content=content, delegates=[CLDelegate(**options)])
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()
    for _ in range(2):
        feeds = [randn(RNG, *detail["shape"]) for detail in details]
        for detail, feed in zip(details, feeds, strict=True):
            interpreter.set_tensor(detail["index"], feed)
        interpreter.invoke()
        for detail, expected in zip(interpreter.get_output_details(), oracle.run(content, feeds), strict=True):
            got = interpreter.get_tensor(detail["index"])
            compare.assert_close(got, expected, compare.DEVICE.get(expected.dtype.name, 0.0))
    report = interpreter.delegation_report()
    assert all(row.claimed for row in report.nodes), str(report)
    return interpreter
