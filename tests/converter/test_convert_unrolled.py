"""Unrolled recurrent layers of ``.tflite`` files, rolled up into operators and loops."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.converter.unrolled.roll_up import roll_up
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, SUB, AddOptions, MulOptions, SubOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.unary import LOGISTIC, RELU, TANH
from litecl.interpreter.schema import ActivationFunctionType
from support import oracle
from support.quantize_models import run
from support.unrolled import Sizes, unrolled, unrolled_cells

_OPERATORS = {"LSTM": "UNIDIRECTIONAL_SEQUENCE_LSTM", "GRU": "WHILE"}
KINDS = pytest.mark.parametrize("kind", _OPERATORS)


def feeds_of(model: Model, seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    graph = model.subgraphs[0]
    return [rng.standard_normal(graph.tensors[t].static_shape).astype(np.float32) for t in graph.inputs]


def alterations(before: Model, rng: np.random.Generator) -> Iterator[Model]:
    """Models in which one node each has another operator, another constant, or another operand of the same shape."""
    graph = before.subgraphs[0]
    for number, node in enumerate(graph.nodes):
        for changed, specs in _altered(graph, node, rng):
            nodes = (*graph.nodes[:number], changed, *graph.nodes[number + 1 :])
            yield replace(before, subgraphs=(replace(graph, tensors=(*graph.tensors, *specs), nodes=nodes),))


def _altered(graph: Subgraph, node: Node, rng: np.random.Generator) -> Iterator[tuple[Node, Sequence[TensorSpec]]]:
    for op, options in _OTHERS.get(node.op, ()):
        yield replace(node, op=op, options=options), ()
    for position, tensor in enumerate(node.inputs):
        spec = graph.tensors[tensor]
        if tensor != ABSENT and spec.data is not None and spec.data.dtype == np.float32:
            data = spec.data.copy()
            data.reshape(-1)[rng.integers(data.size)] += np.float32(0.25)
            new, specs = len(graph.tensors), [replace(spec, data=data, name="another")]
        else:
            new, specs = _another(graph, node, tensor, rng), []
        inputs = (*node.inputs[:position], new, *node.inputs[position + 1 :])
        if new != tensor:
            yield replace(node, inputs=inputs), specs


def _another(graph: Subgraph, node: Node, tensor: int, rng: np.random.Generator) -> int:
    """Another tensor of the same shape and kind that is known before a node."""
    spec = graph.tensors[tensor]
    known = [t for t, other in enumerate(graph.tensors) if other.data is not None or t < node.outputs[0]]
    fitting = [
        t
        for t in known
        if (graph.tensors[t].shape, graph.tensors[t].type, graph.tensors[t].data is None)
        == (spec.shape, spec.type, spec.data is None)
        and (spec.data is None or _fits(graph, node, spec.data, graph.tensors[t].data))
    ]
    return int(rng.choice(fitting)) if fitting else tensor


def _fits(graph: Subgraph, node: Node, old: Array, new: Array) -> bool:
    """Whether a SLICE may begin elsewhere; sizes and shapes stay."""
    if node.op is not SLICE or graph.tensors[node.inputs[1]].data is not old:
        return False
    size, whole = graph.tensors[node.inputs[2]].data, graph.tensors[node.inputs[0]].static_shape
    return bool((new + size <= whole).all())


_OTHERS: dict[Any, Sequence[tuple[Any, Any]]] = {
    LOGISTIC: ((TANH, NoOptions()),),
    TANH: ((LOGISTIC, NoOptions()), (RELU, NoOptions())),
    ADD: ((SUB, SubOptions()), (ADD, AddOptions(ActivationFunctionType.RELU))),
    MUL: ((ADD, AddOptions()), (MUL, MulOptions(ActivationFunctionType.RELU_N1_TO_1))),
    SUB: ((ADD, AddOptions()),),
}


def counts(model: Model) -> dict[str, int]:
    names = [node.op.name for node in model.subgraphs[0].nodes]
    return {name: names.count(name) for name in names}


def assert_same(before: Model, after: Model, runs: int = 3) -> None:
    """LiteRT, interpreter and device compute with ``after`` what LiteRT computes with ``before``, again and again."""
    content = write(after)
    runtimes = [Interpreter(content), Interpreter(content, delegates=[CLDelegate()])]
    for seed in range(runs):  # states must not leak from one run to the next
        feeds = feeds_of(before, seed)
        expected = oracle.run(write(before), feeds)
        for got in (oracle.run(content, feeds), *(run(runtime, feeds) for runtime in runtimes)):
            for a, b in zip(got, expected, strict=True):
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=0, atol=2e-6)


def assert_rolled_up(kind: str, before: Model, layers: int = 1) -> Model:
    after, records = roll_up(before)
    assert [record.name for record in records] == [f"unrolled {kind}"] * layers
    assert counts(after)[_OPERATORS[kind]] == layers
    assert not {"LOGISTIC", "TANH"} & counts(after).keys()
    assert_same(before, after)
    return after


@KINDS
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("states", [True, False])
def test_a_layer(kind: str, batch: int, batch_first: bool, states: bool) -> None:
    read = ("sequence", "h", "c")
    assert_rolled_up(kind, unrolled(kind, Sizes(batch), batch_first=batch_first, states=states, read=read))


@KINDS
@pytest.mark.parametrize("steps", [2, 40])
@pytest.mark.parametrize("units", [1, 7])
def test_other_lengths_and_widths(kind: str, steps: int, units: int) -> None:
    assert_rolled_up(kind, unrolled(kind, Sizes(2, steps, 3, units)))


@KINDS
def test_equal_sizes_everywhere(kind: str) -> None:
    assert_rolled_up(kind, unrolled(kind, Sizes(4, 4, 4, 4), read=("sequence", "h")))


@KINDS
def test_without_biases(kind: str) -> None:
    assert_rolled_up(kind, unrolled(kind, bias=False))


@KINDS
def test_only_the_last_state(kind: str) -> None:
    after = assert_rolled_up(kind, unrolled(kind, read=("h",)))
    assert "SLICE" not in counts(after)


@KINDS
def test_hidden_states_within_are_read_from_the_sequence(kind: str) -> None:
    after = assert_rolled_up(kind, unrolled(kind, read=("h1", "sequence", "h2", "h1")))
    assert counts(after)["SLICE"] == 2


@KINDS
@pytest.mark.parametrize("batch", [1, 2])
def test_stacked_and_bidirectional_layers(kind: str, batch: int) -> None:
    before = unrolled(kind, Sizes(batch), layers=2, bidirectional=True)
    assert counts(assert_rolled_up(kind, before, layers=4)).get("REVERSE_V2", 0) == 4


@KINDS
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("layers", [1, 2])
def test_loops_over_cells(kind: str, batch: int, layers: int) -> None:
    assert_rolled_up(kind, unrolled_cells(kind, Sizes(batch, 5), layers=layers), layers)


def test_what_is_made_of_the_last_state_is_no_part_of_the_chain() -> None:
    before = unrolled("LSTM", Sizes(2, 5), read=("sequence", "h"), scale=4)
    after, records = roll_up(before)
    assert len(records) == 1
    assert_same(before, after)


@KINDS
@pytest.mark.parametrize("seed", range(4))
def test_altered_anywhere_the_results_stay(kind: str, seed: int) -> None:
    """Whatever node of a chain computes something else, the file computes it too; most alterations prevent the loop."""
    rng = np.random.default_rng(seed)
    makers = [
        lambda: unrolled(kind, Sizes(2, 3, 5, 5), states=bool(seed % 2), read=("sequence", "h")),
        lambda: unrolled_cells(kind, Sizes(3, 3, 3, 3)),
    ]
    before = makers[seed // 2]()
    assert len(roll_up(before)[1]) == 1
    kept = 0
    for altered in alterations(before, rng):
        after, records = roll_up(altered)
        kept += not records
        if records:
            feeds = feeds_of(altered, seed)
            for a, b in zip(oracle.run(write(after), feeds), oracle.run(write(altered), feeds), strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=2e-6)
    assert kept > 20


@KINDS
@pytest.mark.parametrize(
    "change", ["weights", "activation", "clip", "order", "twice", "skip"], ids=lambda change: f"another_{change}"
)
def test_a_chain_altered_at_one_step_stays(kind: str, change: str) -> None:
    _assert_stays(unrolled(kind, Sizes(2, 5), read=("sequence", "h"), **{change: 2}))


@pytest.mark.parametrize("change", ["row", "gates", "scale"])
@pytest.mark.parametrize("step", [2, 3])
def test_an_lstm_altered_at_one_step_stays(change: str, step: int) -> None:
    _assert_stays(unrolled("LSTM", Sizes(2, 5), states=True, **{change: step}))


@pytest.mark.parametrize("change", ["weights", "activation", "clip", "row", "gates", "scale"])
def test_an_lstm_altered_at_the_first_step_stays(change: str) -> None:
    _assert_stays(unrolled("LSTM", Sizes(2, 5), states=True, **{change: 0}))


def test_memory_that_is_read_within_keeps_the_chain() -> None:
    _assert_stays(unrolled("LSTM", read=("sequence", "c1")))


@KINDS
def test_one_step_stays(kind: str) -> None:
    _assert_stays(unrolled(kind, Sizes(steps=1), states=True, read=("sequence", "h")))


def _assert_stays(before: Model) -> None:
    after, records = roll_up(before)
    assert after is before
    assert not records


@KINDS
@pytest.mark.parametrize("sizes", [Sizes(1, 3), Sizes(2, 6, 3, 9)])
def test_signatures_and_names_stay(kind: str, sizes: Sizes) -> None:
    read: Sequence[str] = ("h", "sequence")
    before = unrolled(kind, sizes, read=read)
    after, _ = roll_up(before)
    for graph in (before.subgraphs[0], after.subgraphs[0]):
        names: list[Any] = [graph.tensors[t].name for t in (*graph.inputs, *graph.outputs)]
        assert names == [
            before.subgraphs[0].tensors[t].name for t in (*before.subgraphs[0].inputs, *before.subgraphs[0].outputs)
        ]
        assert len({spec.name for spec in graph.tensors}) == len(graph.tensors)
