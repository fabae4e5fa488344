"""Element-wise operators one after another as one launch, of a kernel that is built once for all of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from litecl.delegate.cl_op import Activation, Arg, Const, Launch, Operand, Target
from litecl.delegate.kit.claims import fused_activation
from litecl.delegate.kit.shares import elements
from litecl.delegate.kit.strided import long_rows, view, view_of, walk
from litecl.delegate.plan.steps import Work
from litecl.interpreter.graph import ABSENT, Array, Node, Shape
from litecl.interpreter.op import ControlOp
from litecl.interpreter.schema import TensorType

if TYPE_CHECKING:
    from litecl.delegate.plan.scope import Scope

_STEPS = (
    *("ADD", "SUB", "SUB_FROM", "MUL", "DIV", "DIV_INTO", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "PRELU"),
    *("ABS", "NEG", "SQUARE", "SQRT", "RSQRT", "EXP", "LOG"),
    *("CLAMP", "TANH", "LOGISTIC", "SWISH", "HARD_SWISH", "GELU", "GELU_APPROXIMATE", "ELU", "LEAKY_RELU"),
)
"""The codes of kernels_cl/chain.cl, in order."""

_REVERSED = {
    "ADD": "ADD",
    "SUB": "SUB_FROM",
    "MUL": "MUL",
    "DIV": "DIV_INTO",
    "MAXIMUM": "MAXIMUM",
    "MINIMUM": "MINIMUM",
    "SQUARED_DIFFERENCE": "SQUARED_DIFFERENCE",
}
_OPERANDS = 4  # arrays that the kernel takes beside the first


@dataclass(frozen=True, eq=False)
class Link:
    """One operator: its step, and the operand that it takes beside the value so far, if any.

    activation: the step itself, or what follows one that takes an operand, if no more than a clamp.
    """

    step: str
    operand: Operand | None = None
    activation: Activation = field(default_factory=Activation)

    @property
    def number(self) -> float | None:
        """The operand, where it is one number that is known."""
        data = None if self.operand is None else self.operand.data
        return None if data is None or data.size != 1 else float(data.reshape(()))


def step_of(name: str, position: int) -> str | None:
    """The step that an operator is whose input at ``position`` is the value so far; None if chain.cl has none."""
    return (name if name in _STEPS else None) if position == 0 else _REVERSED.get(name)


def chain(x: Operand, links: Sequence[Link], y: Operand, target: Target) -> Launch:
    """y: x after all of the steps, whose operands broadcast to its shape."""
    arrays = _arrays(links)
    given, shape = _long_rows(arrays, y) if x.row_step is None and y.row_step is None else (arrays, y.shape)
    operands = [x, *given, *[x] * (_OPERANDS - len(given))]
    path = walk(*(_view(operand, shape) for operand in (*operands, y)))
    table = [*path.steps]
    for link in links:
        plain = link.operand is None or link.number is not None
        table += [_STEPS.index(link.step), -1 if plain else 1 + [link.operand is array for array in arrays].index(True)]
    share = elements(y.spec.size, target, work=len(links))
    tables: tuple[Arg, ...] = (Const(np.array(table, np.int32)), Const(_numbers(links)), path.table)
    sizes = (*share.args, np.int32(path.row), np.int32(len(links)))
    return share.launch("chain", "chain", (*operands, y, *tables, *sizes), {}, y.spec.size * len(links))


def _long_rows(arrays: Sequence[Operand], y: Operand) -> tuple[Sequence[Operand], Shape]:
    """Arrays that every row repeats, as longer rows, if that is what they all are that have fewer elements than y."""
    longer = [(a, None) if a.spec.size == y.spec.size else long_rows(a, y.shape) for a in arrays]
    shapes = {shape for _, shape in longer if shape is not None}
    dense = all(array.row_step is None for array in arrays)
    return ([a for a, _ in longer], shapes.pop()) if dense and len(shapes) == 1 else (arrays, y.shape)


def _view(x: Operand, shape: Shape) -> Array:
    whole = x.row_step is None and x.spec.size == math.prod(shape)
    return view(shape) if whole else np.broadcast_to(view_of(x), shape)


def _arrays(links: Sequence[Link]) -> list[Operand]:
    """The operands that lie in memory, each once."""
    return list(dict.fromkeys(link.operand for link in links if link.operand is not None and link.number is None))


def _numbers(links: Sequence[Link]) -> Array:
    """Three for every step."""
    return np.array([(link.number or 0.0, *link.activation.bounds) for link in links], np.float32)


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
        if added is None or len(_arrays([*found.links, *added])) > _OPERANDS:
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
