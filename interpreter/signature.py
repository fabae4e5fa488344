"""Running a model by the names of one of its signatures."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, Model, Shape, Signature


class Runnable(Protocol):
    """The part of ``Interpreter`` that a signature needs: running a model by tensors and subgraphs."""

    @property
    def model(self) -> Model:
        """The model as loaded."""

    def resize_tensor_input(self, input_index: int, tensor_size: npt.ArrayLike, *, subgraph_index: int = 0) -> None:
        """See ``Interpreter``, as for the others."""

    def _shape(self, tensor: int, subgraph: int) -> Shape:
        """Return the shape that an input has, or is to have once the model is prepared."""

    def allocate_tensors(self) -> None:
        """Prepare the model."""

    def set_tensor(self, tensor_index: int, value: npt.ArrayLike, *, subgraph_index: int = 0) -> None:
        """Set an input."""

    def _copied_inputs(self, subgraph: int) -> set[int]:
        """Return the inputs that a run only copies."""

    def _give(self, tensor: int, value: npt.ArrayLike, subgraph: int) -> None:
        """Set one of these to an array itself."""

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Array:
        """Return an output."""

    def _invoke(self, subgraph: int) -> None:
        """Run a subgraph on its inputs."""

    def _details(self, tensor: int, subgraph: int) -> dict[str, Any]:
        """Return TFLite's dictionary for a tensor."""


class SignatureRunner:
    """Callable: inputs by keyword, outputs in a dictionary. An input of another shape resizes the model.

    ``Interpreter.get_signature_runner`` makes one. Raises ModelError for a signature that the model does not have.
    """

    def __init__(self, interpreter: Runnable | None = None, signature_key: str | None = None) -> None:
        if interpreter is None or signature_key is None:
            missing = "interpreter" if interpreter is None else "signature_key"
            raise ModelError(f"SignatureRunner: expected an interpreter and the key of a signature, got no {missing}")
        self._interpreter = interpreter
        self._signature = _named(interpreter.model, signature_key)
        # Under TFLite's names, because libraries read them.
        self._signature_key = self._signature.key
        self._subgraph_index = self._signature.subgraph
        self._inputs = dict(sorted(self._signature.inputs.items()))
        self._outputs = dict(sorted(self._signature.outputs.items())).items()

    def __call__(self, **inputs: npt.ArrayLike) -> dict[str, Array]:
        """Run the signature. Raises ModelError for missing or unknown names, ShapeError for a wrong type."""
        signature, interpreter = self._signature, self._interpreter
        if inputs.keys() != signature.inputs.keys():
            raise ModelError(
                f"signature {signature.key!r}: expected inputs {sorted(signature.inputs)}, got {sorted(inputs)}"
            )
        for name, value in inputs.items():
            tensor, shape = signature.inputs[name], _shape(name, value)
            if shape != interpreter._shape(tensor, signature.subgraph):  # or else it would be checked at length
                interpreter.resize_tensor_input(tensor, shape, subgraph_index=signature.subgraph)
        interpreter.allocate_tensors()
        # The first subgraph is what invoke() runs too, on the inputs of this call, whatever has become of the arrays.
        copied = interpreter._copied_inputs(signature.subgraph) if signature.subgraph else ()
        for name, value in inputs.items():
            if (tensor := signature.inputs[name]) in copied:
                interpreter._give(tensor, value, signature.subgraph)
            else:
                interpreter.set_tensor(tensor, value, subgraph_index=signature.subgraph)
        interpreter._invoke(signature.subgraph)
        return {name: interpreter.get_tensor(tensor, signature.subgraph) for name, tensor in self._outputs}

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """TFLite's dictionary for every input, by name."""
        return {name: self._interpreter._details(t, self._subgraph_index) for name, t in self._inputs.items()}

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """TFLite's dictionary for every output, by name."""
        return {name: self._interpreter._details(t, self._subgraph_index) for name, t in self._outputs}


def _shape(name: str, value: npt.ArrayLike) -> Shape:
    """Return the shape of an input. Raises ShapeError for a list that has none."""
    try:
        return value.shape if isinstance(value, np.ndarray) else np.shape(value)
    except ValueError as error:
        raise ShapeError(f"input {name!r}: {error}") from error


def _named(model: Model, key: str) -> Signature:
    """Return a signature by its key. Raises ModelError if there is none."""
    signatures = {signature.key: signature for signature in model.signatures}
    if not isinstance(key, str) or key not in signatures:
        raise ModelError(f"signature {key!r:.100} not found; the model has {sorted(signatures)}")
    return signatures[key]


def only_key(model: Model) -> str:
    """Return the key of a model's only signature. Raises ModelError if it has none, or several."""
    if len(model.signatures) != 1:
        keys = sorted(signature.key for signature in model.signatures)
        raise ModelError(f"signature_key: the model has {len(keys)} signatures: {keys}")
    return model.signatures[0].key
