"""An interpreter's description of its model: tensors, operators and signatures, in TFLite's dictionaries."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.interpreter.arguments import index
from litecl.interpreter.delegation import Delegation, Moved, Report
from litecl.interpreter.details import OpDetails, TensorDetails, tensor_details
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import ABSENT, Array, Model, Shape, Subgraph, TensorSpec
from litecl.interpreter.html import paragraph
from litecl.interpreter.shown import html, line, source_name, state


class Introspection:
    """The methods that describe a model. Tensors and their types are known before allocation."""

    _model: Model
    _specs: Sequence[Sequence[TensorSpec]]  # by subgraph, as far as shapes are known
    _entries: dict[int, tuple[Shape, ...]]  # shapes of the inputs of each subgraph that a caller may run
    _values: Mapping[int, Mapping[int, Array]]  # what the last invoke computed
    _delegations: Sequence[Delegation]
    _arguments: Mapping[str, Any]  # of the constructor
    _executor: Any  # None until tensors are allocated

    def __repr__(self) -> str:
        kind = type(self).__name__
        if "_executor" not in self.__dict__:
            return f"<{kind}: closed>"
        report = self.delegation_report() if self._delegations else None
        told = state(len(self._model.subgraphs[0].nodes), report, allocated=self._executor is not None)
        return f"<{kind} of {self._tensors_line()}; {told}>"

    def _repr_html_(self) -> str:
        """Return inputs, outputs and the delegate's report as HTML, which notebooks show."""
        if "_executor" not in self.__dict__:
            return paragraph(repr(self))
        report = self.delegation_report() if self._delegations else None
        title = f"{type(self).__name__} of {source_name(self._arguments)}"
        return html(title, self.get_input_details(), self.get_output_details(), report)

    def _tensors_line(self) -> str:
        return f"{source_name(self._arguments)}: {line(self.get_input_details(), self.get_output_details())}"

    @property
    def model(self) -> Model:
        """The model as loaded."""
        return self._model

    def num_subgraphs(self) -> int:
        """Return the number of subgraphs."""
        return len(self._model.subgraphs)

    def get_input_details(self) -> list[TensorDetails]:
        """Return name, index, shape, shape signature, dtype and quantization of every input, in TFLite's dictionaries.

        After ``resize_tensor_input`` the shape is the new one at once.
        """
        return [self._details(t) for t in self._model.subgraphs[0].inputs]

    def get_output_details(self) -> list[TensorDetails]:
        """Return the same for every output; a shape not known before run time is the declared one until then."""
        return [self._details(t) for t in self._model.subgraphs[0].outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[TensorDetails]:
        """Return the same for every tensor of a subgraph. Raises ModelError for a subgraph that does not exist."""
        graph = self._graph(subgraph_index)
        return [self._details(t, subgraph_index) for t in range(len(graph.tensors))]

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return the names of inputs and outputs by signature key."""
        return {s.key: {"inputs": sorted(s.inputs), "outputs": sorted(s.outputs)} for s in self._model.signatures}

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return tensor indices by name, by "inputs" and "outputs", and by signature key."""
        signatures = sorted(self._model.signatures, key=lambda signature: signature.key)
        return {s.key: {"inputs": _sorted(s.inputs), "outputs": _sorted(s.outputs)} for s in signatures}

    def _get_tensor_details(self, tensor_index: int, subgraph_index: int) -> TensorDetails:
        """Return TFLite's dictionary for one tensor. Raises ModelError for one that does not exist."""
        return self._details(index("tensor_index", tensor_index), subgraph_index)

    def _get_ops_details(self) -> list[OpDetails]:
        """Return a dictionary for every operator of subgraph 0: name, tensors, and types of these."""
        return [self._get_op_details(position) for position in range(len(self._model.subgraphs[0].nodes))]

    def _get_op_details(self, op_index: int) -> OpDetails:
        """Return the dictionary of the operator at a position. Raises ModelError where there is none."""
        nodes, position = self._model.subgraphs[0].nodes, index("op_index", op_index)
        if not 0 <= position < len(nodes):
            raise ModelError(f"operator {position} out of range for {len(nodes)} operators")
        node = nodes[position]
        inputs, outputs = ([t for t in ts if t != ABSENT] for ts in (node.inputs, node.outputs))
        return {
            "index": position,
            "op_name": node.op.name,
            "inputs": np.array(node.inputs, np.int32),
            "outputs": np.array(node.outputs, np.int32),
            "operand_types": [self._details(t)["dtype"] for t in inputs],
            "result_types": [self._details(t)["dtype"] for t in outputs],
        }

    def delegation_report(self) -> Report:
        """Return the nodes that the delegate claimed, the reasons of the others, and the counters of the last invoke.

        Raises ModelError if there is no delegate or tensors have not been allocated.
        """
        if not self._delegations:
            raise ModelError("no delegation to report: pass delegates=[...] and call allocate_tensors()")
        return self._delegations[-1].report()

    def _count(self, moved: Moved) -> None:
        """Count what a signature's call has copied, in the delegate's report."""
        if self._delegations:
            self._delegations[-1].count(moved)

    @property
    def experimental_compress_quantization_zero_points(self) -> bool:
        """The constructor's argument; it has no effect."""
        return bool(self._arguments["experimental_compress_quantization_zero_points"])

    def _graph(self, subgraph: int) -> Subgraph:
        """Return a subgraph. Raises ModelError for one that does not exist."""
        graphs, number = self._model.subgraphs, index("subgraph_index", subgraph)
        if not 0 <= number < len(graphs):
            raise ModelError(f"subgraph {number} out of range for {len(graphs)} subgraphs")
        return graphs[number]

    def _spec(self, tensor: int, subgraph: int) -> TensorSpec:
        """Return what is known of a tensor. Raises ModelError for one that does not exist."""
        graph = self._graph(subgraph)
        if not 0 <= index("tensor_index", tensor) < len(graph.tensors):
            raise ModelError(f"tensor {tensor} out of range for {len(graph.tensors)} tensors")
        return self._specs[subgraph][tensor]

    def _details(self, tensor: int, subgraph: int = 0) -> TensorDetails:
        spec = self._spec(tensor, subgraph)
        return tensor_details(tensor, replace(spec, shape=self._shape(tensor, subgraph)))

    def _shape(self, tensor: int, subgraph: int) -> Shape:
        """Return the shape that a caller asked for, or else of the value, or as inferred, or as declared."""
        graph = self._model.subgraphs[subgraph]
        if subgraph in self._entries and tensor in graph.inputs:
            return self._entries[subgraph][graph.inputs.index(tensor)]
        value = self._values.get(subgraph, {}).get(tensor)
        shape = self._specs[subgraph][tensor].shape if value is None else value.shape
        return graph.tensors[tensor].static_shape if shape is None else shape


def _sorted(names: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(names.items()))
