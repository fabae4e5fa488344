"""Delegates by name, as TFLite loads them from shared libraries."""

import importlib
from collections.abc import Mapping
from os import fspath
from pathlib import PurePath
from typing import Any

from litecl.interpreter.delegation import Delegate as DelegateProtocol
from litecl.interpreter.errors import ArgumentError, DelegateNotFound

NAMES = ("litecl", "opencl", "gpu")
"""The names that ``load_delegate`` knows; each is a ``CLDelegate``."""

_MODULE = "litecl.delegate"  # imported on demand: the interpreter alone needs no OpenCL


class _ByAbility(type):
    """Makes everything that can be used as a delegate an instance."""

    def __call__(cls, library: Any, options: Mapping[Any, Any] | None = None) -> Any:
        return _load(library, options)

    def __instancecheck__(cls, candidate: object) -> bool:
        return callable(getattr(candidate, "apply", None))


class Delegate(metaclass=_ByAbility):
    """TFLite's class: ``Delegate(library, options)`` loads a delegate by name, see ``load_delegate``."""


def load_delegate(library: Any, options: Mapping[Any, Any] | None = None) -> DelegateProtocol:
    """Return a delegate by name: "litecl", "opencl" or "gpu" is a ``CLDelegate``.

    options: its keywords with their values, as strings or as their own types; commas separate lists.
    Raises DelegateNotFound, which is also the ValueError and the OSError that TFLite raises, for any other name:
    litecl loads no shared libraries.
    """
    try:
        delegate: DelegateProtocol = _load(library, options)
        return delegate
    except DelegateNotFound as error:
        raise DelegateNotFound(f"Failed to load delegate from {library}\n{error}") from error


def _load(library: Any, options: Mapping[Any, Any] | None) -> Any:
    if options is not None and not isinstance(options, Mapping):
        raise ArgumentError(f"options: expected a dictionary, got {type(options).__name__}")
    try:
        name = PurePath(fspath(library)).name
    except TypeError:
        raise ArgumentError(f"library: expected a name, got {type(library).__name__}") from None
    if name not in NAMES:
        raise DelegateNotFound(f"{library}: litecl cannot load shared libraries; its delegates are {', '.join(NAMES)}")
    return importlib.import_module(_MODULE).CLDelegate.from_strings(options or {})
