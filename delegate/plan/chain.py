"""Finds element-wise operators one after another that take the place of several launches (delegate/ops/chain.py)."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from litecl.delegate.cl_op import Activation
from litecl.delegate.kit.claims import fused_activation
from litecl.delegate.ops.chain import OPERANDS, Link, chain, operands_of, step_of
from litecl.delegate.plan.steps import Work
from litecl.interpreter.graph import ABSENT, Node
from litecl.interpreter.op import ControlOp
from litecl.interpreter.schema import TensorType

if TYPE_CHECKING:
    from litecl.delegate.plan.scope import Scope


@dataclass
class _Chain:
    """A chain as it grows: the tensor that it begins with and the one that it has come to, its links and its nodes.

    launches: what the nodes take one by one. open: whether the last of them could fuse an activation.
    """

    x: int
    y: int
    links: list[Link]
    nodes: list[int]
    launches: int = 1
    open: bool = False


def chain_from(scope: "Scope", index: int) -> Work | None:
    """The launch of a chain that begins with a node, if it takes the place of several."""
    node = scope.graph.nodes[index]
    starts = (_start(scope, index, position) for position in range(len(node.inputs)))
    found = next((start for start in starts if start is not None), None)
    if found is None:
        return None
    while _grow(scope, index, found):
        pass
    if found.launches == 1:
        return None
    scope.fuse(found.nodes)
    x, y = scope.newest(found.x), scope.operand(found.y, writes_rows=True)
    return Work(index, chain(x, found.links, y, scope.lowered.target), scope.subgraph)


def _start(scope: "Scope", index: int, position: int) -> _Chain | None:
    node = scope.graph.nodes[index]
    links = _links(scope, index, index, position)
    if links is None:
        return None
    return _Chain(node.inputs[position], node.outputs[0], links, [index], open=_can_fuse(scope, node))


def _can_fuse(scope: "Scope", node: Node) -> bool:
    """Whether a launch of the node alone could apply the activation that follows it."""
    return scope.cl_op(node).fuses_activation and fused_activation(node.options) == Activation()


def _grow(scope: "Scope", index: int, found: _Chain) -> bool:
    """Adds what follows a chain, if it can be part of it."""
    following, reader = scope.activation_after(found.y), scope.only_reader(found.y)
    if following is not None:
        activation, nodes = following
        last, launches, can_fuse = found.links.pop(), len(nodes) * (not found.open), False
        links = _with_activation(last, activation)
    elif reader is not None:
        node, nodes = scope.graph.nodes[reader], (reader,)
        if isinstance(node.op, ControlOp):
            return False
        added = _links(scope, index, reader, node.inputs.index(found.y))
        if added is None or len(operands_of([*found.links, *added])) > OPERANDS:
            return False
        links, launches, can_fuse = added, 1, _can_fuse(scope, node)
    else:
        return False
    found.links += links
    found.nodes += nodes
    found.y, found.launches, found.open = scope.graph.nodes[nodes[-1]].outputs[0], found.launches + launches, can_fuse
    return True


def _links(scope: "Scope", first: int, index: int, position: int) -> list[Link] | None:
    """The steps of a node whose input at ``position`` is the value so far, if they can be taken where ``first`` is."""
    node = scope.graph.nodes[index]
    cl_op = scope.cl_op(node)
    if ABSENT in node.inputs or not (cl_op.chains or cl_op.activates):
        return None
    given = [scope.specs[t] for t in (*node.inputs, *node.outputs)]
    if any(spec.type != TensorType.FLOAT32 for spec in given) or given[position].size != given[-1].size:
        return None
    if cl_op.activates is not None and (activation := cl_op.activates(node.options)) is not None:
        return [Link(activation.function, None, activation)]
    others = [t for i, t in enumerate(node.inputs) if i != position]
    step = step_of(node.op.name, position) if cl_op.chains else None
    if step is None or not all(scope.is_there(t, first) for t in others):
        return None
    link = Link(step, next((scope.newest(t) for t in others), None))
    fused = fused_activation(node.options)
    return [link] if fused == Activation() else _with_activation(link, fused)


def _with_activation(link: Link, activation: Activation) -> list[Link]:
    """A step and the activation after it, in one where that is a clamp."""
    if link.operand is not None and link.activation == Activation() and activation.function == "CLAMP":
        return [replace(link, activation=activation)]
    return [link, Link(activation.function, None, activation)]
