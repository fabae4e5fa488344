"""Closing and pickling an interpreter."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Model, Shape


class Lifetime:
    """``close``, ``with`` and pickling, for a class that is made anew from keywords."""

    _arguments: Mapping[str, Any]  # of the constructor, see ``kept``
    _entries: dict[int, tuple[Shape, ...]]

    def close(self) -> None:
        """Release the model, its tensors and the memory of its delegates; any later use raises ModelError.

        Arrays that ``tensor()`` has returned keep their memory. Raises ModelError if another thread is running it.
        """
        if self.__dict__.get("_busy") or self.__dict__.get("_is_called"):
            raise ModelError("close: this interpreter is running")
        self.__dict__.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    if not TYPE_CHECKING:  # otherwise any name would seem to be an attribute

        def __getattr__(self, name: str) -> Any:
            if not self.__dict__:
                raise ModelError("this interpreter is closed")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the constructor's arguments and the shapes of inputs, but no values that were set, computed or kept in
        variables.

        A model given by its path is read there again. Raises ModelError for one given as a ``Model``.
        """
        if any(isinstance(value, Model) for value in self._arguments.values()):
            raise ModelError(
                "an interpreter of a Model cannot be pickled: construct it from a path or the bytes of a file"
            )
        return _made_again, (
            type(self),
            self._arguments,
            dict(self._entries),
            getattr(self, "_executor", None) is not None,
        )


def kept(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a constructor's ``locals()`` as keywords that make the same in another process: paths are absolute."""
    given = {name: value for name, value in arguments.items() if name not in ("self", "__class__")}
    path = given["model_path"]
    if isinstance(path, str | os.PathLike) and path:
        given["model_path"] = str(Path(path).absolute())
    return given


def _made_again(
    kind: Callable[..., Any], arguments: Mapping[str, Any], entries: Mapping[int, tuple[Shape, ...]], allocated: bool
) -> Any:
    interpreter = kind(**arguments)
    for subgraph, shapes in entries.items():
        tensors = interpreter.model.subgraphs[subgraph].inputs
        for tensor, shape in zip(tensors, shapes, strict=True):
            interpreter.resize_tensor_input(tensor, shape, subgraph_index=subgraph)
    if allocated:
        interpreter.allocate_tensors()
    return interpreter
