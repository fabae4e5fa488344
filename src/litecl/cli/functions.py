"""Imports TensorFlow functions by name, ``FILE.py:NAME`` or ``PACKAGE.MODULE:NAME``, for the command line."""

import errno
import importlib
import importlib.util
import os
import re
import sys
import traceback
from pathlib import Path
from typing import Any

from litecl.interpreter.errors import ConversionError

_NAME = re.compile(r"(?P<place>.+\.py|[A-Za-z_][\w.]*):(?P<name>[A-Za-z_][\w.]*)")


def is_function(source: str) -> bool:
    """Return whether a source looks like a function's name and isn't a file."""
    return _NAME.fullmatch(source) is not None and not Path(source).exists()


def require_file(source: str) -> None:
    """Raise ConversionError if a function's file doesn't exist, before TensorFlow takes seconds to load."""
    file = source.rpartition(":")[0]
    if file.endswith(".py") and not Path(file).exists():
        raise ConversionError(f"{file}: {os.strerror(errno.ENOENT)}")


def functions(source: str) -> tuple[list[Any], Any]:
    """Import a tf.function, or a tf.Module with one; return its concrete function, and the object with its variables.

    Raises ConversionError for any other object, for a function without an input signature, and if the module can't be
    imported.
    """
    match = _NAME.fullmatch(source)
    assert match is not None
    held: Any = _imported(match["place"])
    for part in match["name"].split("."):
        if not hasattr(held, part):
            raise ConversionError(f"{source}: there is no {part!r}")
        held = getattr(held, part)
    return [_concrete(source, held)], held


def _imported(source: str) -> Any:
    try:
        if not source.endswith(".py"):
            sys.path.insert(0, str(Path.cwd()))
            return importlib.import_module(source)
        path = Path(source).absolute()
        sys.path.insert(0, str(path.parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        return module
    except Exception as error:  # whatever a user's module raises
        if isinstance(error, ModuleNotFoundError) and error.name in ("tensorflow", "keras"):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise ConversionError(
            f"{source} cannot be imported: {type(error).__name__}: {error} ({where.filename}, line {where.lineno})"
        ) from error


def _concrete(source: str, held: Any) -> Any:
    """Return the concrete function of a tf.function or of a module's ``__call__``; a concrete one unchanged."""
    if hasattr(held, "structured_input_signature"):
        return held
    function: Any = held if hasattr(held, "get_concrete_function") else getattr(held, "__call__", None)  # noqa: B004
    if not hasattr(function, "get_concrete_function"):
        raise ConversionError(f"{source}: expected a tf.function, or a tf.Module with one for __call__, got {held!r}")
    try:
        return function.get_concrete_function()
    except TypeError as error:
        raise ConversionError(f"{source}: expected tf.function(input_signature=[...]) to declare its inputs") from error
