"""Looks up functions whose integer kernels would be too coarse in a table of 256 elements.

Softsign's divisor rounds to zero in int8 if inputs have a wide range. Before calibration its operators become one, so
that it gets scales. In the finished model it is a CAST, an ADD and a GATHER, exact to half a step.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from litecl.converter.tensors import Tensors
from litecl.interpreter.arithmetic import quantized_unary
from litecl.interpreter.graph import Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.integers import BYTES
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, DIV, AddOptions, DivOptions
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.unary import ABS, unary
from litecl.interpreter.schema import TensorType


def _softsign(x: Array) -> Array:
    return np.asarray(x / (np.abs(x) + np.float32(1)))


_LOOKED_UP = quantized_unary.table(lambda options, x: _softsign(x))
SOFTSIGN = unary("SOFTSIGN", _softsign, stored=quantized_unary.SIGNED, bound=_LOOKED_UP, integers=BYTES)
"""x / (|x| + 1). Only used during quantization: no file has it."""


def with_softsigns(model: Model) -> Model:
    """Replace ABS, ADD and DIV that compute a softsign by SOFTSIGN."""
    return replace(model, subgraphs=tuple(map(_joined, model.subgraphs)))


def _joined(graph: Subgraph) -> Subgraph:
    makers = {tensor: node for node in graph.nodes for tensor in node.outputs}
    dropped: list[Node] = []
    nodes = list(graph.nodes)
    for number, node in enumerate(nodes):
        inner = _inner(graph, makers, node)
        if inner:
            nodes[number] = Node(SOFTSIGN, node.inputs[:1], node.outputs, NoOptions())
            dropped += inner
    return replace(graph, nodes=tuple(node for node in nodes if not any(node is other for other in dropped)))


def _inner(graph: Subgraph, makers: dict[int, Node], node: Node) -> list[Node]:
    """Return the ABS and ADD of a softsign that ends in ``node``; empty if it isn't one."""
    if node.op is not DIV or node.options != DivOptions():
        return []
    x, divisor = node.inputs
    total = makers.get(divisor)
    if total is None or total.op is not ADD or total.options != AddOptions() or not _is_one(graph, total.inputs[1]):
        return []
    size = makers.get(total.inputs[0])
    if size is None or size.op is not ABS or size.inputs != (x,):
        return []
    inner = [size, total]
    return inner if all(_readers(graph, n.outputs[0]) == 1 for n in inner) and _is_float(graph, node) else []


def _is_one(graph: Subgraph, tensor: int) -> bool:
    data = graph.tensors[tensor].data
    return data is not None and data.size == 1 and data.item() == 1


def _is_float(graph: Subgraph, node: Node) -> bool:
    return graph.tensors[node.outputs[0]].type == TensorType.FLOAT32


def _readers(graph: Subgraph, tensor: int) -> int:
    return sum(node.inputs.count(tensor) for node in graph.nodes) + graph.outputs.count(tensor)


def without_softsigns(model: Model) -> Model:
    """Replace SOFTSIGN by TensorFlow Lite's operators."""
    return replace(model, subgraphs=tuple(map(_expanded, model.subgraphs)))


def _expanded(graph: Subgraph) -> Subgraph:
    tensors = Tensors(graph.tensors)
    nodes = [new for node in graph.nodes for new in (_parts(tensors, node) if node.op is SOFTSIGN else (node,))]
    return replace(graph, tensors=tuple(tensors), nodes=tuple(nodes))


def _parts(tensors: Tensors, node: Node) -> Iterator[Node]:
    (x,), (y,) = node.inputs, node.outputs
    for part in (_looked_up if tensors[x].type == TensorType.INT8 else _computed)(tensors, x, y):
        yield tensors.versioned(part)


def _computed(tensors: Tensors, x: int, y: int) -> Iterator[Node]:
    one = tensors.constant(f"{tensors[y].name}/one", np.float32(1))
    size, total = (_like(tensors, tensors[x], f"{tensors[y].name}/{name}") for name in ("abs", "divisor"))
    yield Node(ABS, (x,), (size,), NoOptions())
    yield Node(ADD, (size, one), (total,), AddOptions())
    yield Node(DIV, (x, total), (y,), DivOptions())


def _looked_up(tensors: Tensors, x: int, y: int) -> Iterator[Node]:
    codes, shape = np.arange(-128, 128, dtype=np.int8), (256,)
    spec = replace(tensors[y], name=f"{tensors[y].name}/table", shape=shape, shape_signature=())
    assert SOFTSIGN.bind is not None
    kernel = SOFTSIGN.bind(NoOptions(), [replace(tensors[x], shape=shape)], [spec])
    assert kernel is not None
    (entries,) = kernel(NoOptions(), [codes])
    table = tensors.push(replace(spec, data=entries))
    first = tensors.constant(f"{spec.name}/first", np.int32(128))
    number = replace(tensors[x], type=TensorType.INT32, quantization=None)
    signed, index = (_like(tensors, number, f"{spec.name}/{name}") for name in ("signed", "place"))
    yield Node(CAST, (x,), (signed,), CastOptions(TensorType.INT8, TensorType.INT32))
    yield Node(ADD, (signed, first), (index,), AddOptions())
    yield Node(GATHER, (table, index), (y,), GatherOptions())


def _like(tensors: Tensors, spec: TensorSpec, name: str) -> int:
    return tensors.push(replace(spec, name=name, data=None))
