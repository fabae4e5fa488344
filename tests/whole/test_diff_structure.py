"""``litecl diff`` matches nodes by structure: renamed tensors, fused and split nodes, integers, loops; and its page."""

import json
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cli.parser import main
from litecl.converter import Converter, Quantization
from litecl.diff import Difference, diff_models
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import ABSENT, Model, Signature
from litecl.interpreter.graph import Quantization as Stored
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.gelu import GELU, GeluOptions
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.ops.unary import EXP, RELU, SIN, TANH
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support import networks
from support.build import Graph, model, randn
from support.loop_models import FLOAT, INT, below, next_, while_model

Build = Callable[[Graph, np.random.Generator], int]
_NONE, _RELU = ActivationFunctionType.NONE, ActivationFunctionType.RELU


def _made(build: Build, seed: int = 1) -> Model:
    g = Graph()
    return model(g.build(build(g, np.random.default_rng(seed))))


def _shuffled(made: Model, seed: int) -> Model:
    """The same with other names, other numbers of tensors, and nodes in another order that is valid."""
    (graph,) = made.subgraphs
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
    made = read(networks.bert(6, 1, 3, 32, 4))
    found = diff_models(made, _shuffled(made, seed))
    assert found.same_structure, found
    assert len(found.layers) == len(made.subgraphs[0].nodes)
    assert {layer.relative for layer in found.layers} == {0.0}


def test_a_node_between_others_whose_names_shift() -> None:
    """Numbered names tell nothing: what is behind the new node has the name of another one in the first model."""

    def chain(ops: list[Any]) -> Build:
        def build(g: Graph, rng: np.random.Generator) -> int:
            x = g.input((3, 4))
            for op in ops:
                x = g.op(op, [x], NoOptions())
            return x

        return build

    a, b = (_named(_made(chain(ops))) for ops in ([SIN, TANH, SIN, EXP, SIN], [SIN, TANH, EXP, SIN, EXP, SIN]))
    found = diff_models(a, b)
    assert (found.only_a, [*found.only_b.values()]) == ({}, ["EXP op2"])
    assert [(layer.a, layer.b) for layer in found.layers] == [(0, 0), (1, 1), (2, 3), (3, 4), (4, 5)]
    assert found.counts == {"EXP": (1, 2)}


def _named(made: Model) -> Model:
    """The model with results numbered in order."""
    (graph,) = made.subgraphs
    names = {node.outputs[0]: f"op{i}" for i, node in enumerate(graph.nodes)}
    tensors = (replace(spec, name=names.get(t, spec.name)) for t, spec in enumerate(graph.tensors))
    return model(replace(graph, tensors=tuple(tensors)))


def _conv(g: Graph, rng: np.random.Generator, x: int, padding: Padding = Padding.SAME, *, bias: bool = True) -> int:
    weights, values = g.const(randn(rng, 6, 3, 3, 4)), randn(rng, 6)
    added = g.const(values if bias else np.zeros(6, np.float32))
    y = g.op(CONV_2D, [x, weights, added], Conv2DOptions(padding, 1, 1, _RELU if bias else _NONE))
    if bias:
        return y
    return g.op(RELU, [g.op(ADD, [y, g.const(values)], AddOptions())], NoOptions())


def _split(fused: bool) -> Build:
    def build(g: Graph, rng: np.random.Generator) -> int:
        y = _conv(g, rng, g.op(SIN, [g.input((1, 6, 6, 4))], NoOptions()), bias=fused)
        return g.op(EXP, [y], NoOptions())

    return build


def _padded(fused: bool) -> Build:
    def build(g: Graph, rng: np.random.Generator) -> int:
        x = g.op(TANH, [g.input((1, 6, 6, 4))], NoOptions())
        pads = g.const(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
        x = x if fused else g.op(PAD, [x, pads], NoOptions())
        return g.op(SIN, [_conv(g, rng, x, Padding.SAME if fused else Padding.VALID)], NoOptions())

    return build


def _gelu(fused: bool) -> Build:
    """x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))), in one node or many."""

    def build(g: Graph, rng: np.random.Generator) -> int:
        x = g.op(SIN, [g.input((2, 8))], NoOptions())
        return g.op(TANH, [_whole(g, x) if fused else _parts(g, x)], NoOptions())

    return build


def _whole(g: Graph, x: int) -> int:
    return g.op(GELU, [x], GeluOptions(approximate=True))


def _parts(g: Graph, x: int) -> int:
    def times(a: int, b: int | float) -> int:
        return g.op(MUL, [a, b if isinstance(b, int) else g.const(np.float32(b))], MulOptions())

    cube = times(times(times(x, x), x), 0.044715)
    inner = g.op(TANH, [times(g.op(ADD, [x, cube], AddOptions()), float(np.sqrt(2 / np.pi)))], NoOptions())
    return times(times(x, 0.5), g.op(ADD, [inner, g.const(np.float32(1))], AddOptions()))


def _sides(found: Difference) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [(row.ops_a, row.ops_b) for row in found.replaced]


@pytest.mark.parametrize(
    ("build", "many", "one"),
    [
        (_split, ("CONV_2D", "ADD", "RELU"), ("CONV_2D",)),
        (_padded, ("PAD", "CONV_2D"), ("CONV_2D",)),
        (_gelu, ("MUL", "MUL", "MUL", "ADD", "MUL", "TANH", "MUL", "ADD", "MUL"), ("GELU",)),
    ],
)
def test_fused_and_split_nodes(build: Callable[[bool], Build], many: tuple[str, ...], one: tuple[str, ...]) -> None:
    """Either way round; layers compare what the nodes compute together, and nothing is left over."""
    split, fused = _made(build(False)), _made(build(True))
    for a, b, sides in ((split, fused, (many, one)), (fused, split, (one, many))):
        found = diff_models(a, b)
        assert (found.only_a, found.only_b) == ({}, {})
        assert [tuple(map(sorted, pair)) for pair in _sides(found)] == [tuple(map(sorted, sides))]
        assert not found.same_structure
        assert len(found.layers) == 3
        assert max(layer.relative for layer in found.layers) < 1e-5, found.layers
        assert found.outputs[0] < 1e-5


def test_a_node_that_is_only_left_out() -> None:
    """What nothing stands for is not called fused."""

    def build(count: int) -> Build:
        def chain(g: Graph, rng: np.random.Generator) -> int:
            x = g.op(SIN, [g.input((3, 4))], NoOptions())
            for _ in range(count):
                x = g.op(EXP, [x], NoOptions())
            return g.op(FULLY_CONNECTED, [x, g.const(randn(rng, 5, 4)), None], FullyConnectedOptions())

        return chain

    found = diff_models(_made(build(1)), _made(build(0)))
    assert ([name.split()[0] for name in found.only_a.values()], found.replaced) == (["EXP"], ())
    assert found.outputs[0] > 0.1


def test_floats_against_integers() -> None:
    """A file and what the converter makes of it: types and scales differ, nodes are the same."""
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

    made = _made(build)
    feed = randn(np.random.default_rng(3), 3, 20)
    after = Converter.from_tflite(made, fp16_safe=[[feed]]).convert()
    found = diff_models(made, after, {"main_in0": feed})
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

    made = _made(build)
    (graph,) = made.subgraphs
    scales = Stored(np.array([0.1, 0.3, 0.3, 0.2, 0.1], np.float32), np.zeros(5, np.int64), 0)
    tensors = [replace(t, quantization=scales) if t.quantization is not None else t for t in graph.tensors]
    found = diff_models(made, model(replace(graph, tensors=tuple(tensors))))  # least and largest scale are the same
    assert [text.partition(":")[0] for row in found.changed for text in row.what] == ["operand 1"]
    x = graph.inputs[0]
    opened = [replace(t, shape_signature=(-1, 8)) if i == x else t for i, t in enumerate(graph.tensors)]
    signed = Model((replace(graph, tensors=tuple(opened)),), (Signature("f", {"x": x}, {"y": graph.outputs[0]}),))
    assert [*diff_models(made, signed).ends] == [
        f"input {graph.tensors[x].name}: open dimensions unknown -> [-1, 8]",
        "signatures: none -> ['f']",
    ]


class _Cells(HTMLParser):
    """The cells of a page's tables, and the tags that would fetch something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.fetches: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("td", "th"):
            self.cells.append("")
        given = dict(attrs)
        self.fetches += [
            value for key in ("src", "href") if (value := given.get(key)) and not value.startswith("data:")
        ]

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def test_the_page_and_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, page, figures = (tmp_path / name for name in ("a<b.tflite", "b.tflite", "diff.html", "diff.json"))
    a.write_bytes(write(_made(_gelu(False))))
    b.write_bytes(write(_made(_gelu(True))))
    assert main(["diff", str(a), str(b), "-o", str(page), "-o", str(figures)]) == 1
    said = capsys.readouterr().out
    assert "fused, split or replaced" in said
    data = json.loads(figures.read_text())
    assert [row["ops_b"] for row in data["replaced"]] == [["GELU"]]
    text = page.read_text()
    made = _Cells(text)
    assert made.fetches == []
    assert {"1 to 9", "GELU"} <= {cell.strip() for cell in made.cells}
    assert "a&lt;b.tflite" in text
    assert "a<b.tflite" not in text
    assert "<svg" in text  # the layers' errors, which are not 0 but small
    assert main(["diff", str(a), str(a), "-o", str(page)]) == 0
    assert "The same structure." in page.read_text()
    for wrong in ([str(a), str(tmp_path / "none.tflite")], [str(page), str(a)], [str(a), str(b), "--input", "z=x.npy"]):
        assert main(["diff", *wrong]) == 2
    capsys.readouterr()
    assert main(["diff", str(tmp_path / "none.tflite"), str(a), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["exit_code"] == 2
    with pytest.raises(SystemExit, match="2"):
        main(["diff", str(a), str(b), "-o", str(tmp_path / "diff.pdf")])
