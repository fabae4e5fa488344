"""A node that is ready to run, with all that is known of it beforehand."""

from collections.abc import Callable
from typing import Any, NoReturn

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import FAULTS, LiteclError, fault, locate
from litecl.interpreter.graph import Array, Node
from litecl.interpreter.op import ControlOp, Op


@dataclass(frozen=True, eq=False)
class Step:
    """A node of a subgraph, at a position of its list, with the kernel that was chosen for it."""

    index: int
    node: Node
    run: Callable[..., list[Array]]
    checked: bool  # shapes were checked at preparation
    plain: bool  # checked, and needs neither context nor states
    constants: tuple[Array | None, ...]  # the operands' values, None for those that are absent or fed
    fed: tuple[tuple[int, int], ...]  # positions and tensors of the operands that have a value only now
    passed: dict[str, object]  # what last passed the checks
    drop: tuple[int, ...]
    need_bytes: int  # of outputs and temporaries, where shapes are known and no subgraph makes them

    @property
    def remembers(self) -> bool:
        """Return whether the kernel keeps something between runs."""
        op = self.node.op
        return isinstance(op, Op) and not op.pure and op.bind is not None


def calls(node: Node) -> bool:
    """Return whether a node runs subgraphs."""
    return isinstance(node.op, ControlOp) and bool(node.op.callees(node.options))


def mark(x: Array) -> tuple[Any, ...]:
    """Return what shape inference may use: an array's shape, and its elements if they may be a shape or a range."""
    kind = x.dtype.kind
    valued = (kind == "i" and x.size <= 64) or (kind == "f" and not x.ndim)
    return (*x.shape, x.tobytes()) if valued else x.shape


RAISED = (LiteclError, *FAULTS)
"""The exceptions of operators."""


def raise_located(error: Exception, doing: str, node: Node, subgraph: int, index: int) -> NoReturn:
    """Say of an error which node it comes from; what numpy raises becomes a ModelError."""
    place = f"while {doing} {node.op.name} (subgraph {subgraph}, node {index})"
    if isinstance(error, LiteclError):
        locate(error, node.op.name, place)
        raise error
    if node.op.custom and not isinstance(node.op, ControlOp) and not node.op.pure:
        raise error  # a user's own function: its errors are the user's
    wrapped = fault(error)
    locate(wrapped, node.op.name, place)
    raise wrapped from error
