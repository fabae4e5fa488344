"""Faults that are planted in the kernels and in the lowerings that run a model."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from litecl import kernels_cl
from litecl.delegate import devices
from litecl.delegate.backend import sources
from litecl.delegate.cl_op import Call, ClOp, Const, Launch, Step
from support.bisect_models import chain, integers, loop, recurrent, zoo


class Kernel(NamedTuple):
    """A kernel file, a text in it, what is put in its place, and the operators of a model that are wrong then."""

    file: str
    text: str
    wrong: str
    ops: tuple[str, ...]
    model: Callable[[], bytes] = zoo


KERNELS: dict[str, Kernel] = {
    "a sign": Kernel("softmax.cl", "last - log_of_sum", "last + log_of_sum", ("LOG_SOFTMAX",)),
    "no beta": Kernel("softmax.cl", "(LOAD(p + i) - most) * beta", "(LOAD(p + i) - most)", ("SOFTMAX",)),
    "the other bound": Kernel(
        "pool_2d.cl", "MIN(left + g.kernel_width, g.width)", "MIN(left + 2, g.width)", ("MAX_POOL_2D",)
    ),
    "a missing pad": Kernel(
        "depthwise_conv_2d.cl",
        "row % g->out_height * g->stride_y - g->pad_y",
        "row % g->out_height",
        ("DEPTHWISE_CONV_2D",),
    ),
    "two corners": Kernel("resize.cl", "((q) * up + (s) * v) * u)", "((s) * up + (q) * v) * u)", ("RESIZE_BILINEAR",)),
    "no root": Kernel("l2_normalization.cl", "sqrt(sum_lanes(squares))", "sum_lanes(squares)", ("L2_NORMALIZATION",)),
    "exclusive": Kernel("cumsum.cl", "exclusive ? before : sum", "exclusive ? sum : before", ("CUMSUM",)),
    "a large angle": Kernel("functions.h", "0.015625f", "15.625f", ("SIN",)),
    "a difference": Kernel(
        "binary.cl", "(((a) - (b)) * ((a) - (b)))", "(((a) - (b)) * ((a) + (b)))", ("SQUARED_DIFFERENCE",)
    ),
    "the position after": Kernel(
        "gather.cl",
        "within(own[k], size)",
        "within(own[k] + 1, size)",
        ("GATHER",),
    ),
    "no divisor": Kernel("reduce.cl", "#define FINISH(x) ((x) / divisor)", "#define FINISH(x) (x)", ("MEAN",)),
    "the first bias": Kernel("gemm.cl", "LOAD(bias + n0 + j * VW)", "LOAD(bias)", ("CONV_2D",)),
    "half a tile": Kernel(
        "transpose.cl", "y[j * y_step + i] = x[i * x_step + j]", "y[j * y_step + i] = x[i * x_step]", ("TRANSPOSE",)
    ),
    "the least": Kernel("topk_v2.cl", "((a) > (b) ||", "((a) < (b) ||", ("TOPK_V2",)),
    "one place late": Kernel(
        "arg_max.cl", "places = wins ? LANES + k : places;", "places = wins ? LANES + k + 1 : places;", ("ARG_MAX",)
    ),
    "a zero point": Kernel(
        "quantized_binary.cl", "((x) - s.a_zero) * ((y)", "((x) + s.a_zero) * ((y)", ("MUL",), integers
    ),
    "a state": Kernel(
        "lstm.cl", "forget * c + input", "forget * c - input", ("UNIDIRECTIONAL_SEQUENCE_LSTM",), recurrent
    ),
    "a zero point of rows": Kernel(
        "lstm.cl",
        "(int)by.zero + 128",
        "(int)by.zero + 127",
        ("UNIDIRECTIONAL_SEQUENCE_LSTM",),
        partial(recurrent, hybrid=True),
    ),
    "one iteration more": Kernel(
        "region.cl",
        "[COUNT_LOOPS + work->loop] < work->times",
        "[COUNT_LOOPS + work->loop] <= work->times",
        ("WHILE",),
        loop,
    ),
    "a product in a chain": Kernel(
        "chain.cl", "STEP(MUL, clamp_v(a * b,", "STEP(MUL, clamp_v(a * b + 1.0f,", ("NEG", "MUL"), chain
    ),
}


@contextmanager
def planted(folder: Path, fault: Kernel) -> Iterator[None]:
    """Have a copy of the kernel files, in a new folder, in which one line is wrong."""
    folder.mkdir()
    original = Path(kernels_cl.__file__).parent
    for path in original.glob("*.*"):
        (folder / path.name).write_bytes(path.read_bytes())
    content = (folder / fault.file).read_text()
    assert fault.text in content, f"{fault.file} has no {fault.text!r}"
    (folder / fault.file).write_text(content.replace(fault.text, fault.wrong))
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

    return replace(found, lower=lower, activates=None, chains=False)
