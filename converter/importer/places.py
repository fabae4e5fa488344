"""Finds the lines of user code that made operators; TensorFlow keeps them while a function lives."""

import linecache
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

_MOST = 3
# Code in these isn't the user's.
_LIBRARIES = (*(str(Path(module.__file__ or "").parent) for module in (tf, keras)), str(Path(__file__).parents[1]))


class Places:
    """Maps node names, of a function and of those it calls, to lines of code."""

    def __init__(self, concrete: Any) -> None:
        self._concrete = concrete

    def __call__(self, name: str) -> str | None:
        """Return where a node was made; None if unknown, or if only libraries made it.

        An inlined node's name starts with that of the call.
        """
        parts = name.split("/")
        for start in range(len(parts)):
            lines = self._lines.get("/".join(parts[start:]))
            if lines:
                return " or ".join(lines[:_MOST])
        return None

    @cached_property
    def _lines(self) -> dict[str, list[str]]:
        lines: dict[str, list[str]] = {}
        for graph in _graphs(self._concrete.graph, set()):
            for operation in graph.get_operations():
                line = _line(operation.traceback)
                own = lines.setdefault(operation.name, [])
                if line is not None and line not in own:
                    own.append(line)
        return lines


def _graphs(graph: Any, seen: set[int]) -> Iterator[Any]:
    """Yield a graph and those of the functions it calls; TensorFlow keeps these in a private attribute."""
    if graph is None or id(graph) in seen:
        return
    seen.add(id(graph))
    yield graph
    for function in getattr(graph, "_functions", {}).values():
        yield from _graphs(getattr(function, "graph", None), seen)


def _line(traceback: Any) -> str | None:
    """Return the innermost line outside libraries."""
    for frame in reversed(list(traceback or ())):
        if not frame.filename.startswith((*_LIBRARIES, "<")):
            text = frame.line or linecache.getline(frame.filename, frame.lineno).strip()
            return f"{frame.filename}:{frame.lineno}: {text}"
    return None
