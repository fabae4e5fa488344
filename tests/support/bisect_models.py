"""A model of many operators, and faults that are planted in the kernels and in the lowerings that run it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl import kernels_cl
from litecl.delegate import devices
from litecl.delegate.backend import sources
from litecl.delegate.cl_op import Call, ClOp, Const, Launch, Step
from litecl.interpreter.file.writer import write
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.arg_max import ARG_MAX, ArgMaxOptions
from litecl.interpreter.ops.binary import MAXIMUM, MUL, SQUARED_DIFFERENCE, SUB, MulOptions, SubOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.cumsum import CUMSUM, CumsumOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION, L2NormOptions
from litecl.interpreter.ops.log_softmax import LOG_SOFTMAX
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.resize import RESIZE_BILINEAR, ResizeBilinearOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.topk_v2 import TOPK_V2
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.ops.unary import LOGISTIC, SIN
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType
from support.build import Graph, model, randn


def zoo() -> bytes:
    """A model in which an image goes through twenty operators, of which no two neighbours are one kernel."""
    rng, g, one = np.random.default_rng(71), Graph(), {"stride_w": 1, "stride_h": 1}
    window = {"filter_width": 3, "filter_height": 3, **one}
    relu = ActivationFunctionType.RELU
    x = g.input((1, 9, 9, 20))
    x = g.op(
        CONV_2D,
        [x, g.const(randn(rng, 24, 3, 3, 20, scale=0.1)), g.const(randn(rng, 24))],
        Conv2DOptions(**one, fused_activation_function=relu),
    )
    x = g.op(MAX_POOL_2D, [x], Pool2DOptions(Padding.SAME, **window))
    x = g.op(
        DEPTHWISE_CONV_2D,
        [x, g.const(randn(rng, 1, 3, 3, 24)), g.const(randn(rng, 24))],
        DepthwiseConv2DOptions(**one, depth_multiplier=1),
    )
    x = g.op(SIN, [x], NoOptions())
    x = g.op(RESIZE_BILINEAR, [x, g.const(np.array([7, 11], np.int32))], ResizeBilinearOptions())
    x = g.op(AVERAGE_POOL_2D, [x], Pool2DOptions(Padding.SAME, **window))
    x = g.op(CONV_2D, [x, g.const(randn(rng, 30, 1, 1, 24)), g.const(randn(rng, 30))], Conv2DOptions(**one))
    x = g.op(L2_NORMALIZATION, [x], L2NormOptions())
    x = g.op(CUMSUM, [x, g.const(np.int32(2))], CumsumOptions())
    x = g.op(TRANSPOSE, [x, g.const(np.array([0, 3, 1, 2], np.int32))], NoOptions())
    x = g.op(SQUARED_DIFFERENCE, [x, g.const(randn(rng, 11))], NoOptions())
    x = g.op(GATHER, [x, g.const(np.array([4, 0, 6, 2], np.int32))], GatherOptions(axis=2))
    x = g.op(MEAN, [x, g.const(np.array([3], np.int32))], ReducerOptions())
    x = g.op(LOG_SOFTMAX, [x], NoOptions())
    x = g.op(MAXIMUM, [x, g.const(randn(rng, 1, 30, 1, scale=2.0))], NoOptions())
    x = g.op(FULLY_CONNECTED, [x, g.const(randn(rng, 50, 120, scale=0.02)), None], FullyConnectedOptions())
    x = g.op(SOFTMAX, [x], SoftmaxOptions(beta=0.5))
    values, places = g.node(TOPK_V2, [x, g.const(np.int32(5))], TOPK_V2.infer(None, [g.tensors[x], _k()]), NoOptions())
    most = g.op(ARG_MAX, [x, g.const(np.int32(1))], ArgMaxOptions(TensorType.INT32))
    return write(model(g.build(values, places, most)))


def doubling(steps: int) -> bytes:
    """A model of x = 4 x (1 - x), again and again: each step doubles an error, on average."""
    g = Graph()
    x = g.op(LOGISTIC, [g.input((1, 64))], NoOptions())
    four, one = g.const(np.float32(4)), g.const(np.float32(1))
    for _ in range(steps):
        rest = g.op(SUB, [one, x], SubOptions())
        x = g.op(MUL, [g.op(MUL, [x, four], MulOptions()), rest], MulOptions())
    return write(model(g.build(x)))


def _k() -> Any:
    g = Graph()
    return g.tensors[g.const(np.int32(5))]


KERNELS: dict[str, tuple[str, str, str, str]] = {
    "a sign": ("softmax.cl", "last - log_of_sum", "last + log_of_sum", "LOG_SOFTMAX"),
    "no beta": ("softmax.cl", "(LOAD(p + i) - most) * beta", "(LOAD(p + i) - most)", "SOFTMAX"),
    "the last part": ("softmax.cl", "sum_lanes(sum + last)", "sum_lanes(sum)", "SOFTMAX"),
    "a whole window": ("pool_2d.cl", "(float)(padded ? whole : inside)", "(float)whole", "AVERAGE_POOL_2D"),
    "the other bound": ("pool_2d.cl", "MIN(left + g.kernel_width, g.width)", "MIN(left + 2, g.width)", "MAX_POOL_2D"),
    "a missing pad": (
        "depthwise_conv_2d.cl",
        "row % g->out_height * g->stride_y - g->pad_y",
        "row % g->out_height",
        "DEPTHWISE_CONV_2D",
    ),
    "the wrong tap": (
        "depthwise_conv_2d.cl",
        "taps[r][i - t * STRIDE_X]",
        "taps[r][0]",
        "DEPTHWISE_CONV_2D",
    ),
    "two corners": ("resize.cl", "((q) * up + (s) * v) * u)", "((s) * up + (q) * v) * u)", "RESIZE_BILINEAR"),
    "no root": ("l2_normalization.cl", "sqrt(sum_lanes(squares))", "sum_lanes(squares)", "L2_NORMALIZATION"),
    "exclusive": ("cumsum.cl", "exclusive ? before : sum", "exclusive ? sum : before", "CUMSUM"),
    "a large angle": ("functions.h", "0.015625f", "15.625f", "SIN"),
    "the wrong cosine": ("functions.h", ": sin(x))", ": cos(x))", "SIN"),
    "a difference": ("binary.cl", "(((a) - (b)) * ((a) - (b)))", "(((a) - (b)) * ((a) + (b)))", "SQUARED_DIFFERENCE"),
    "the position after": (
        "gather.cl",
        "within(positions[line / outer * count + k], size)",
        "within(positions[line / outer * count + k] + 1, size)",
        "GATHER",
    ),
    "no divisor": ("reduce.cl", "#define FINISH(x) ((x) / divisor)", "#define FINISH(x) (x)", "MEAN"),
    "the first bias": ("gemm.cl", "LOAD(bias + n0 + j * VW)", "LOAD(bias + n0)", "CONV_2D"),
    "no bias": ("depthwise_conv_2d.cl", "start = LOAD(bias + c0)", "start = (floatv)(0.0f)", "DEPTHWISE_CONV_2D"),
    "half a tile": (
        "transpose.cl",
        "y[j * y_step + i] = x[i * x_step + j]",
        "y[j * y_step + i] = x[i * x_step]",
        "TRANSPOSE",
    ),
    "the least": ("topk_v2.cl", "((a) > (b) ||", "((a) < (b) ||", "TOPK_V2"),
    "one place late": (
        "arg_max.cl",
        "places = wins ? LANES + k : places;",
        "places = wins ? LANES + k + 1 : places;",
        "ARG_MAX",
    ),
}
"""A kernel file, a text in it, what is put in its place, and the operator that is wrong then."""


@contextmanager
def planted(folder: Path, file: str, text: str, wrong: str) -> Iterator[None]:
    """Have a copy of the kernel files in which one line is wrong."""
    original = Path(kernels_cl.__file__).parent
    for path in original.glob("*.*"):
        (folder / path.name).write_bytes(path.read_bytes())
    content = (folder / file).read_text()
    assert content.count(text) >= 1, f"{file} has no {text!r}"
    (folder / file).write_text(content.replace(text, wrong))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "_KERNELS", folder)
        patch.setattr(devices, "_DEVICES", {})
        sources._own.cache_clear()
        try:
            yield
        finally:
            sources._own.cache_clear()


Change = Callable[[Launch], Launch]


def scalar(position: int, change: Callable[[Any], Any]) -> Change:
    """Change a number that a launch gets as an argument, of all such by its position."""

    def changed(launch: Launch) -> Launch:
        args, numbers = list(launch.args), [i for i, arg in enumerate(launch.args) if isinstance(arg, np.generic)]
        at = numbers[position]
        args[at] = type(args[at])(change(args[at]))
        return replace(launch, args=tuple(args))

    return changed


def constant(position: int, change: Callable[[Any], Any]) -> Change:
    """Change a constant that a launch reads."""

    def changed(launch: Launch) -> Launch:
        args, constants = list(launch.args), [i for i, arg in enumerate(launch.args) if isinstance(arg, Const)]
        at = constants[position]
        args[at] = Const(np.ascontiguousarray(change(args[at].data)))
        return replace(launch, args=tuple(args))

    return changed


def macro(name: str, value: Any) -> Change:
    """Give a kernel another macro."""
    return lambda launch: replace(launch, defines={**launch.defines, name: value})


LOWERINGS: dict[str, tuple[str, str, Change]] = {
    "twice beta": ("softmax", "SOFTMAX", scalar(3, lambda beta: 2 * beta)),
    "no last column": ("softmax", "LOG_SOFTMAX", scalar(2, lambda length: length - 1)),
    "a lower bound": ("softmax", "L2_NORMALIZATION", scalar(-1, lambda high: 0.1)),
    "another longest": ("softmax", "L2_NORMALIZATION", scalar(3, lambda shortest: 1e3)),
    "exclusive": ("arg_max", "CUMSUM", scalar(-1, lambda exclusive: 1 - exclusive)),
    "no last element": ("arg_max", "CUMSUM", scalar(2, lambda length: length - 1)),
    "shorter rows": ("arg_max", "ARG_MAX", scalar(2, lambda length: 3)),
    "fewer candidates": ("topk_v2", "TOPK_V2", scalar(2, lambda length: 7)),
    "no activation": ("conv_2d", "CONV_2D", scalar(-2, lambda low: -1e9)),
    "no bias": ("conv_2d", "CONV_2D", constant(1, np.zeros_like)),
    "a floor": ("depthwise_conv_2d", "DEPTHWISE_CONV_2D", scalar(-2, lambda low: 0.3)),
    "a cap": ("depthwise_conv_2d", "DEPTHWISE_CONV_2D", scalar(-1, lambda high: 0.2)),
    "an average": ("pool_2d", "MAX_POOL_2D", macro("OP", "AVERAGE")),
    "a maximum": ("pool_2d", "AVERAGE_POOL_2D", macro("OP", "MAXIMUM")),
    "a cosine": ("unary", "SIN", macro("OP", "COS")),
    "a product": ("binary", "SQUARED_DIFFERENCE", macro("OP", "MUL")),
    "a minimum": ("binary", "MAXIMUM", macro("OP", "MINIMUM")),
    "half the divisor": ("reduce", "MEAN", scalar(-1, lambda divisor: divisor / 2)),
    "a smaller table": ("gather", "GATHER", scalar(3, lambda size: 3)),
    "halves": ("fully_connected", "FULLY_CONNECTED", constant(0, lambda weights: weights / 2)),
}
"""A module of lowerings, an operator of it, and what is changed in its launches."""


def mislowered(module: str, op: str, change: Change) -> ClOp:
    """A device operator whose launches are changed."""
    found = next(o for o in import_module(f"litecl.delegate.ops.{module}").CL_OPS if o.op.name == op)

    def lower(call: Call) -> list[Step]:
        return [change(step) if isinstance(step, Launch) and step.args else step for step in found.steps(call)]

    return replace(found, cpu=lower, gpu=lower, activates=None, chains=False)
