"""Corrects biases for the rounding of weights (Nagel et al., 2019, section 4.2, with measured means)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from litecl.converter.quantization.choose import operands
from litecl.converter.quantization.data import Sample
from litecl.converter.quantization.rules import RULES, Rule
from litecl.converter.quantization.scales import channels, dequantize, integers
from litecl.converter.quantization.watch import After, Runner
from litecl.converter.tensors import Tensors
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Subgraph
from litecl.interpreter.op import Op
from litecl.interpreter.schema import ActivationFunctionType, TensorType


def correct_biases(model: Model, samples: Sequence[Sample], *, per_channel: bool) -> Model:
    """Add to each bias the mean error per channel that rounding the weights causes.

    Nodes keep their numbers; a corrected bias is a new tensor.
    """
    entries = {signature.subgraph for signature, _ in samples}
    sums = {i: dict(_layers(model.subgraphs[i], per_channel)) for i in entries}
    run = Runner(model, {i: _looks(model.subgraphs[i], layers) for i, layers in sums.items()})
    for sample in samples:
        run(sample)
    graphs = [_corrected(graph, sums.get(i, {})) for i, graph in enumerate(model.subgraphs)]
    return replace(model, subgraphs=tuple(graphs))


@dataclass
class _Errors:
    """The errors of a layer's results before its activation, summed by channel.

    position: of the layer's activation operand. others: its non-float operands. rest: weights minus rounded weights.
    """

    node: Node
    position: int
    others: Mapping[int, Array | None]
    rest: Array
    total: Array | float = 0.0
    count: int = 0

    def see(self, values: Sequence[Array]) -> None:
        """Add the errors for one value of the layer's operand."""
        (x,), (weights,) = values, RULES[self.node.op].weights
        inputs = [self.others.get(p) for p in range(len(self.node.inputs))]
        inputs[self.position], inputs[weights] = x, self.rest
        assert isinstance(self.node.op, Op)
        options = replace(self.node.options, fused_activation_function=ActivationFunctionType.NONE)
        (error,) = self.node.op.run(options, inputs)
        by_channel = error.reshape(-1, error.shape[-1])
        self.total = self.total + by_channel.sum(0, dtype=np.float64)
        self.count += len(by_channel)

    @property
    def mean(self) -> Array | float:
        """The mean error per channel."""
        return self.total / max(self.count, 1)


def _layers(graph: Subgraph, per_channel: bool) -> list[tuple[int, _Errors]]:
    """Return the nodes with constant float32 weights and bias, by number."""
    layers = []
    for number, node in enumerate(graph.nodes):
        rule = RULES.get(node.op)
        if rule is None or rule.bias is None or not _constants(graph, node, rule):
            continue
        ((weights, axis),) = rule.weights.items()
        spec, positions = graph.tensors[node.inputs[weights]], operands(graph, node, rule)
        if len(positions) != 1 or spec.data is None:
            continue
        scale = channels(spec, axis if per_channel else None)
        stored = integers(spec, scale, TensorType.INT8, symmetric=True).data
        assert stored is not None
        rest = (spec.data - dequantize(stored, scale)).astype(np.float32)
        read = ((p, graph.tensors[t]) for p, t in enumerate(node.inputs) if t != ABSENT)
        others = {p: spec.data for p, spec in read if spec.type != TensorType.FLOAT32}
        if any(data is None for data in others.values()):  # a computed output shape
            continue
        layers.append((number, _Errors(node, positions[0], others, rest)))
    return layers


def _constants(graph: Subgraph, node: Node, rule: Rule) -> bool:
    wanted = [*rule.weights, rule.bias or 0]
    if max(wanted) >= len(node.inputs) or any(node.inputs[p] == ABSENT for p in wanted):
        return False
    specs = [graph.tensors[node.inputs[p]] for p in wanted]
    return all(spec.data is not None and spec.type == TensorType.FLOAT32 for spec in specs)


def _looks(graph: Subgraph, layers: Mapping[int, _Errors]) -> After:
    return {n: [([graph.nodes[n].inputs[layer.position]], layer.see)] for n, layer in layers.items()}


def _corrected(graph: Subgraph, layers: Mapping[int, _Errors]) -> Subgraph:
    tensors, nodes = Tensors(graph.tensors), list(graph.nodes)
    for number, layer in layers.items():
        position = RULES[layer.node.op].bias
        assert position is not None
        spec = tensors[layer.node.inputs[position]]
        assert spec.data is not None
        inputs = [*layer.node.inputs]
        inputs[position] = tensors.push(replace(spec, data=(spec.data + layer.mean).astype(np.float32)))
        nodes[number] = replace(layer.node, inputs=tuple(inputs))
    return replace(graph, tensors=tuple(tensors), nodes=tuple(nodes))
