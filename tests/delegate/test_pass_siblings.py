"""The pass that makes one convolution of several narrow ones of an image, for CPUs only."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

from litecl.delegate import CLDelegate
from litecl.delegate.plan.gpu.pipeline import GPU_PASSES
from litecl.delegate.plan.passes.siblings import siblings
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support.build import Graph, model, randn
from support.compare import assert_close
from support.regions import after, names
from support.variable_models import assign

_RNG = np.random.default_rng(0)
_SHAPE = (2, 7, 6, 5)
_RELU = ActivationFunctionType.RELU


def conv(g: Graph, x: int, columns: int = 8, size: int = 3, channels: int = 5, bias: bool = True, **more: Any) -> int:
    """Add a convolution of constant weights."""
    filter_ = g.const(randn(_RNG, columns, size, size, channels))
    added = g.const(randn(_RNG, columns)) if bias else None
    return g.op(
        CONV_2D, [x, filter_, added], Conv2DOptions(**{"padding": Padding.SAME, "stride_w": 1, "stride_h": 1} | more)
    )


def _two(**second: Any) -> Callable[[Graph, int], Sequence[int]]:
    return lambda g, x: [conv(g, x), conv(g, x, **second)]


def _joined(g: Graph, x: int) -> Sequence[int]:
    return [g.op(CONCATENATION, [conv(g, x, 4), conv(g, x, 4), conv(g, x, 3)], ConcatenationOptions(axis=3))]


def _sums(g: Graph, x: int) -> Sequence[int]:
    """Gates as in a ConvLSTM: sums of convolutions of two images."""
    other = g.input(_SHAPE)
    pairs = [(conv(g, x), conv(g, other)) for _ in range(4)]
    return [g.op(ADD, pair, AddOptions(fused_activation_function=_RELU)) for pair in pairs]


def _padded(g: Graph, x: int) -> Sequence[int]:
    around = g.const(np.array([(0, 0), (2, 1), (1, 3), (0, 0)], np.int32))
    y = g.op(PAD, [x, around], NoOptions())
    return [conv(g, y, padding=Padding.VALID), conv(g, y, 6, padding=Padding.VALID)]


_TOGETHER: dict[str, Callable[[Graph, int], Sequence[int]]] = {
    "two": _two(),
    "other columns": _two(columns=3),
    "one column": lambda g, x: [conv(g, x, 1), conv(g, x, 1)],
    "one has no bias": _two(bias=False),
    "none has a bias": lambda g, x: [conv(g, x, bias=False), conv(g, x, bias=False)],
    "an activation": lambda g, x: [conv(g, x, fused_activation_function=_RELU) for _ in range(3)],
    "strides": lambda g, x: [conv(g, x, stride_w=2, stride_h=3) for _ in range(2)],
    "dilation": lambda g, x: [conv(g, x, dilation_w_factor=2, dilation_h_factor=2) for _ in range(2)],
    "a large window": lambda g, x: [conv(g, x, size=5, padding=Padding.VALID) for _ in range(2)],
    "parts of a result": _joined,
    "sums": _sums,
    "padded": _padded,
    "more than are together": lambda g, x: [conv(g, x, 7) for _ in range(11)],
}


@pytest.mark.parametrize("name", _TOGETHER)
@pytest.mark.parametrize("threads", [1, 2])
def test_numbers(name: str, threads: int) -> None:
    """Results are those of LiteRT, or of the interpreter where LiteRT demands a bias; no convolution is left alone."""
    g = Graph()
    outputs = _TOGETHER[name](g, g.input(_SHAPE))
    left = names(after(PASSES, g, *outputs))
    assert "SIBLING_CONV_2D" in left
    assert "CONV_2D" not in left
    _compare(g, outputs, threads, Interpreter if "bias" in name else LiteRT)


def test_of_an_image_that_a_variable_takes() -> None:
    """It has a reader without results."""
    g = Graph()
    x = g.input(_SHAPE)
    assign(g, "image", x)
    _compare(g, [conv(g, x), conv(g, x)], 1, LiteRT)


def _compare(g: Graph, outputs: Sequence[int], threads: int, reference: Any) -> None:
    content = write(model(g.build(*outputs)))
    ours = Interpreter(model_content=content, delegates=[CLDelegate(device="native", num_threads=threads, strict=True)])
    results = []
    for runtime in (ours, reference(model_content=content)):
        runtime.allocate_tensors()
        rng = np.random.default_rng(1)
        for detail in runtime.get_input_details():
            runtime.set_tensor(detail["index"], rng.standard_normal(detail["shape"], dtype=np.float32))
        runtime.invoke()
        results.append([runtime.get_tensor(detail["index"]) for detail in runtime.get_output_details()])
    for got, expected in zip(*results, strict=True):
        assert_close(got, expected, 1e-5)


def _computed_filter(g: Graph, x: int) -> Sequence[int]:
    filter_ = g.input((8, 3, 3, 5))
    options = Conv2DOptions(Padding.SAME, 1, 1)
    return [conv(g, x), g.op(CONV_2D, [x, filter_, None], options)]


def _groups(g: Graph, x: int) -> Sequence[int]:
    image = g.input((1, 6, 6, 10))
    return [conv(g, image), conv(g, image)]


_APART: dict[str, Callable[[Graph, int], Sequence[int]]] = {
    "another stride": _two(stride_w=2),
    "another padding": _two(padding=Padding.VALID),
    "another dilation": _two(dilation_w_factor=2),
    "another activation": _two(fused_activation_function=_RELU),
    "another window": _two(size=5),
    "many columns": _two(columns=16),
    "little to multiply": lambda g, x: [conv(g, x, size=1), conv(g, x, size=1)],
    "one behind the other": lambda g, x: [conv(g, conv(g, x, 5))],
    "another image": lambda g, x: [conv(g, x), conv(g, g.input(_SHAPE))],
    "groups": _groups,
    "a filter that is computed": _computed_filter,
}


@pytest.mark.parametrize("name", _APART)
def test_apart(name: str) -> None:
    """Convolutions that differ in more than their constants stay nodes of their own."""
    g = Graph()
    outputs = _APART[name](g, g.input(_SHAPE))
    assert names(after([siblings], g, *outputs)) == ["CONV_2D", "CONV_2D"]


def test_whole() -> None:
    """The first takes the others' place, as many as have 64 columns; on a GPU nothing changes."""
    g = Graph()
    x = g.input(_SHAPE)
    outputs = [conv(g, x) for _ in range(10)]
    first, second = after([siblings], g, *outputs).nodes
    assert (first.position, first.outputs) == (0, tuple(outputs[:8]))
    assert (second.position, second.outputs) == (8, tuple(outputs[8:]))
    assert [part.position for part in first.fused] == [1, 2, 3, 4, 5, 6, 7]
    assert names(after(GPU_PASSES, g, *outputs)) == ["CONV_2D"] * 10
