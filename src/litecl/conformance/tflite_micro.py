"""tflite-micro's interpreter from its Python package, as a ``Runtime``."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from litecl.conformance.printed import printed
from litecl.interpreter.errors import LiteclError, MissingExtra
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array
from litecl.perf.feeds import Runtime
from litecl.perf.peers.positional import Positional, Shapes

_ARENA = 1 << 20  # bytes for its own records and the operators' scratch buffers
_ARENAS = 4  # of the size of all tensors


def load(content: bytes) -> Runtime:
    """Return the model, which keeps the shapes of its file. Raises LiteclError for one that it refuses."""
    return Positional(content, partial(_Compiled, content))


def module() -> Any:
    """Import the package. Raises MissingExtra if it isn't installed."""
    try:
        from tflite_micro.python.tflite_micro import runtime
    except ImportError as error:
        raise MissingExtra(f"runtime tflite_micro: pip install tflite-micro: {error}") from error
    return runtime


class _Compiled:
    """See ``positional.Compiled``."""

    def __init__(self, content: bytes, shapes: Shapes, outputs: Sequence[str]) -> None:
        main = read(content).subgraphs[0]
        declared = [main.tensors[t].shape for t in main.inputs]
        if declared != [*shapes.values()]:
            raise LiteclError(f"its inputs have the shapes {declared} of the file, and can't be resized")
        count = sum(spec.size * spec.dtype.itemsize for spec in main.tensors if spec.shape is not None)
        with _its_words():
            self._interpreter = module().Interpreter.from_bytes(content, arena_size=_ARENA + _ARENAS * count)

    def set(self, position: int, value: Array) -> None:
        """Set an input."""
        with _its_words():
            self._interpreter.set_input(np.asarray(value, order="C"), position)  # a scalar stays one

    def run(self) -> None:
        """Run the model."""
        with _its_words():
            self._interpreter.invoke()

    def get(self, position: int) -> Array:
        """Return a copy of an output."""
        return np.array(self._interpreter.get_output(position))

    def reset(self) -> None:
        """Reset variables."""
        with _its_words():
            self._interpreter.reset()


@contextmanager
def _its_words() -> Iterator[None]:
    """Raise errors as LiteclError with the reason, which the package prints."""
    lines: list[str] = []
    try:
        with printed() as lines:
            yield
    except (RuntimeError, ValueError, TypeError) as error:
        words = [line.strip() for line in lines if line.strip()]
        raise LiteclError(words[0] if words else str(error)) from error
