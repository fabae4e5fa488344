"""TensorFlow Lite models: the model graph, its file format and the CPU reference runtime."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from litecl.interpreter.details import OpDetails, TensorDetails
from litecl.interpreter.device_tensor import DeviceTensor, DeviceTensors
from litecl.interpreter.interpreter import Interpreter
from litecl.interpreter.resolver import OpResolverType

if TYPE_CHECKING:
    from litecl.interpreter.loading import Delegate, load_delegate
    from litecl.interpreter.ops.checkpoint import checkpoint_ops
    from litecl.interpreter.registered import InterpreterWithCustomOps
    from litecl.interpreter.signature import SignatureRunner

__all__ = [
    "Delegate",
    "DeviceTensor",
    "DeviceTensors",
    "Interpreter",
    "InterpreterWithCustomOps",
    "OpDetails",
    "OpResolverType",
    "SignatureRunner",
    "TensorDetails",
    "checkpoint_ops",
    "load_delegate",
]

_MODULES = {
    "Delegate": "loading",
    "InterpreterWithCustomOps": "registered",
    "SignatureRunner": "signature",
    "checkpoint_ops": "ops.checkpoint",
    "load_delegate": "loading",
}


def __getattr__(name: str) -> _Any:
    """Import what few processes use on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return sorted(__all__)
