"""Element-wise operators one after another as one launch, and sigmoids that become part of what computes their input.
Against LiteRT's reference kernels."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.ops import CL_OPS
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import binary, unary
from litecl.interpreter.ops.binary import ADD, DIV, MUL, SUB, AddOptions, DivOptions, MulOptions, SubOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.gelu import GELU, GeluOptions
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU, LeakyReluOptions
from litecl.interpreter.ops.prelu import PRELU
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.unary import EXP, LOGISTIC, RELU, TANH
from litecl.interpreter.schema import ActivationFunctionType
from support import compare, devices, oracle
from support.build import Graph, model, randn

RNG = np.random.default_rng(12)
SHAPE = (2, 5, 7, 19)
Build = Callable[[Graph, int], Any]

_OPTIONS = {ADD: AddOptions, MUL: MulOptions, SUB: SubOptions, DIV: DivOptions, GELU: GeluOptions}


def apply(g: Graph, op: Op, *inputs: int | Array, **options: Any) -> int:
    tensors = [x if isinstance(x, int) else g.const(x) for x in inputs]
    return g.op(op, tensors, _OPTIONS.get(op, NoOptions)(**options))


def normal(*shape: int) -> Array:
    return randn(RNG, *shape)


def joined(g: Graph, *parts: int) -> int:
    return g.op(CONCATENATION, parts, ConcatenationOptions(axis=-1))


def launches_of(build: Build, mode: dict[str, Any], shape: Sequence[int] = SHAPE) -> int:
    """Compares a model of one input with the reference kernels; the number of its launches."""
    g = Graph()
    outputs = build(g, g.input(tuple(shape)))
    content = write(model(g.build(*np.atleast_1d(outputs).tolist())))
    interpreter = Interpreter(model_content=content, delegates=[CLDelegate(**mode)])
    interpreter.allocate_tensors()
    feed = normal(*shape)
    interpreter.set_tensor(0, feed)
    interpreter.invoke()
    without_reference = any(node.op is unary.ELU for node in g.nodes)
    resolver = oracle.RESOLVERS["optimised" if without_reference else "reference"]
    for detail, expected in zip(interpreter.get_output_details(), oracle.run(content, [feed], resolver), strict=True):
        compare.assert_close(interpreter.get_tensor(detail["index"]), expected, compare.DEVICE["float32"])
    report = interpreter.delegation_report()
    assert all(row.claimed for row in report.nodes), str(report)
    return report.partitions[0].launches


@pytest.fixture(params=["several workers", "one worker", "queued", "OpenCL", "as on a GPU"])
def mode(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """Options of the delegate."""
    if request.param == "as on a GPU":
        return devices.as_on_a_gpu(monkeypatch, tmp_path_factory.getbasetemp() / "chains")
    modes: dict[str, dict[str, Any]] = {
        "several workers": {"num_threads": 2},
        "one worker": {"num_threads": 1},
        "queued": {"queue_loops": True},
        "OpenCL": {"device": devices.tested()[0]},
    }
    return modes[request.param]


def _steps() -> dict[str, Build]:
    """Every operator that is a step, after and before another one."""
    of_one = [op for op in CL_OPS if op in vars(unary).values() and op.name in _NAMES]
    of_two = [op for op in CL_OPS if op in vars(binary).values() and op.name in _NAMES]
    steps: dict[str, Build] = {}
    for op in of_one:
        steps[op.name] = lambda g, x, op=op: apply(
            g, MUL, apply(g, op, apply(g, ADD, apply(g, unary.ABS, x), _HALF)), _HALF
        )
    for op in of_two:
        operand = np.abs(normal(*SHAPE)) + 1
        steps[op.name] = lambda g, x, op=op, c=operand: apply(g, op, apply(g, unary.NEG, x), c)
        steps[f"{op.name} reversed"] = lambda g, x, op=op, c=operand: apply(
            g, op, c, apply(g, ADD, apply(g, unary.ABS, x), _HALF)
        )
    steps["PRELU"] = lambda g, x: g.op(PRELU, [apply(g, unary.NEG, x), g.const(normal(1, 1, 19))], NoOptions())
    for approximate in (False, True):
        steps[f"GELU {approximate}"] = lambda g, x, a=approximate: apply(
            g, ADD, apply(g, GELU, apply(g, unary.NEG, x), approximate=a), _HALF
        )
    steps["LEAKY_RELU"] = lambda g, x: apply(
        g, ADD, g.op(LEAKY_RELU, [apply(g, unary.NEG, x)], LeakyReluOptions(0.3)), _HALF
    )
    return steps


_HALF = np.array(0.5, np.float32)
_NAMES = {
    *("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "ABS", "NEG", "SQUARE", "SQRT", "RSQRT"),
    *("EXP", "LOG", "RELU", "RELU6", "RELU_N1_TO_1", "TANH", "LOGISTIC", "HARD_SWISH", "ELU"),
}
_STEPS = _steps()


@pytest.mark.parametrize("build", _STEPS.values(), ids=_STEPS)
def test_steps(build: Build, mode: dict[str, Any]) -> None:
    """Each operator computes the same within a chain as alone."""
    assert launches_of(build, mode) == 1


def normalised(g: Graph, x: int) -> int:
    """A batch normalisation that no convolution took in."""
    return apply(
        g, ADD, apply(g, MUL, x, normal(19)), normal(1, 1, 1, 19), fused_activation_function=ActivationFunctionType.RELU
    )


def layer_norm_tail(g: Graph, x: int) -> int:
    """A mean and a scale for every row, then a scale and an offset for every column."""
    mean = g.op(MEAN, [x, g.const(np.array([3], np.int32))], ReducerOptions(keep_dims=True))
    centred = apply(g, MUL, apply(g, SUB, x, mean), np.abs(normal(2, 5, 7, 1)))
    return apply(g, ADD, apply(g, MUL, centred, normal(19)), normal(19))


def written_out_gelu(g: Graph, x: int) -> int:
    """0.5 x (1 + tanh(0.8 (x + 0.045 x^3)))."""
    cube = apply(g, MUL, apply(g, MUL, x, x), x)
    inner = apply(g, MUL, apply(g, ADD, apply(g, MUL, cube, np.float32([0.044715])), x), np.float32([0.7978846]))
    return apply(g, MUL, apply(g, MUL, apply(g, ADD, apply(g, TANH, inner), np.float32([1])), x), _HALF)


def wider(g: Graph, x: int) -> int:
    """An input that is smaller than the result, beside one that is not."""
    y = apply(g, MUL, normal(3, 2, 5, 7, 19), x)
    return apply(g, unary.SQRT, apply(g, unary.ABS, y))


def within_a_concatenation(g: Graph, x: int) -> int:
    """Rows of a wider tensor, read and written."""
    a = conv(g, x, 32)
    return joined(g, normalised_to(g, joined(g, a, conv(g, x, 32))), normalised_to(g, a))


def of_a_part(g: Graph, x: int) -> list[int]:
    """Return a chain of functions that can't read rows by themselves, and a chain with rows as an operand."""
    a = conv(g, x, 64)
    functions = apply(g, unary.ABS, apply(g, EXP, a))
    return [joined(g, conv(g, x, 32), a), functions, apply(g, MUL, apply(g, EXP, conv(g, x, 64)), a)]


def normalised_to(g: Graph, x: int) -> int:
    channels = g.tensors[x].static_shape[-1]
    return apply(g, RELU, apply(g, ADD, apply(g, MUL, x, normal(channels)), normal(channels)))


def conv(g: Graph, x: int, channels: int = 24, size: int = 1) -> int:
    depth = g.tensors[x].static_shape[-1]
    options = Conv2DOptions(stride_w=1, stride_h=1)
    filter_ = normal(channels, size, size, depth) * np.float32(0.3)
    return g.op(CONV_2D, [x, g.const(filter_), g.const(normal(channels))], options)


_ONE: dict[str, tuple[Build, int]] = {
    "a batch normalisation": (normalised, 1),
    "a layer norm's tail": (layer_norm_tail, 2),
    "GELU written out": (written_out_gelu, 1),
    "a wider result": (wider, 1),
    "within a concatenation": (within_a_concatenation, 4),
    "of a part": (of_a_part, 5),
    "a product with its sigmoid": (lambda g, x: apply(g, MUL, x, apply(g, LOGISTIC, x)), 1),
}


@pytest.mark.parametrize(("build", "launches"), _ONE.values(), ids=_ONE)
def test_chains(build: Build, launches: int, mode: dict[str, Any]) -> None:
    """What people write."""
    assert launches_of(build, mode) == launches


@pytest.mark.parametrize("channels", [1, 3, 64, 1500])
def test_widths(channels: int) -> None:
    """Rows shorter than a vector and longer than a block."""

    def build(g: Graph, x: int) -> int:
        return apply(g, EXP, apply(g, SUB, apply(g, MUL, x, normal(channels)), normal(4, 3, 1)))

    assert launches_of(build, {}, (4, 3, channels)) == 1


def many_operands(g: Graph, x: int) -> int:
    """More arrays than a launch takes."""
    for _ in range(7):
        x = apply(g, ADD, x, normal(*SHAPE))
    return x


def read_twice(g: Graph, x: int) -> list[int]:
    """A value that others need as well ends a chain."""
    y = apply(g, unary.NEG, apply(g, ADD, x, _HALF))
    return [y, apply(g, EXP, apply(g, ADD, y, normal(19)))]


def not_there(g: Graph, x: int) -> int:
    """An operand that is computed only after the chain's beginning."""
    doubled = apply(g, MUL, x, np.float32([2]))
    return apply(g, ADD, apply(g, unary.ABS, doubled), conv(g, x, 19))


_SEVERAL: dict[str, tuple[Build, int]] = {
    "many operands": (many_operands, 2),
    "read twice": (read_twice, 2),
    "an operand that is not there": (not_there, 2),
}


@pytest.mark.parametrize(("build", "launches"), _SEVERAL.values(), ids=_SEVERAL)
def test_several_launches(build: Build, launches: int, mode: dict[str, Any]) -> None:
    """What no one launch may compute."""
    assert launches_of(build, mode) == launches


def swish(g: Graph, x: int, **options: Any) -> int:
    return apply(g, MUL, x, apply(g, LOGISTIC, x), **options)


def depthwise(g: Graph, x: int) -> int:
    options = DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1)
    return g.op(DEPTHWISE_CONV_2D, [x, g.const(normal(1, 3, 3, 19)), g.const(normal(19))], options)


def dense(g: Graph, x: int) -> int:
    options = FullyConnectedOptions(keep_num_dims=True)
    return g.op(FULLY_CONNECTED, [x, g.const(normal(33, 19)), None], options)


_SWISH: dict[str, tuple[Build, int]] = {
    "1x1 convolution": (lambda g, x: swish(g, conv(g, x)), 1),
    "3x3 convolution": (lambda g, x: swish(g, conv(g, x, 8, 3)), 1),
    "depthwise convolution": (lambda g, x: swish(g, depthwise(g, x)), 1),
    "dense": (lambda g, x: swish(g, dense(g, x)), 1),
    "sum": (lambda g, x: swish(g, apply(g, ADD, conv(g, x, 19), x)), 1),
    "read again": (lambda g, x: [swish(g, y := conv(g, x)), apply(g, EXP, y)], 3),
    "clamped": (lambda g, x: swish(g, conv(g, x), fused_activation_function=ActivationFunctionType.RELU6), 2),
    "the sigmoid read again": (
        lambda g, x: [apply(g, MUL, y := conv(g, x), s := apply(g, LOGISTIC, y)), apply(g, EXP, s)],
        4,
    ),
}


@pytest.mark.parametrize(("build", "launches"), _SWISH.values(), ids=_SWISH)
def test_swish(build: Build, launches: int, mode: dict[str, Any]) -> None:
    """x * sigmoid(x) is an activation, where nothing else needs either."""
    assert launches_of(build, mode) == launches
