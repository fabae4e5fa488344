"""Steps that may be free: their elements are already in position, or can be read in place."""

from litecl.delegate.cl_op import Alias, Move, Operand, Step
from litecl.delegate.kit.claims import bits
from litecl.delegate.kit.strided import copy, is_dense, offset, same_steps
from litecl.delegate.plan.graph import RegionNode
from litecl.delegate.plan.steps import Part, Within
from litecl.delegate.plan.values import Values
from litecl.interpreter.graph import Array


def settled(values: Values, node: RegionNode, step: Step) -> list[Part]:
    """Return the parts for a step of a lowering; none if it needs no launch."""
    if isinstance(step, Alias):
        if step.offset or step.output.spec.size < step.source.spec.size:
            values.planning.aliases[step.output] = Within(step.source, step.offset)
            return []
        return values.assign(node.position, step.source, step.output)
    if not isinstance(step, Move):
        return [values.work(node.position, step)]
    source, into = step.source, step.into
    if _start(values, source, step.at) == _start(values, into, step.to) and same_steps(step.at, step.to):
        return []
    if _may_read(values, node, step):
        values.planning.aliases[into] = Within(source, offset(step.at) * source.spec.dtype.itemsize)
        return []
    launch = copy(source, step.at, into, step.to, bits(source.spec), values.planning.target)
    return [values.work(node.position, launch)]


def _start(values: Values, operand: Operand, elements: Array) -> tuple[Operand, int]:
    """Return the position of a view's first element: the operand with the memory, and the offset in bytes."""
    root, start = values.planning.place(operand)
    return root, start + offset(elements) * operand.spec.dtype.itemsize


def _may_read(values: Values, node: RegionNode, move: Move) -> bool:
    """Return whether ``into`` may be an alias of a part of ``source``: contiguous, aligned, and never overwritten."""
    source, into, graph = move.source, move.into, values.graph
    start = offset(move.at) * source.spec.dtype.itemsize
    if source.data is not None or values.has_place(into) or start % graph.alignment:
        return False
    if values.overwritten.intersection(node.inputs) or graph.kept.intersection(node.outputs):
        return False
    return move.to.size == into.spec.size and is_dense(move.at) and is_dense(move.to)
