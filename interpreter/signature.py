"""Running a model by the names of one of its signatures."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, Signature


class Runnable(Protocol):
    """The interface of ``Interpreter`` that a signature needs: a model run by tensors and subgraphs."""

    def resize_tensor_input(self, input_index: int, tensor_size: npt.ArrayLike, *, subgraph_index: int = 0) -> None:
        """See ``Interpreter``, as for the others."""

    def allocate_tensors(self) -> None:
        """Prepare the model."""

    def set_tensor(self, tensor_index: int, value: npt.ArrayLike, *, subgraph_index: int = 0) -> None:
        """Set an input."""

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Array:
        """Return an output."""

    def _invoke(self, subgraph: int) -> None:
        """Run a subgraph on its inputs."""

    def _details(self, tensor: int, subgraph: int) -> dict[str, Any]:
        """Return TFLite's dictionary for a tensor."""


class SignatureRunner:
    """Callable: inputs by keyword, outputs in a dictionary. An input of another shape resizes the model."""

    def __init__(self, interpreter: Runnable, signature: Signature) -> None:
        self._interpreter = interpreter
        self._signature = signature

    def __call__(self, **inputs: npt.ArrayLike) -> dict[str, Array]:
        """Runs the signature. Raises ModelError for missing or unknown names, ShapeError for a wrong type."""
        signature, interpreter = self._signature, self._interpreter
        if inputs.keys() != signature.inputs.keys():
            raise ModelError(
                f"signature {signature.key!r}: expected inputs {sorted(signature.inputs)}, got {sorted(inputs)}"
            )
        for name, value in inputs.items():
            shape = np.shape(value)
            interpreter.resize_tensor_input(signature.inputs[name], shape, subgraph_index=signature.subgraph)
        interpreter.allocate_tensors()
        for name, value in inputs.items():
            interpreter.set_tensor(signature.inputs[name], value, subgraph_index=signature.subgraph)
        interpreter._invoke(signature.subgraph)
        return {name: interpreter.get_tensor(tensor, signature.subgraph) for name, tensor in signature.outputs.items()}

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """TFLite's dictionary for every input, by name."""
        return {n: self._interpreter._details(t, self._signature.subgraph) for n, t in self._signature.inputs.items()}

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """TFLite's dictionary for every output, by name."""
        return {n: self._interpreter._details(t, self._signature.subgraph) for n, t in self._signature.outputs.items()}
