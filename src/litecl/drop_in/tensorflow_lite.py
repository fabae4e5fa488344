"""The replacement of ``tf.lite``: litecl's interpreter, and TensorFlow for the rest if it is installed."""

import sys
from types import SimpleNamespace
from typing import Any

from litecl.drop_in.interpreter import Interpreter, OpResolverType, load_delegate

__all__ = ["Interpreter", "OpResolverType", "experimental"]

_lite: Any = getattr(sys.modules.get("tensorflow"), "lite", None)
_rest = vars(_lite.experimental) if _lite is not None else {}
experimental = SimpleNamespace(**{**_rest, "OpResolverType": OpResolverType, "load_delegate": load_delegate})


def __getattr__(name: str) -> Any:
    submodule = sys.modules.get(f"tensorflow.lite.{name}")
    if submodule is not None and not hasattr(_lite, name):
        return submodule
    if _lite is None:
        raise AttributeError(f"litecl replaces tensorflow.lite, and has no {name!r} there")
    return getattr(_lite, name)
