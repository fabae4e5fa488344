"""Errors of operators: which node they come from."""

from typing import NoReturn

from litecl.interpreter.errors import FAULTS, LiteclError, fault, locate
from litecl.interpreter.graph import Node
from litecl.interpreter.op import ControlOp

RAISED = (LiteclError, *FAULTS)


def raise_from(error: Exception, doing: str, node: Node, subgraph: int, index: int) -> NoReturn:
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
