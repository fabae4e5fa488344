"""TFLite's ``InterpreterWithCustomOps``, without native registerers."""

from collections.abc import Sequence
from typing import Any

from litecl.interpreter.errors import ArgumentError
from litecl.interpreter.interpreter import Interpreter


class InterpreterWithCustomOps(Interpreter):
    """An ``Interpreter`` under TFLite's name; ``custom_ops={name: function}`` gives it custom operators.

    custom_op_registerers: none. TFLite's are native functions that write into its own kernel registry. Raises
    ArgumentError for any.
    """

    def __init__(self, custom_op_registerers: Sequence[Any] | None = None, **arguments: Any) -> None:
        refuse(custom_op_registerers)
        super().__init__(**arguments)


def refuse(registerers: Sequence[Any] | None) -> None:
    """Raise ArgumentError for any registerer."""
    if registerers:
        raise ArgumentError(
            f"custom_op_registerers: {registerers!r:.100} would register TFLite kernels; "
            "pass custom_ops={name: function} with functions in Python"
        )
