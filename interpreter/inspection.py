"""The part of the interpreter that describes its model: values and details of tensors, and signatures."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.interpreter.details import tensor_details
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, Model, TensorSpec
from litecl.interpreter.run.variables import Variables


class Inspection:
    """The part of ``Interpreter`` that reads.

    _inputs, _values: by subgraph and tensor, what was fed, and what the last invoke left. _specs: by subgraph.
    """

    _model: Model
    _specs: Sequence[Sequence[TensorSpec]]
    _inputs: dict[int, dict[int, Array]]
    _values: dict[int, dict[int, Array]]
    _variables: Variables

    @property
    def model(self) -> Model:
        """The model as loaded."""
        return self._model

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Array:
        """A copy of a tensor's value: outputs, inputs, constants, variables and, if preserved, intermediates."""
        return np.array(self._value(tensor_index, subgraph_index))

    def tensor(self, tensor_index: int) -> Callable[[], Array]:
        """A function that returns the tensor's current value without a copy; write into an input through it."""
        return lambda: self._value(tensor_index, 0)

    def _value(self, tensor: int, subgraph: int) -> Array:
        spec = self._spec(tensor, subgraph)
        for values in (self._inputs.get(subgraph, {}), self._values.get(subgraph, {})):
            if tensor in values:
                return values[tensor]
        if spec.data is not None:
            return spec.data
        if spec.is_variable:
            return self._variables.get((subgraph, tensor), spec)
        raise ModelError(
            f"tensor {tensor} ({spec.name!r}) has no value: invoke() first, and for an intermediate tensor "
            "construct the interpreter with experimental_preserve_all_tensors=True"
        )

    def _spec(self, tensor: int, subgraph: int) -> TensorSpec:
        if not 0 <= subgraph < len(self._specs):
            raise ModelError(f"subgraph {subgraph} out of range for {len(self._specs)} subgraphs")
        specs = self._specs[subgraph]
        if not 0 <= tensor < len(specs):
            raise ModelError(f"tensor {tensor} out of range for {len(specs)} tensors")
        return specs[tensor]

    def get_input_details(self) -> list[dict[str, Any]]:
        """Name, index, shape, shape signature, dtype and quantization of every input, in TFLite's dictionaries."""
        return [self._details(t) for t in self._model.subgraphs[0].inputs]

    def get_output_details(self) -> list[dict[str, Any]]:
        """The same for every output; a shape not known before run time is the declared one until then."""
        return [self._details(t) for t in self._model.subgraphs[0].outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """The same for every tensor of a subgraph."""
        return [self._details(t, subgraph_index) for t in range(len(self._specs[subgraph_index]))]

    def _details(self, tensor: int, subgraph: int = 0) -> dict[str, Any]:
        spec = self._specs[subgraph][tensor]
        value = self._values.get(subgraph, {}).get(tensor)
        shape = value.shape if value is not None else spec.shape
        if shape is None:
            shape = self._model.subgraphs[subgraph].tensors[tensor].static_shape
        return tensor_details(tensor, replace(spec, shape=shape))

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The names of inputs and outputs by signature key."""
        return {s.key: {"inputs": sorted(s.inputs), "outputs": sorted(s.outputs)} for s in self._model.signatures}
