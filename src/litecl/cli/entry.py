"""A model's signature with an interpreter's methods."""

from collections.abc import Sequence

import numpy.typing as npt

from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.perf.feeds import Details


class Entry:
    """A signature, with its names of inputs and outputs; or subgraph 0 with tensor names if key is None.

    Raises ModelError for an unknown signature.
    """

    def __init__(self, interpreter: Interpreter, key: str | None = None) -> None:
        self.interpreter = interpreter
        self._runner = None if key is None else interpreter.get_signature_runner(key)
        self.subgraph = 0 if self._runner is None else self._runner._subgraph_index

    def get_input_details(self) -> Sequence[Details]:
        """Describe the inputs; see ``Runtime``."""
        if self._runner is None:
            return self.interpreter.get_input_details()
        return [{**details, "name": name} for name, details in self._runner.get_input_details().items()]

    def get_output_details(self) -> Sequence[Details]:
        """Describe the outputs."""
        if self._runner is None:
            return self.interpreter.get_output_details()
        return [{**details, "name": name} for name, details in self._runner.get_output_details().items()]

    def resize_tensor_input(self, input_index: int, tensor_size: npt.ArrayLike, /) -> None:
        """Resize an input."""
        self.interpreter.resize_tensor_input(input_index, tensor_size, subgraph_index=self.subgraph)

    def allocate_tensors(self) -> None:
        """Prepare the model."""
        self.interpreter.allocate_tensors()

    def set_tensor(self, tensor_index: int, value: Array, /) -> None:
        """Set an input."""
        self.interpreter.set_tensor(tensor_index, value, subgraph_index=self.subgraph)

    def get_tensor(self, tensor_index: int, /) -> Array:
        """Return a copy of an output."""
        return self.interpreter.get_tensor(tensor_index, self.subgraph)

    def invoke(self) -> None:
        """Run the signature."""
        self.interpreter._invoke(self.subgraph)
