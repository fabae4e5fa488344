"""Makes litecl replace other packages that run TensorFlow Lite models, so that programs need no change."""

import logging
import sys
from contextlib import ExitStack
from importlib import import_module
from types import ModuleType
from typing import Any

from litecl.drop_in.stand_in import StandIn
from litecl.interpreter.errors import ArgumentError

_LOG = logging.getLogger("litecl")

_INTERPRETER = {"interpreter": "litecl.drop_in.interpreter"}
_COMPILED = {
    name: f"litecl.{name}"
    for name in ("compiled_model", "environment", "hardware_accelerator", "options", "tensor_buffer")
} | dict.fromkeys(("cpu_kernel_mode", "cpu_options", "gpu_options"), "litecl.options")
PACKAGES = {
    "ai_edge_litert": _INTERPRETER | _COMPILED,
    "tflite_runtime": _INTERPRETER,
    "tensorflow": {"lite": "litecl.drop_in.tensorflow_lite"},
}
"""The packages that litecl can stand in for: which of its modules take the place of which of theirs."""

_VERSIONS = {"ai_edge_litert": "2.1.0", "tflite_runtime": "2.14.0", "tensorflow": "2.20.0"}
"""The versions whose interfaces these modules have, for programs that ask for one where the package is absent."""


def install(package: str, options: dict[str, Any]) -> ExitStack:
    """See ``litecl.install_as``."""
    if package not in PACKAGES:
        raise ArgumentError(f"install_as: expected one of {', '.join(PACKAGES)}, got {package!r}")
    from litecl.delegate.claim.options import CLOptions
    from litecl.drop_in import interpreter

    CLOptions(**{name: value for name, value in options.items() if name != "cpu"})  # checked here, not at first use
    undo = ExitStack()
    undo.callback(interpreter.DEFAULTS.update, dict(interpreter.DEFAULTS))
    undo.callback(interpreter.DEFAULTS.clear)
    interpreter.DEFAULTS.update(options)
    root = _root(package, undo)
    for name, ours in PACKAGES[package].items():
        _replace(root, name, import_module(ours), undo)
    return undo


def _root(package: str, undo: ExitStack) -> ModuleType:
    """Return the package itself, so that all that litecl has not is still found there; or an empty one for it."""
    try:
        return import_module(package)
    except ImportError:
        stand_in = StandIn(package, _VERSIONS[package])
        sys.meta_path.insert(0, stand_in)
        undo.callback(sys.meta_path.remove, stand_in)
        sys.modules[package] = stand_in.module
        undo.callback(sys.modules.pop, package, None)
        return stand_in.module


def _replace(root: ModuleType, name: str, ours: ModuleType, undo: ExitStack) -> None:
    """Make a module of ours the submodule of a package, and remember what was there."""
    full = f"{root.__name__}.{name}"
    before = sys.modules.get(full)
    if before is not None and before is not ours and root.__name__ != "tensorflow":
        _LOG.warning("%s was already imported: modules that imported names from it keep them", full)
    undo.callback(_restore, sys.modules, full, before)
    undo.callback(_restore, root.__dict__, name, root.__dict__.get(name))
    sys.modules[full] = ours
    setattr(root, name, ours)


def _restore(names: dict[str, Any], name: str, before: Any) -> None:
    if before is None:
        names.pop(name, None)
    else:
        names[name] = before
