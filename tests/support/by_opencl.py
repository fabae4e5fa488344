"""Which tests use OpenCL: a driver compiles each kernel separately, which takes most of such a test's time."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

# Functions that give a test such a device. Tests and fixtures call them by name.
_GIVERS = frozenset(
    {"tested", "several_threads", "calling_thread", "as_on_a_gpu", "as_on_an_integrated_gpu", "in_tiles", "User"}
)
_WORDS = ("OpenCL", "GPU")  # in the name of a mode


def runs_by_opencl(item: pytest.Item) -> bool:
    """Return whether a test is marked so, has a device or mode of OpenCL as a parameter, or asks for a device."""
    return (
        item.get_closest_marker("opencl") is not None
        or any(map(_is_opencl, _parameters(item)))
        or any(not _GIVERS.isdisjoint(function.__code__.co_names) for function in _functions(item))
    )


def _parameters(item: pytest.Item) -> list[Any]:
    callspec = getattr(item, "callspec", None)
    return [] if callspec is None else [*callspec.params.values()]


def _is_opencl(value: Any) -> bool:
    if isinstance(value, str):
        return any(word in value for word in _WORDS)
    return hasattr(value.get("device") if isinstance(value, dict) else value, "platform")


def _functions(item: pytest.Item) -> Iterator[Callable[..., Any]]:
    """Yield a test's function and those of its fixtures."""
    if isinstance(item, pytest.Function):
        known = item._fixtureinfo.name2fixturedefs
        yield item.function
        yield from (found.func for name in item.fixturenames for found in known.get(name, ()))
