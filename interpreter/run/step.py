"""A node that is ready to run, with all that is known of it beforehand."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from litecl.interpreter.graph import Array, Node
from litecl.interpreter.op import ControlOp


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


def calls(node: Node) -> bool:
    """Return whether a node runs subgraphs."""
    return isinstance(node.op, ControlOp) and bool(node.op.callees(node.options))


def mark(x: Array) -> tuple[Any, ...]:
    """Return what shape inference may use: an array's shape, and its elements if they may be a shape or a range."""
    kind = x.dtype.kind
    valued = (kind == "i" and x.size <= 64) or (kind == "f" and not x.ndim)
    return (*x.shape, x.tobytes()) if valued else x.shape
