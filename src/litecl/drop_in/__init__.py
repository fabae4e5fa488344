"""Makes litecl replace other packages that run TFLite models, so that programs work unchanged."""

import sys
from contextlib import ExitStack
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from litecl.drop_in.stand_in import StandIn
from litecl.interpreter.errors import ArgumentError

_INTERPRETER = {"interpreter": "litecl.drop_in.interpreter"}
_COMPILED = {
    name: f"litecl.{name}"
    for name in ("compiled_model", "environment", "hardware_accelerator", "options", "tensor_buffer")
} | dict.fromkeys(("cpu_kernel_mode", "cpu_options", "gpu_options"), "litecl.options")
PACKAGES = {
    "ai_edge_litert": _INTERPRETER | _COMPILED,
    "tflite_runtime": _INTERPRETER,
    "tensorflow": {
        "lite.python.interpreter": "litecl.drop_in.interpreter",  # before lite itself is replaced
        **dict.fromkeys(("compat.v1.lite", "compat.v2.lite", "lite"), "litecl.drop_in.tensorflow_lite"),
    },
}
"""The packages that litecl can stand in for, with litecl's replacement for each of their modules."""

_NOT_OF_A_DELEGATE = ("cpu", "always")

_VERSIONS = {"ai_edge_litert": "2.1.0", "tflite_runtime": "2.14.0", "tensorflow": "2.20.0"}
"""The versions whose interfaces these modules provide, reported if the package is absent."""


def install(package: str, options: dict[str, Any]) -> ExitStack:
    """See ``litecl.install_as``."""
    if package not in PACKAGES:
        raise ArgumentError(f"install_as: expected one of {', '.join(PACKAGES)}, got {package!r}")
    from litecl.delegate.claim.options import CLOptions
    from litecl.drop_in import interpreter

    CLOptions(
        **{name: value for name, value in options.items() if name not in _NOT_OF_A_DELEGATE}
    )  # checked here, not at first use
    undo = ExitStack()
    undo.callback(interpreter.DEFAULTS.update, dict(interpreter.DEFAULTS))
    undo.callback(interpreter.DEFAULTS.clear)
    interpreter.DEFAULTS.update(options)
    root = _root(package, undo)
    modules = {name: import_module(ours) for name, ours in PACKAGES[package].items()}  # one inspects what it replaces
    for name, ours in modules.items():
        _replace(root, name, ours, undo)
    return undo


def _root(package: str, undo: ExitStack) -> ModuleType:
    """Return the package, which still provides everything that litecl lacks, or an empty stand-in if it is absent."""
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
    """Put a module of ours in place of a package's submodule. undo: restores the original."""
    *parents, last = name.split(".")
    holder, path = root, root.__name__
    for each in parents:
        path = f"{path}.{each}"
        holder = _package(holder, each, path, undo)
    full = f"{path}.{last}"
    before = sys.modules.get(full)
    if before is not None and before is not ours and root.__name__ != "tensorflow":
        from litecl.delegate.progress import logger  # installing imports no delegate

        logger().warning("%s was already imported: modules that imported names from it keep them", full)
    _put(holder, last, full, ours, undo)


def _package(holder: ModuleType, name: str, full: str, undo: ExitStack) -> ModuleType:
    """Return a subpackage; an empty one if there is none."""
    try:
        return import_module(full)
    except ImportError:
        package = ModuleType(full)
        package.__spec__, package.__path__ = ModuleSpec(full, None, is_package=True), []
        _put(holder, name, full, package, undo)
        return package


def _put(holder: ModuleType, name: str, full: str, module: ModuleType, undo: ExitStack) -> None:
    undo.callback(_restore, sys.modules, full, sys.modules.get(full))
    undo.callback(_restore, holder.__dict__, name, holder.__dict__.get(name))
    sys.modules[full] = module
    setattr(holder, name, module)


def _restore(names: dict[str, Any], name: str, before: Any) -> None:
    if before is None:
        names.pop(name, None)
    else:
        names[name] = before
