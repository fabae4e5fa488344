"""The pass that makes one convolution of several narrow ones of an image, for CPUs only."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

from litecl.delegate import CLDelegate, disk
from litecl.delegate.cl_op import Call, Launch, Move, Operand
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.gpu.pipeline import GPU_PASSES
from litecl.delegate.kit.strided import is_dense
from litecl.delegate.native import compiler, probe
from litecl.delegate.plan.passes.siblings import siblings
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import ABSENT
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.ops.unary import LOGISTIC, TANH
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


def _sums(columns: int = 8, count: int = 4, activation: Any = _RELU, **second: Any) -> Callable[..., Sequence[int]]:
    """Return what adds gates as in a ConvLSTM: sums of convolutions of two images, in either order."""

    def build(g: Graph, x: int) -> Sequence[int]:
        other = g.input(_SHAPE)
        pairs = [(conv(g, x, columns), conv(g, other, columns, **second)) for _ in range(count)]
        options = AddOptions(fused_activation_function=activation)
        return [g.op(ADD, pair[:: 1 if i % 2 else -1], options) for i, pair in enumerate(pairs)]

    return build


def _read_twice(g: Graph, x: int) -> Sequence[int]:
    """One of the convolutions is a result too."""
    other = g.input(_SHAPE)
    pairs = [(conv(g, x), conv(g, other)) for _ in range(2)]
    return [*(g.op(ADD, pair, AddOptions()) for pair in pairs), pairs[0][1]]


def _crossed(g: Graph, x: int) -> Sequence[int]:
    """The sums are of other pairs than the columns of the two convolutions."""
    other = g.input(_SHAPE)
    (a, b), (c, d) = [(conv(g, x), conv(g, other)) for _ in range(2)]
    return [g.op(ADD, [a, d], AddOptions()), g.op(ADD, [c, b], AddOptions())]


def _activated_apart(g: Graph, x: int) -> Sequence[int]:
    other = g.input(_SHAPE)
    pairs = [(conv(g, x), conv(g, other)) for _ in range(2)]
    functions = ActivationFunctionType.NONE, _RELU
    options = [AddOptions(fused_activation_function=function) for function in functions]
    return [g.op(ADD, pair, chosen) for pair, chosen in zip(pairs, options, strict=True)]


def _doubled(g: Graph, x: int) -> Sequence[int]:
    """A result is added to itself, and to another of the same image."""
    a, b, c = (conv(g, x) for _ in range(3))
    return [g.op(ADD, [a, a], AddOptions()), g.op(ADD, [b, c], AddOptions())]


def _gates(g: Graph, x: int) -> Sequence[int]:
    """Return sums that later nodes read, and that aren't results themselves."""
    i, f, c, o = _sums(activation=ActivationFunctionType.NONE)(g, x)
    gates = [g.op(op, [t], NoOptions()) for op, t in ((LOGISTIC, i), (LOGISTIC, f), (TANH, c), (LOGISTIC, o))]
    kept = g.op(MUL, [gates[1], g.input((*_SHAPE[:-1], 8))], MulOptions())
    cell = g.op(ADD, [g.op(MUL, [gates[0], gates[2]], MulOptions()), kept], AddOptions())
    return [cell, g.op(MUL, [g.op(TANH, [cell], NoOptions()), gates[3]], MulOptions())]


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
    "fours": lambda g, x: [conv(g, x, 4) for _ in range(3)],
    "sums": _sums(),
    "sums of fours": _sums(4, activation=ActivationFunctionType.NONE),
    "sums of other windows": _sums(size=5),
    "sums with dilation": _sums(dilation_w_factor=2, dilation_h_factor=2),
    "sums without a bias": _sums(count=2, bias=False),
    "sums of activated": _sums(count=3, fused_activation_function=_RELU),
    "a result beside sums": _read_twice,
    "sums of other pairs": _crossed,
    "sums with activations of their own": _activated_apart,
    "sums of one image": _doubled,
    "gates": _gates,
    "padded": _padded,
    "more than are together": lambda g, x: [conv(g, x, 7) for _ in range(11)],
}


@pytest.fixture(params=["its own", "x86-64-v3", "x86-64-v2"])
def cache(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path | str]:
    """A cache whose programs are for the processor, or for one with vectors of 8 or 4 floats."""
    if request.param == "its own":
        yield "auto"
        return
    made = compiler.found()
    if made is None or not made.macros.keys() >= {"__x86_64__", "__AVX2__"}:
        pytest.skip("not a processor of that level")
    monkeypatch.setattr(probe, "_tried", lambda found: replace(found, target=(f"-march={request.param}",), known=None))
    folder = tmp_path_factory.getbasetemp() / request.param
    yield folder
    (facts,) = disk.own(folder).glob("compiler-*.json")
    assert f"-march={request.param}".encode() in facts.read_bytes()


@pytest.mark.parametrize("name", _TOGETHER)
@pytest.mark.parametrize("threads", [1, 2])
def test_numbers(name: str, threads: int, cache: Path | str) -> None:
    """Results are those of LiteRT, or of the interpreter where LiteRT demands a bias; no convolution is left alone."""
    g = Graph()
    outputs = _TOGETHER[name](g, g.input(_SHAPE))
    left = names(after(PASSES, g, *outputs))
    assert "SIBLING_CONV_2D" in left
    assert "CONV_2D" not in left
    _compare(g, outputs, threads, Interpreter if "bias" in name else LiteRT, cache)


def test_of_an_image_that_a_variable_takes() -> None:
    """It has a reader without results."""
    g = Graph()
    x = g.input(_SHAPE)
    assign(g, "image", x)
    _compare(g, [conv(g, x), conv(g, x)], 1, LiteRT)


def _compare(g: Graph, outputs: Sequence[int], threads: int, reference: Any, cache: Path | str = "auto") -> None:
    content = write(model(g.build(*outputs)))
    delegate = CLDelegate(device="native", num_threads=threads, strict=True, cache_dir=cache)
    ours = Interpreter(model_content=content, delegates=[delegate])
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


@pytest.mark.parametrize(("width", "columns", "dense"), [(8, 8, True), (4, 4, True), (16, 8, False), (8, 4, False)])
def test_where_results_are(width: int, columns: int, dense: bool) -> None:
    """Each is an image of its own, without a copy, if its columns fill a vector."""
    g = Graph()
    graph = after([siblings], g, *_sums(columns)(g, g.input(_SHAPE)))
    (node,) = graph.nodes
    inputs, outputs = (
        [None if t == ABSENT else Operand(graph.specs[t]) for t in ts] for ts in (node.inputs, node.outputs)
    )
    target = CpuTarget(vector_width=width, compute_units=1)
    assert node.cl_op is not None
    steps = node.cl_op.steps(Call(node.node.options, inputs, outputs, target, node.activation))
    launches, moves = ([step for step in steps if isinstance(step, kind)] for kind in (Launch, Move))
    assert [launch.kernel for launch in launches] == ["conv_lines"]
    assert [is_dense(move.at) for move in moves] == [dense] * 4
