"""The replacement of another package's ``interpreter``: litecl's, with a delegate by default.

TFLite's interpreter applies a delegate of its own (XNNPACK) unless it is told not to, so that programs which ask for
none still run fast. Here a ``CLDelegate`` takes that part.
"""

from collections.abc import Sequence
from typing import Any

from litecl import interpreter as plain
from litecl.interpreter import Delegate, OpResolverType, SignatureRunner, load_delegate
from litecl.interpreter.registered import refuse
from litecl.interpreter.resolver import resolver

__all__ = ["Delegate", "Interpreter", "InterpreterWithCustomOps", "OpResolverType", "SignatureRunner", "load_delegate"]

DEFAULTS: dict[str, Any] = {}
"""Keywords of the ``CLDelegate`` of an interpreter without delegates; "cpu": True means no delegate."""

_WITH_DELEGATE = (OpResolverType.AUTO, OpResolverType.BUILTIN)


class Interpreter(plain.Interpreter):
    """litecl's interpreter, with a CLDelegate where none is asked for and the resolver is AUTO or BUILTIN."""

    def __init__(
        self,
        model_path: Any = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[Any] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
        *positional: Any,
        **keywords: Any,
    ) -> None:
        delegates = experimental_delegates
        if (
            not delegates
            and not keywords.get("delegates")
            and resolver(experimental_op_resolver_type) in _WITH_DELEGATE
        ):
            delegates = _default(num_threads)
        super().__init__(
            model_path,
            model_content,
            delegates,
            num_threads,
            experimental_op_resolver_type,
            *positional,
            **keywords,
        )


class InterpreterWithCustomOps(Interpreter):
    """See ``litecl.interpreter.InterpreterWithCustomOps``."""

    def __init__(self, custom_op_registerers: Sequence[Any] | None = None, **arguments: Any) -> None:
        refuse(custom_op_registerers)
        super().__init__(**arguments)


def _default(num_threads: Any) -> list[Any] | None:
    from litecl.delegate import CLDelegate

    options = dict(DEFAULTS)
    if options.pop("cpu", False):
        return None
    if isinstance(num_threads, int) and num_threads > 0:
        options.setdefault("num_threads", num_threads)
    return [CLDelegate(**options)]
