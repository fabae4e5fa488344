"""Models with unrolled recurrent layers, altered in any place, and comparisons of their results."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

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
    """Check that LiteRT, interpreter and device compute with ``after``, run after run, what LiteRT does with
    ``before``.
    """
    content = write(after)
    runtimes = [Interpreter(content), Interpreter(content, delegates=[CLDelegate()])]
    for seed in range(runs):  # states must not leak from one run to the next
        feeds = feeds_of(before, seed)
        expected = oracle.run(write(before), feeds)
        for got in (oracle.run(content, feeds), *(run(runtime, feeds) for runtime in runtimes)):
            for a, b in zip(got, expected, strict=True):
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=0, atol=2e-6)


def assert_altered_models_compute_the_same(before: Model, seed: int) -> None:
    """Whatever node of a layer computes something else, the file computes it too; most alterations keep the steps."""
    assert len(roll_up(before)[1]) == 1
    kept = 0
    for altered in alterations(before, np.random.default_rng(seed)):
        after, records = roll_up(altered)
        kept += not records
        if records:
            feeds = feeds_of(altered, seed)
            for a, b in zip(oracle.run(write(after), feeds), oracle.run(write(altered), feeds), strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=2e-6)
    assert kept > 20


def assert_stays(before: Model) -> None:
    """Check that nothing of a model is rolled up."""
    after, records = roll_up(before)
    assert after is before
    assert not records
