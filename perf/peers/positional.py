"""Runs a model by a library that isn't shaped like TFLite's interpreter."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

import numpy.typing as npt

from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array
from litecl.perf.feeds import Details, labels

Shapes = Mapping[str, tuple[int, ...]]


class Compiled(Protocol):
    """A model compiled for fixed shapes. Positions are those of the file's inputs and outputs."""

    def set(self, position: int, value: Array) -> None:
        """Set an input."""

    def run(self) -> None:
        """Run the model."""

    def get(self, position: int) -> Array:
        """Return a copy of an output."""

    def reset(self) -> None:
        """Reset variables to their initial values."""


class Positional:
    """A ``Runtime`` whose details come from litecl and whose results from a peer.

    compile_: compiles the model, given the shapes of its inputs by label and the labels of its outputs.
    """

    def __init__(self, content: bytes, compile_: Callable[[Shapes, Sequence[str]], Compiled]) -> None:
        self._described = Interpreter(model_content=content)
        self._compile = compile_
        self._shapes: Shapes | None = None

    def get_input_details(self) -> Sequence[Details]:
        """Return name, index, shape and dtype of every input."""
        return self._described.get_input_details()

    def get_output_details(self) -> Sequence[Details]:
        """Return the same for every output."""
        return self._described.get_output_details()

    def resize_tensor_input(self, input_index: int, tensor_size: npt.ArrayLike, /) -> None:
        """Resize an input."""
        self._described.resize_tensor_input(input_index, tensor_size)

    def allocate_tensors(self) -> None:
        """Compile the model for the shapes of its inputs; if they are as before, its variables keep their values."""
        inputs, outputs = self.get_input_details(), self.get_output_details()
        shapes = {label: tuple(map(int, d["shape"])) for label, d in zip(labels(inputs), inputs, strict=True)}
        self._inputs, self._outputs = ([d["index"] for d in details] for details in (inputs, outputs))
        if shapes != self._shapes:
            self._compiled = self._compile(shapes, labels(outputs))
            self._shapes = shapes

    def set_tensor(self, tensor_index: int, value: Array, /) -> None:
        """Set an input."""
        self._compiled.set(self._inputs.index(tensor_index), value)

    def invoke(self) -> None:
        """Run the model."""
        self._compiled.run()

    def reset_all_variables(self) -> None:
        """Reset variables to their initial values."""
        self._compiled.reset()

    def get_tensor(self, tensor_index: int, /) -> Array:
        """Return a copy of an output."""
        return self._compiled.get(self._outputs.index(tensor_index))


def positions(kind: str, names: Sequence[str], theirs: Sequence[Collection[str]]) -> list[int]:
    """Return where the peer has each input or output: by name, or in the same order if a name is missing or repeated.

    kind: "inputs" or "outputs". theirs: the names of each of the peer's. Raises LiteclError if their number differs.
    """
    if len(names) != len(theirs):
        raise LiteclError(f"it has {len(theirs)} of the model's {len(names)} {kind}")
    matches = [[at for at, aliases in enumerate(theirs) if name in aliases] for name in names]
    if sorted(match[0] for match in matches if len(match) == 1) != list(range(len(names))):
        return list(range(len(names)))
    return [match[0] for match in matches]
