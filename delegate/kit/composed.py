"""Operators that no file has: passes make them of several nodes."""

from typing import Any, Never

from litecl.interpreter.errors import DelegateError
from litecl.interpreter.op import Op


def composed(name: str, options: type) -> Op:
    """Return an operator that a device runs in place of several nodes; the interpreter only ever sees those."""

    def run(*given: Any) -> Never:
        raise DelegateError(f"{name} is made of other nodes, which are what the interpreter runs")

    return Op(name, options, infer=run, run=run)
