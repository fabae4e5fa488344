"""Runs a model while recording tensor values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from litecl.converter.quantization.data import Sample, signatures_of
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.interpreter import Interpreter
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs

Look = Callable[[Sequence[Array]], None]
"""Receives the values of some tensors."""

After = Mapping[int | None, Sequence[tuple[Sequence[int], Look]]]
"""The tensors to record after a node, by its number, or before the first one (None)."""


def watched(model: Model, looks: Mapping[int, After]) -> Model:
    """Return the model with added nodes that record tensor values."""
    graphs = [_watched(graph, looks.get(index, {})) for index, graph in enumerate(model.subgraphs)]
    return replace(model, subgraphs=tuple(graphs), signatures=signatures_of(model))


def _watched(graph: Subgraph, after: After) -> Subgraph:
    nodes = [_watcher(tensors, look) for tensors, look in after.get(None, ())]
    for number, node in enumerate(graph.nodes):
        nodes.append(node)
        nodes += [_watcher(tensors, look) for tensors, look in after.get(number, ())]
    return replace(graph, nodes=tuple(nodes))


def _watcher(tensors: Sequence[int], look: Look) -> Node:
    def infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
        return []

    def run(options: NoOptions, inputs: Inputs) -> list[Array]:
        look([value for value in inputs if value is not None])
        return []

    op = Op("litecl.Watch", options=NoOptions, infer=infer, run=run, pure=False, custom=True)
    return Node(op, tuple(t for t in tensors if t != ABSENT), (), NoOptions())


class Runner:
    """Runs a model on samples. Variables keep their values between samples."""

    def __init__(self, model: Model, looks: Mapping[int, After] | None = None) -> None:
        interpreter = Interpreter(watched(model, looks or {}))
        self._runners = {s.key: interpreter.get_signature_runner(s.key) for s in signatures_of(model)}

    def __call__(self, sample: Sample) -> dict[str, Array]:
        """Return the outputs by name."""
        signature, values = sample
        return dict(self._runners[signature.key](**values))
