"""Operators that no model file contains: passes combine several nodes into one."""

from typing import Any, Never

from litecl.interpreter.errors import DelegateError
from litecl.interpreter.op import Op


def composed(name: str, options: type) -> Op:
    """Return an operator that a device runs in place of several nodes; the interpreter runs the nodes."""

    def run(*given: Any) -> Never:
        raise DelegateError(f"{name} combines other nodes, and the interpreter runs those")

    return Op(name, options, infer=run, run=run)
