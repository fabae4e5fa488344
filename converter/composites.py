"""Functions that stand for one operation, whatever their bodies compute.

TensorFlow marks them with the attribute ``_implements``: a plain name, or a name with attributes.
"""

from litecl.converter.graph import Callee, Function

KERAS_LSTM = "litecl.lstm"

COMPOSITES = frozenset({KERAS_LSTM})


def composite_of(function: Function) -> Callee | None:
    """The operation that a function stands for, if it is one of ``COMPOSITES``."""
    mark = function.attrs.get("_implements")
    named = Callee(mark) if isinstance(mark, str) else mark
    return named if isinstance(named, Callee) and named.name in COMPOSITES else None
