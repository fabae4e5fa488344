"""``litecl diff`` matches nodes by structure: renamed tensors, fused and split nodes, integers, loops."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.converter import Converter, Quantization
from litecl.diff import Difference, diff_models
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import ABSENT, Model, Signature
from litecl.interpreter.graph import Quantization as Stored
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import MUL, MulOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.unary import EXP, SIN, TANH
from litecl.interpreter.schema import ActivationFunctionType
from support import networks
from support.build import Graph, model, randn
from support.fused_models import Build, gelu, made, padded, split
from support.loop_models import FLOAT, INT, below, next_, while_model

_NONE, _RELU = ActivationFunctionType.NONE, ActivationFunctionType.RELU


def _shuffled(built: Model, seed: int) -> Model:
    """The same with other names, other numbers of tensors, and nodes in another order that is valid."""
    (graph,) = built.subgraphs
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(graph.tensors))
    place = {int(t): i for i, t in enumerate(order)} | {ABSENT: ABSENT}
    tensors = tuple(replace(graph.tensors[t], name=f"t{i}") for i, t in enumerate(order))
    done = {t for t, spec in enumerate(graph.tensors) if spec.data is not None} | {*graph.inputs, ABSENT}
    rest, nodes = list(rng.permutation(len(graph.nodes))), []
    while rest:
        at = next(i for i in rest if done.issuperset(graph.nodes[i].inputs))
        rest.remove(at)
        nodes.append(graph.nodes[at].moved(place))
        done |= {*graph.nodes[at].outputs}
    ends = (tuple(place[t] for t in tensors_) for tensors_ in (graph.inputs, graph.outputs))
    return model(replace(graph, tensors=tensors, nodes=tuple(nodes), inputs=next(ends), outputs=next(ends)))


@pytest.mark.parametrize("seed", range(4))
def test_the_same_model_with_other_names_and_numbers(seed: int) -> None:
    """A network of words, whose layers are alike and whose projections are twins."""
    built = read(networks.bert(6, 1, 3, 32, 4))
    found = diff_models(built, _shuffled(built, seed))
    assert found.same_structure, found
    assert len(found.layers) == len(built.subgraphs[0].nodes)
    assert {layer.relative for layer in found.layers} == {0.0}


def test_a_node_between_others_whose_names_shift() -> None:
    """Numbered names are no guide: the node after the new one has another node's name in the first model."""

    def chain(ops: list[Any]) -> Build:
        def build(g: Graph, rng: np.random.Generator) -> int:
            x = g.input((3, 4))
            for op in ops:
                x = g.op(op, [x], NoOptions())
            return x

        return build

    a, b = (_named(made(chain(ops))) for ops in ([SIN, TANH, SIN, EXP, SIN], [SIN, TANH, EXP, SIN, EXP, SIN]))
    found = diff_models(a, b)
    assert (found.only_a, [*found.only_b.values()]) == ({}, ["EXP op2"])
    assert [(layer.a, layer.b) for layer in found.layers] == [(0, 0), (1, 1), (2, 3), (3, 4), (4, 5)]
    assert found.counts == {"EXP": (1, 2)}


def _named(built: Model) -> Model:
    """The model with results numbered in order."""
    (graph,) = built.subgraphs
    names = {node.outputs[0]: f"op{i}" for i, node in enumerate(graph.nodes)}
    tensors = (replace(spec, name=names.get(t, spec.name)) for t, spec in enumerate(graph.tensors))
    return model(replace(graph, tensors=tuple(tensors)))


def _sides(found: Difference) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [(row.ops_a, row.ops_b) for row in found.replaced]


@pytest.mark.parametrize(
    ("build", "many", "one"),
    [
        (split, ("CONV_2D", "ADD", "RELU"), ("CONV_2D",)),
        (padded, ("PAD", "CONV_2D"), ("CONV_2D",)),
        (gelu, ("MUL", "MUL", "MUL", "ADD", "MUL", "TANH", "MUL", "ADD", "MUL"), ("GELU",)),
    ],
)
def test_fused_and_split_nodes(build: Callable[[bool], Build], many: tuple[str, ...], one: tuple[str, ...]) -> None:
    """In both directions; layers compare the joint results, and no node is left over."""
    apart, whole = made(build(False)), made(build(True))
    for a, b, sides in ((apart, whole, (many, one)), (whole, apart, (one, many))):
        found = diff_models(a, b)
        assert (found.only_a, found.only_b) == ({}, {})
        assert [tuple(map(sorted, pair)) for pair in _sides(found)] == [tuple(map(sorted, sides))]
        assert not found.same_structure
        assert len(found.layers) == 3
        assert max(layer.relative for layer in found.layers) < 1e-5, found.layers
        assert found.outputs[0] < 1e-5


def test_a_node_that_is_only_left_out() -> None:
    """A node without a counterpart is not called fused."""

    def build(count: int) -> Build:
        def chain(g: Graph, rng: np.random.Generator) -> int:
            x = g.op(SIN, [g.input((3, 4))], NoOptions())
            for _ in range(count):
                x = g.op(EXP, [x], NoOptions())
            return g.op(FULLY_CONNECTED, [x, g.const(randn(rng, 5, 4)), None], FullyConnectedOptions())

        return chain

    found = diff_models(made(build(1)), made(build(0)))
    assert ([name.split()[0] for name in found.only_a.values()], found.replaced) == (["EXP"], ())
    assert found.outputs[0] > 0.1


def test_floats_against_integers() -> None:
    """A file and its conversion: types and scales differ, nodes are the same."""
    content = networks.mobilenet_v2(32)
    feed = np.random.default_rng(2).uniform(-1, 1, (4, 1, 32, 32, 3)).astype(np.float32)
    quantized = Converter.from_tflite(content, Quantization(activations="int8", data=[[x] for x in feed])).convert()
    found = diff_models(content, quantized, {"main_in0": feed[0]})
    assert found.only_a == {}
    assert {text.split()[0] for text in found.only_b.values()} <= {"QUANTIZE", "DEQUANTIZE"}
    assert found.replaced == ()
    nodes = len(read(content).subgraphs[0].nodes)
    assert len(found.layers) == nodes
    assert 0.001 < found.outputs[0] < 0.5
    what = {text.partition(":")[2].strip() for row in found.changed for text in row.what}
    assert {"FLOAT32 -> INT8", "FLOAT32 -> INT32"} <= what
    assert any(text.startswith("relative error 0.0") for text in what)  # of weights that were rounded


def test_before_and_after_a_pass() -> None:
    """A pass that rescales weights changes constants and layers, and no output."""

    def build(g: Graph, rng: np.random.Generator) -> int:
        x = g.op(
            FULLY_CONNECTED,
            [g.input((3, 20)), g.const(randn(rng, 16, 20, scale=3e4)), None],
            FullyConnectedOptions(_RELU),
        )
        return g.op(FULLY_CONNECTED, [x, g.const(randn(rng, 5, 16, scale=1e-6)), None], FullyConnectedOptions())

    built = made(build)
    feed = randn(np.random.default_rng(3), 3, 20)
    after = Converter.from_tflite(built, fp16_safe=[[feed]]).convert()
    found = diff_models(built, after, {"main_in0": feed})
    assert [row.what for row in found.changed] == [
        ("operand 1: 320 of 320 elements",),
        ("operand 1: 80 of 80 elements",),
    ]
    assert (found.outputs, found.layers[0].relative > 0.5, found.layers[1].relative) == ((0.0,), True, 0.0)


def _loop(scale: float) -> Model:
    return while_model(
        [((), INT), ((4,), FLOAT)],
        below(3),
        lambda g, x: [next_(g, x[0]), g.op(MUL, [x[1], g.const(np.float32(scale))], MulOptions())],
    )


def test_the_bodies_of_loops() -> None:
    assert diff_models(_loop(0.5), _loop(0.5)).same_structure
    found = diff_models(_loop(0.5), _loop(0.25))
    ((row,), numbers) = found.changed, {row.subgraphs for row in found.changed}
    assert (row.op, row.what, numbers) == ("MUL", ("operand 1: 1 of 1 elements",), {(2, 2)})
    renumbered = _loop(0.5)
    main, condition, body = renumbered.subgraphs
    (loop,) = main.nodes
    swapped = replace(loop, options=replace(loop.options, cond_subgraph_index=2, body_subgraph_index=1))
    other = Model((replace(main, nodes=(swapped,)), body, condition))
    assert diff_models(renumbered, other).same_structure


def test_scales_signatures_and_open_dimensions() -> None:
    def build(g: Graph, rng: np.random.Generator) -> int:
        weights = g.const(np.arange(-20, 20).reshape(5, 8).astype(np.int8))
        by = Stored(np.array([0.1, 0.2, 0.3, 0.2, 0.1], np.float32), np.zeros(5, np.int64), 0)
        g.tensors[weights] = replace(g.tensors[weights], quantization=by)
        return g.op(FULLY_CONNECTED, [g.input((2, 8)), weights, None], FullyConnectedOptions())

    built = made(build)
    (graph,) = built.subgraphs
    scales = Stored(np.array([0.1, 0.3, 0.3, 0.2, 0.1], np.float32), np.zeros(5, np.int64), 0)
    tensors = [replace(t, quantization=scales) if t.quantization is not None else t for t in graph.tensors]
    found = diff_models(built, model(replace(graph, tensors=tuple(tensors))))  # least and largest scale are the same
    assert [text.partition(":")[0] for row in found.changed for text in row.what] == ["operand 1"]
    x = graph.inputs[0]
    opened = [replace(t, shape_signature=(-1, 8)) if i == x else t for i, t in enumerate(graph.tensors)]
    signed = Model((replace(graph, tensors=tuple(opened)),), (Signature("f", {"x": x}, {"y": graph.outputs[0]}),))
    assert [*diff_models(built, signed).ends] == [
        f"input {graph.tensors[x].name}: open dimensions unknown -> [-1, 8]",
        "signatures: none -> ['f']",
    ]
