"""Fuses graphs of element-wise nodes of one shape, on a CPU, where chains would store results between them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from litecl.delegate.cl_op import Activation
from litecl.delegate.ops import CL_OPS
from litecl.delegate.ops.elementwise import ELEMENTWISE, ElementStep, ElementwiseOptions, rows_of
from litecl.delegate.ops.unary import CL_OPS as FUNCTIONS
from litecl.delegate.plan.activations import activation_of
from litecl.delegate.plan.fusion import may_be_one
from litecl.delegate.plan.graph import NONE, RegionGraph, RegionNode
from litecl.interpreter.graph import ABSENT, Shape
from litecl.interpreter.schema import TensorType

_MOST_STEPS, _MOST_INPUTS, _MOST_OUTPUTS = 32, 8, 8
_LEAST_ROW = 8  # elements that follow each other; each row costs time to begin

_FLOAT, _INT, _BOOL = TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL
_ARITHMETIC = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")
_COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
_Types = tuple[TensorType, ...]
_MACROS: Mapping[tuple[str, _Types], str] = {
    **{(cl_op.op.name, (_FLOAT, _FLOAT)): cl_op.op.name for cl_op in FUNCTIONS if cl_op.activates is None},
    **{(name, (_FLOAT,) * 3): name for name in (*_ARITHMETIC, "DIV", "SQUARED_DIFFERENCE", "PRELU")},
    **{(name, (_INT,) * 3): name for name in _ARITHMETIC},
    **{(name, (of, of, _BOOL)): name for name in _COMPARISONS for of in (_FLOAT, _INT)},
    **{(name, (_BOOL,) * 3): name for name in ("LOGICAL_AND", "LOGICAL_OR")},
    **{(name, (_BOOL, of, of, of)): "SELECT" for name in ("SELECT", "SELECT_V2") for of in (_FLOAT, _INT)},
    ("LOGICAL_NOT", (_BOOL, _BOOL)): "IS_FALSE",
    ("CAST", (_BOOL, _FLOAT)): "FLOAT_OF_MASK",
    ("CAST", (_BOOL, _INT)): "INT_OF_MASK",
    ("CAST", (_INT, _FLOAT)): "FLOAT_OF_INT",
}
"""The macros of kernels_cl/elementwise.cl, by operator and types of inputs and output."""


def elementwise(graph: RegionGraph) -> RegionGraph:
    """Fuse connected nodes that run element by element over one shape, if that saves launches."""
    wholes, fused = dict[int, RegionNode](), set[int]()
    for parts in _runs(graph):
        whole = _whole(graph, parts)
        if whole is not None:
            wholes[whole.at] = whole
            fused.update(part.at for part in parts)
    return graph.with_nodes([wholes.get(n.at, n) for n in graph.nodes if n.at in wholes or n.at not in fused])


def _runs(graph: RegionGraph) -> Iterator[Sequence[RegionNode]]:
    """Yield nodes of one shape, connected by tensors, whose results no other node reads before the last of them."""
    runs: dict[Shape, list[RegionNode]] = {}
    growing: dict[int, Shape] = {}  # results of these runs

    def ended(shape: Shape) -> Iterator[Sequence[RegionNode]]:
        run = runs.pop(shape)
        for node in run:
            del growing[node.outputs[0]]
        return _connected(graph, run)

    for node in graph.nodes:
        shape = _shape(graph, node)
        for other in {growing[t] for t in node.reads if t in growing} - {shape}:
            yield from ended(other)
        if shape is not None:
            runs.setdefault(shape, []).append(node)
            growing[node.outputs[0]] = shape
            if len(runs[shape]) == _MOST_STEPS:
                yield from ended(shape)
    for shape in [*runs]:
        yield from ended(shape)


def _connected(graph: RegionGraph, run: Sequence[RegionNode]) -> Iterator[Sequence[RegionNode]]:
    """Divide a run into parts that share no tensor but single numbers."""
    parts: list[tuple[list[RegionNode], set[int]]] = []
    for node in run:
        tensors = {t for t in (*node.reads, *node.outputs) if _literal(graph, t) is None}
        joined = [part for part in parts if not tensors.isdisjoint(part[1])]
        parts = [part for part in parts if tensors.isdisjoint(part[1])]
        parts.append(([*(n for nodes, _ in joined for n in nodes), node], tensors.union(*(own for _, own in joined))))
    for nodes, _ in parts:
        yield sorted(nodes, key=lambda node: node.at)


def _shape(graph: RegionGraph, node: RegionNode) -> Shape | None:
    """Return the shape of a node's result if the kernel can compute it, else None."""
    if node.cl_op is None or node.in_place or node.states or ABSENT in node.inputs:
        return None
    if node.fused and not (graph.is_inner and node.activation != NONE):
        return None
    if not replace(node, activation=NONE).is_plain or _macro(graph, node) is None:
        return None
    shape = graph.specs[node.outputs[0]].static_shape
    if 0 in shape:
        return None
    if node.node.op.name == "SELECT" and graph.specs[node.inputs[0]].static_shape != shape:
        return None  # its condition of rank 1 chooses whole rows
    return shape


def _macro(graph: RegionGraph, node: RegionNode) -> str | None:
    """Return the macro that computes a node's operator; None if there is none, or if the operator is a user's."""
    outputs = [graph.specs[t] for t in node.outputs]
    types = tuple(graph.specs[t].type for t in (*node.inputs, *node.outputs))
    if (own := activation_of(node)) is not None:
        return f"ACTIVATION_{own.function}" if types == (_FLOAT, _FLOAT) else None
    macro = _MACROS.get((node.node.op.name, types)) if types[-1] == _FLOAT or node.activation == NONE else None
    known = CL_OPS.get(node.cl_op.op) if macro and node.cl_op else None
    return macro if known and known.select(graph.inputs_of(node), outputs) is node.cl_op else None


def _whole(graph: RegionGraph, parts: Sequence[RegionNode]) -> RegionNode | None:
    """Return one node for connected parts, at the place of the last; None if it isn't valid, or a chain is good enough.

    A chain stores its values between steps in the first-level cache; in a loop of small tensors that takes long.
    """
    own = {part.at for part in parts}
    results = [t for part in parts for t in part.outputs if _is_result(graph, t, own)]
    computed = {t for part in parts for t in part.outputs}
    read = dict.fromkeys(t for part in parts for t in part.reads if t not in computed and _literal(graph, t) is None)
    if not (0 < len(read) <= _MOST_INPUTS and 0 < len(results) <= _MOST_OUTPUTS):
        return None
    shape = graph.specs[results[0]].static_shape
    nest = rows_of(shape, [graph.specs[t].static_shape for t in read])
    if nest.dims and nest.row < _LEAST_ROW:
        return None
    is_chain = len(parts) - sum(_follows(graph, part, own) for part in parts) == 1
    if len(parts) == 1 or (is_chain and not graph.is_inner):
        return None
    values = {tensor: i for i, tensor in enumerate((*read, *(part.outputs[0] for part in parts)))}
    numbers: list[np.generic] = []
    steps = tuple(_step(graph, part, values, numbers) for part in parts)
    options = ElementwiseOptions(shape, steps, tuple(values[tensor] for tensor in results), tuple(numbers))
    *others, last = parts
    whole = last.behind(*others, kernel=ELEMENTWISE, inputs=[*read], options=options, outputs=results)
    whole = replace(whole, activation=NONE)
    return whole if may_be_one(graph, whole) else None


def _follows(graph: RegionGraph, node: RegionNode, own: Collection[int]) -> bool:
    """Return whether a chain would compute a node together with the one before it."""
    tensors = (*node.inputs, *node.outputs)
    before = [graph.producer(t) for t in node.inputs if graph.only_reader(t) is node]
    return all(graph.specs[t].type == _FLOAT for t in tensors) and any(part and part.at in own for part in before)


def _is_result(graph: RegionGraph, tensor: int, own: Collection[int]) -> bool:
    """Return whether anything but the nodes ``own`` needs a tensor."""
    needed = tensor in graph.kept or tensor in graph.given
    return needed or any(reader.at not in own for reader in graph.consumers(tensor))


def _step(graph: RegionGraph, node: RegionNode, values: Mapping[int, int], numbers: list[np.generic]) -> ElementStep:
    """Return a node as an expression of the values that it reads; constants are appended to ``numbers``."""

    def constant(macro: str, number: np.generic) -> str:
        numbers.append(number)
        return f"{macro}({len(numbers) - 1})"

    def activated(macro: str, operands: Sequence[str], activation: Activation) -> str:
        return f"{macro}({','.join([*operands, *(constant('BOUND', bound) for bound in activation.bounds)])})"

    operands = []
    for tensor in node.inputs:
        number = _literal(graph, tensor)
        is_float = isinstance(number, np.floating)
        operands.append(
            f"v{values[tensor]}" if number is None else constant("NUMBER" if is_float else "INTEGER", number)
        )
    macro, own = str(_macro(graph, node)), activation_of(node)
    expression = f"{macro}({','.join(operands)})" if own is None else activated(macro, operands, own)
    if node.activation != NONE:
        expression = activated(f"ACTIVATION_{node.activation.function}", [expression], node.activation)
    return ElementStep(graph.specs[node.outputs[0]].type, expression)


def _literal(graph: RegionGraph, tensor: int) -> np.generic | None:
    """Return a constant that is a single number; None for any other tensor."""
    value = graph.value(tensor)
    if value is None or value.size != 1 or graph.specs[tensor].type not in (_FLOAT, _INT):
        return None
    number: np.generic = value.flat[0]
    return number
