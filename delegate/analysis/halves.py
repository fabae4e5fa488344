"""FLOAT16 tensors in a region: the device holds them as float32, and converts where values enter and leave.

Between those ends nothing is rounded to FLOAT16, so that results are at least as exact as the interpreter's, and what
exceeds FLOAT16 on the way is not lost. Nodes that may turn a small difference into a large one stay on the CPU, which
reads the rounded number: FLOOR and its kin, and those with results of other types.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from litecl.delegate.analysis.explicit import Explicit
from litecl.interpreter.graph import ABSENT, Node, Subgraph, TensorSpec, entries, reached
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.binary import FLOOR_DIV, FLOOR_MOD
from litecl.interpreter.ops.cast import BITCAST, CAST, CastOptions
from litecl.interpreter.ops.numeric_verify import NUMERIC_VERIFY
from litecl.interpreter.ops.quantize import DEQUANTIZE, QUANTIZE
from litecl.interpreter.ops.shape import RANK, SHAPE
from litecl.interpreter.ops.unary import CEIL, FLOOR, ROUND, SIGN
from litecl.interpreter.schema import TensorType

# Operators whose result depends on a type being FLOAT16.
_TYPED: tuple[Op | ControlOp, ...] = (BITCAST, NUMERIC_VERIFY, QUANTIZE)
_FROM_HALVES: tuple[Op | ControlOp, ...] = (CAST, DEQUANTIZE)
_TO_WHOLE: tuple[Op | ControlOp, ...] = (CEIL, FLOOR, ROUND, SIGN)
_STEPS: tuple[Op | ControlOp, ...] = (*_TO_WHOLE, FLOOR_DIV, FLOOR_MOD)
_OF_SHAPES: tuple[Op | ControlOp, ...] = (RANK, SHAPE)


def widened(source: Explicit) -> Explicit:
    """Return a model whose FLOAT16 tensors are float32, except constants that only conversions read.

    A DEQUANTIZE of halves becomes a CAST, which has nothing left to do.
    """
    if not any(spec.type == TensorType.FLOAT16 for specs in source.specs for spec in specs):
        return source
    halves = [_halves(graph, specs) for graph, specs in zip(source.model.subgraphs, source.specs, strict=True)]
    specs = [
        tuple(_wide(spec) if t in own else spec for t, spec in enumerate(specs))
        for own, specs in zip(halves, source.specs, strict=True)
    ]
    graphs = tuple(_rewritten(*pair) for pair in zip(source.model.subgraphs, halves, strict=True))
    unrounded = [_unrounded(source, index, own) for index, own in enumerate(halves)]
    rewritten = replace(source.model, subgraphs=graphs)
    return replace(source, model=rewritten, specs=specs, halves=halves, unrounded=unrounded)


def _unrounded(source: Explicit, index: int, halves: frozenset[int]) -> frozenset[int]:
    """Return the halves that a node of the device may compute, in this subgraph or for its inputs."""
    model, graph = source.model, source.model.subgraphs[index]
    entered = index in entries(model) and index not in reached(model, [n for g in model.subgraphs for n in g.nodes])
    rounded = {t for node in graph.nodes if node.op in (*_TYPED, *_TO_WHOLE, CAST) for t in node.outputs}
    rounded |= {t for t in halves if source.specs[index][t].data is not None} | {*(graph.inputs if entered else ())}
    return halves - rounded


def _halves(graph: Subgraph, specs: Sequence[TensorSpec]) -> frozenset[int]:
    used = {*graph.inputs, *graph.outputs, *(t for node in graph.nodes for t in (*node.inputs, *node.outputs))}
    plain = {t for node in graph.nodes if node.op not in (*_TYPED, *_FROM_HALVES) for t in node.inputs}
    return frozenset(
        t for t in used if t != ABSENT and specs[t].type == TensorType.FLOAT16 and (specs[t].data is None or t in plain)
    )


def _rewritten(graph: Subgraph, halves: frozenset[int]) -> Subgraph:
    tensors = tuple(
        replace(spec, type=TensorType.FLOAT32) if t in halves else spec for t, spec in enumerate(graph.tensors)
    )
    cast = CastOptions(TensorType.FLOAT32, TensorType.FLOAT32)
    nodes = (
        replace(node, op=CAST, options=cast) if node.op is DEQUANTIZE and node.inputs[0] in halves else node
        for node in graph.nodes
    )
    return replace(graph, tensors=tensors, nodes=tuple(nodes))


def _wide(spec: TensorSpec) -> TensorSpec:
    data = None if spec.data is None else spec.data.astype(np.float32)
    return replace(spec, type=TensorType.FLOAT32, data=data)


def _is_step(node: Node, halves: frozenset[int]) -> bool:
    """Return whether a result may jump where an operand changes a little, or nodes behind it, of other types, may."""
    if isinstance(node.op, ControlOp) or node.op in _OF_SHAPES:
        return False
    return node.op in _STEPS or not halves.issuperset(node.outputs)


def why_not(source: Explicit, index: int, position: int, users: Collection[object]) -> str | None:
    """Return why a node that touches FLOAT16 tensors stays on the CPU, or None. users: operators of users' kernels."""
    halves, node = source.halves[index] if source.halves else frozenset(), source.model.subgraphs[index].nodes[position]
    after = {t for _, t in source.written[index].get(position, ())}
    touched = halves.intersection((*node.inputs, *node.outputs, *after))
    if not touched:
        return None
    if node.op in _TYPED or (node.op is CAST and node.outputs[0] in halves):
        return "its result depends on the type FLOAT16, which the device holds as float32"
    if not source.unrounded[index].isdisjoint(node.inputs) and _is_step(node, halves):
        return "it needs its FLOAT16 operands rounded, which the device does at the end of a region"
    if node.op in users:
        return "a user's kernel does not take FLOAT16"
    if touched.intersection((*source.stored[index], *after)):
        return "a variable has type FLOAT16"
    return None
