"""Looks up rows of a language model's tables by EMBEDDING_LOOKUP, as Google's exporter does: GATHER has fewer kernels.

Quantized tables get a scale per row, and four bits if asked for. A table that FULLY_CONNECTED reads too, to compute the
logits, is stored once for all signatures.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from litecl.converter.tensors import Tensors
from litecl.interpreter.graph import Node, Subgraph
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.schema import TensorType


def with_embeddings(graph: Subgraph) -> Subgraph:
    """Replace GATHERs of constant rows, with indices of known shape, by EMBEDDING_LOOKUPs."""
    tensors = Tensors(graph.tensors)
    nodes = [new for node in graph.nodes for new in _lookup(tensors, node)]
    return replace(graph, tensors=tuple(tensors), nodes=tuple(nodes))


def _lookup(tensors: Tensors, node: Node) -> Iterator[Node]:
    if node.op is not GATHER or not _takes_rows(tensors, node):
        yield node
        return
    (table, ids), (output,) = node.inputs, node.outputs
    shape, width = tensors[ids].static_shape, tensors[table].static_shape[1]
    if len(shape) == 1:
        yield Node(EMBEDDING_LOOKUP, (ids, table), (output,), NoOptions())
        return
    count = int(np.prod(shape))
    flat, rows = (_rows(tensors, index, to) for index, to in ((ids, (count,)), (output, (count, width))))
    yield _reshape(tensors, ids, flat)
    yield Node(EMBEDDING_LOOKUP, (flat, table), (rows,), NoOptions())
    yield _reshape(tensors, rows, output)


def _takes_rows(tensors: Tensors, node: Node) -> bool:
    table, ids = (tensors[index] for index in node.inputs)
    return (
        node.options == GatherOptions()
        and table.data is not None
        and table.type == TensorType.FLOAT32
        and len(table.static_shape) == 2
        and ids.type == TensorType.INT32
        and ids.shape is not None
        and ids.shape_signature is None
    )


def _reshape(tensors: Tensors, x: int, y: int) -> Node:
    shape = tensors[y].static_shape
    operand = tensors.constant(f"{tensors[y].name}/shape", np.array(shape, np.int32))
    return Node(RESHAPE, (x, operand), (y,), ReshapeOptions(shape))


def _rows(tensors: Tensors, like: int, shape: tuple[int, ...]) -> int:
    """Add a tensor like another one, flattened to rows."""
    spec = tensors[like]
    return tensors.push(replace(spec, shape=shape, name=f"{spec.name}/rows", data=None, quantization=None))
