"""Places of operands that need no memory of their own: what is joined lies in the result, what is cut in its source."""

from typing import TYPE_CHECKING

from litecl.delegate.cl_op import Move, Operand
from litecl.delegate.kit.claims import bits
from litecl.delegate.kit.strided import copy, is_dense, offset, row_step, same_steps, view_of
from litecl.delegate.plan.steps import Part, Within, Work
from litecl.delegate.quantized.integers import alike
from litecl.interpreter.graph import Array
from litecl.interpreter.op import ControlOp
from litecl.interpreter.schema import TensorType

if TYPE_CHECKING:
    from litecl.delegate.plan.scope import Scope


def joined(scope: "Scope", tensor: int, writes_rows: bool) -> Operand | None:
    """An operand within the result of a node that does no more than put a tensor there, if the tensor may lie there.

    writes_rows: whether what computes the tensor can do so row by row into a wider one.
    """
    spec = scope.specs[tensor]
    if spec.data is not None or spec.is_variable:
        return None
    for reader in scope.readers(tensor):
        found = _place(scope, tensor, reader)
        if found is None:
            continue
        whole, place = found
        step, start = row_step(place), offset(place) * spec.dtype.itemsize
        if step is None or start % scope.lowered.alignment:
            continue
        if not is_dense(place) and not (writes_rows and _all_read_rows(scope, tensor)):
            continue
        operand = Operand(spec, None if is_dense(place) else step)
        scope.lowered.aliases[operand] = Within(whole, start)
        return operand
    return None


def _place(scope: "Scope", tensor: int, reader: int) -> tuple[Operand, Array] | None:
    """The result of a node that puts a tensor into it as it is, and the tensor's place there."""
    node = scope.graph.nodes[reader]
    joins = None if isinstance(node.op, ControlOp) else scope.cl_op(node).joins
    position = node.inputs.index(tensor)
    if joins is None or node.inputs.count(tensor) > 1:
        return None
    if scope.specs[tensor].quantization is not None and alike(scope.specs[node.outputs[0]], scope.specs[tensor]):
        return None  # it is rescaled on its way
    whole = scope.operand(node.outputs[0], scope.cl_op(node).writes_rows)
    places = joins(node.options, scope.given(node), view_of(whole))
    return (whole, places[position]) if position < len(places) else None


def _all_read_rows(scope: "Scope", tensor: int) -> bool:
    """Whether everything that reads a tensor may meet it within a wider one."""
    nodes = [scope.graph.nodes[i] for i in scope.readers(tensor)]
    known = scope.specs[tensor].type == TensorType.FLOAT32 and tensor not in scope.kept
    return known and all(not isinstance(node.op, ControlOp) and scope.cl_op(node).reads_rows for node in nodes)


def move(scope: "Scope", index: int, move: Move) -> list[Part]:
    """Nothing where elements are in their place, or may be read where they are; else a copy."""
    source, into = move.source, move.into
    if _start(scope, source, move.at) == _start(scope, into, move.to) and same_steps(move.at, move.to):
        return []
    if _may_read(scope, index, move):
        scope.lowered.aliases[into] = Within(source, offset(move.at) * source.spec.dtype.itemsize)
        return []
    launch = copy(source, move.at, into, move.to, bits(source.spec), scope.lowered.target)
    return [Work(index, launch, scope.subgraph)]


def _start(scope: "Scope", operand: Operand, elements: Array) -> tuple[Operand, int]:
    """Where the first of some elements lies."""
    root, start = scope.lowered.place(operand)
    return root, start + offset(elements) * operand.spec.dtype.itemsize


def _may_read(scope: "Scope", index: int, move: Move) -> bool:
    """Whether all of an operand may lie within another: side by side, where nothing writes until it is read."""
    source, into, node = move.source, move.into, scope.graph.nodes[index]
    start = offset(move.at) * source.spec.dtype.itemsize
    if source.data is not None or scope.has_place(into) or start % scope.lowered.alignment:
        return False
    if scope.overwritten.intersection(node.inputs) or scope.kept.intersection(node.outputs):
        return False
    return move.to.size == into.spec.size and is_dense(move.at) and is_dense(move.to)
