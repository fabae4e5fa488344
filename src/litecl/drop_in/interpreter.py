"""The replacement of another package's ``interpreter``: litecl's, with a delegate by default.

TFLite's interpreter applies XNNPACK by default, so that programs without a delegate still run fast. Here a
``CLDelegate`` takes its place.
"""

from collections.abc import Sequence
from typing import Any

from litecl import interpreter as plain
from litecl.interpreter import Delegate, OpResolverType, SignatureRunner, load_delegate
from litecl.interpreter.registered import refuse
from litecl.interpreter.resolver import resolver

__all__ = ["Delegate", "Interpreter", "InterpreterWithCustomOps", "OpResolverType", "SignatureRunner", "load_delegate"]

DEFAULTS: dict[str, Any] = {}
"""Keywords of the ``CLDelegate`` of an interpreter without delegates.

"cpu": True means no delegate; "dynamic_range" applies without one too. "always": True adds one even if the program's
resolver excludes delegates.
"""

_WITH_DELEGATE = (OpResolverType.AUTO, OpResolverType.BUILTIN)


class Interpreter(plain.Interpreter):
    """litecl's interpreter, with a default CLDelegate if the resolver is AUTO or BUILTIN and no delegate is given."""

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
        if not delegates and not keywords.get("delegates") and _may_have_delegate(experimental_op_resolver_type):
            delegates = _default(num_threads)
            if delegates is None and "dynamic_range" in DEFAULTS:
                keywords.setdefault("dynamic_range", DEFAULTS["dynamic_range"])
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


def _may_have_delegate(asked: OpResolverType) -> bool:
    """Return whether a program's resolver allows a default delegate. If not, warn once how to get one anyway."""
    kind = resolver(asked)
    if kind in _WITH_DELEGATE or DEFAULTS.get("always"):
        return True
    if kind == OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES and not DEFAULTS.get("cpu"):
        from litecl.delegate.report import warn

        warn(
            "the program asks for an interpreter without a delegate (BUILTIN_WITHOUT_DEFAULT_DELEGATES), so its models "
            "run on numpy; `python -m litecl.run_as --always` or install_as(..., always=True) runs them on the device"
        )
    return False


def _default(num_threads: Any) -> list[Any] | None:
    from litecl.delegate import CLDelegate

    options = dict(DEFAULTS)
    options.pop("always", None)
    if options.pop("cpu", False):
        return None
    if isinstance(num_threads, int) and num_threads > 0:
        options.setdefault("num_threads", num_threads)
    return [CLDelegate(**options)]
