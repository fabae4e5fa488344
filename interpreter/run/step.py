"""A node that is ready to run, with all that is known beforehand."""

from collections.abc import Callable
from typing import Any, NoReturn

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import FAULTS, LiteclError, fault, locate
from litecl.interpreter.graph import Array, Node
from litecl.interpreter.op import ControlOp, Op


@dataclass(frozen=True, eq=False)
class Step:
    """A node at a position of its subgraph's list, with the kernel chosen for it."""

    index: int
    node: Node
    run: Callable[..., list[Array]]
    checked: bool  # shapes were checked at preparation
    plain: bool  # checked, and needs neither context nor states
    constants: tuple[Array | None, ...]  # the operands' values, None for absent or fed ones
    fed: tuple[tuple[int, int], ...]  # positions and tensors of the operands that get a value at run time
    passed: dict[str, object]  # the shapes and values that last passed the checks, and the memory they need
    drop: tuple[int, ...]
    need_bytes: int  # of outputs and temporaries; 0 if shapes are unknown or the node calls subgraphs

    @property
    def remembers(self) -> bool:
        """Return whether the kernel keeps state between runs."""
        op = self.node.op
        return isinstance(op, Op) and not op.pure and op.bind is not None


def calls(node: Node) -> bool:
    """Return whether a node runs subgraphs."""
    return isinstance(node.op, ControlOp) and bool(node.op.callees(node.options))


def mark(x: Array) -> tuple[Any, ...]:
    """Return what shape inference may use of an array: its shape, and elements that may be a shape or a range."""
    kind = x.dtype.kind
    valued = (kind == "i" and x.size <= 64) or (kind == "f" and not x.ndim)
    return (*x.shape, x.tobytes()) if valued else x.shape


RAISED = (LiteclError, *FAULTS)
"""The exceptions that operators raise."""


def raise_located(error: Exception, doing: str, node: Node, subgraph: int, index: int) -> NoReturn:
    """Raise an error with the place of its node; numpy's errors become ModelErrors."""
    where = f"while {doing} {node.op.name} (subgraph {subgraph}, node {index})"
    if isinstance(error, LiteclError):
        locate(error, node.op.name, where)
        raise error
    if node.op.custom and not isinstance(node.op, ControlOp) and not node.op.pure:
        raise error  # a user's own function: its errors are the user's
    wrapped = fault(error)
    locate(wrapped, node.op.name, where)
    raise wrapped from error
