"""Custom operators that a user defines in Python."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from litecl.interpreter.file.options import decode_custom_options, encode_custom_options
from litecl.interpreter.graph import Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.options import CustomOptions

CustomFunction = Callable[[bytes, list[Array | None]], Sequence[Array]]
CustomOp = Op | CustomFunction


def with_custom_ops(model: Model, custom_ops: Mapping[str, CustomOp]) -> Model:
    """Return the model with each custom node named in ``custom_ops`` bound to the user's operator."""
    if not custom_ops:
        return model
    return replace(model, subgraphs=tuple(_subgraph(graph, custom_ops) for graph in model.subgraphs))


def _subgraph(graph: Subgraph, custom_ops: Mapping[str, CustomOp]) -> Subgraph:
    return replace(graph, nodes=tuple(_node(node, graph, custom_ops) for node in graph.nodes))


def _node(node: Node, graph: Subgraph, custom_ops: Mapping[str, CustomOp]) -> Node:
    given = custom_ops.get(node.op.name) if node.op.custom else None
    if given is None:
        return node
    if isinstance(given, Op):
        return replace(node, op=given, options=decode_custom_options(given, encode_custom_options(node.options)))
    return replace(node, op=_wrap(node.op.name, given, [graph.tensors[t] for t in node.outputs]))


def _wrap(name: str, function: CustomFunction, declared: Sequence[TensorSpec]) -> Op:
    """Wrap a Python function as an operator, whose output shapes are known only after it has run."""

    def infer(options: CustomOptions, inputs: Specs) -> list[TensorSpec]:
        return [TensorSpec(spec.type, None) for spec in declared]

    def run(options: CustomOptions, inputs: Inputs) -> list[Array]:
        return list(function(options.data, list(inputs)))

    return Op(name, CustomOptions, infer, run, pure=False, custom=True)
