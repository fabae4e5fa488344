"""Validation of an interpreter's arguments, which may have any type."""

import operator
from collections.abc import Iterable
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt

from litecl.interpreter.delegation import Delegate
from litecl.interpreter.dynamic_range import checked
from litecl.interpreter.errors import ArgumentError, LiteclError, ModelError, ShapeError
from litecl.interpreter.graph import Shape

_MOST = 2**31 - 1  # the largest dimension: files store 32 bits


def index(name: str, value: Any) -> int:
    """Return an index of a tensor, operator or subgraph as an int. Raises ArgumentError unless it is an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name}: expected an integer, got {type(value).__name__} {value!r:.100}") from None


def shape(value: npt.ArrayLike) -> Shape:
    """Return the requested dimensions. Raises ArgumentError unless they are numbers, ShapeError for invalid ones."""
    try:
        array = np.asarray(value)
        if array.dtype.kind == "c":
            raise TypeError("complex dimensions")
        dimensions = tuple(int(d) for d in array.reshape(-1))
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"resize: expected a list of dimensions, got {value!r:.100}") from error
    if array.ndim != 1:
        raise ShapeError(f"resize: expected a list of dimensions, got {value!r:.100}")
    if not all(0 <= d <= _MOST for d in dimensions):
        fault = "must not be negative" if min(dimensions) < 0 else f"are at most {_MOST}"
        raise ShapeError(f"resize: dimensions {fault}, got {list(dimensions)}")
    return dimensions


def count(name: str, value: Any) -> int | None:
    """Return an option such as ``num_threads``. Raises ModelError unless it is None or a positive integer."""
    number = None if value is None else index(name, value)
    if number is not None and number < 1:
        raise ModelError(f"{name}: expected at least 1, got {number}")
    return number


def flag(name: str, value: Any, error: type[LiteclError] = ArgumentError) -> bool:
    """Return an option that is on or off. Raises ``error`` unless it is a bool, a number or None, as LiteRT takes."""
    if value is not None and not isinstance(value, bool | np.bool_ | Number):
        raise error(f"{name}: expected True or False, got {type(value).__name__} {value!r:.100}")
    return bool(value)


def dynamic_range(value: Any, delegates: Iterable[Delegate]) -> str:
    """Return the mode in which nodes without a delegate quantize activations.

    Raises ArgumentError for an unknown mode, or one that a delegate contradicts.
    """
    if value is None:
        return "reference"
    for delegate in delegates:
        other = getattr(delegate, "dynamic_range", value)
        if other != value:
            raise ArgumentError(
                f"dynamic_range: the interpreter was given {value!r}, and {type(delegate).__name__} has {other!r}: "
                "give it to the delegate alone, which decides for the whole model"
            )
    return checked(value)


def one_of(model_path: Any, model_content: Any) -> Any:
    """Return a model's source, its path or its content. Raises ModelError unless exactly one is given."""
    given = [source for source in (model_path, model_content) if not _is_empty(source)]
    if len(given) == 1:
        if given[0] is model_content and isinstance(model_content, str):
            raise ArgumentError("model_content: expected the bytes of a file, got a str; model_path takes a path")
        return given[0]
    both = "got both" if given else "got neither, or an empty one"
    raise ModelError(f"pass exactly one of `model_path` and `model_content`: {both}")


def _is_empty(source: Any) -> bool:
    return source is None or (isinstance(source, str | bytes | bytearray | memoryview) and not source)


def delegates(*given: Iterable[Delegate] | None) -> tuple[Delegate, ...]:
    """Return all given delegates. Raises ArgumentError for anything else."""
    chosen: list[Delegate] = []
    for some in given:
        try:
            chosen.extend(() if some is None else some)
        except TypeError:
            raise ArgumentError(f"delegates: expected a list of delegates, got {type(some).__name__}") from None
    for delegate in chosen:
        if not callable(getattr(delegate, "apply", None)):
            raise ArgumentError(f"delegates: expected objects such as CLDelegate(), got {type(delegate).__name__}")
    return tuple(chosen)
