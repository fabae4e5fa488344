"""Operator cases: one table a family, each run on every backend against an independent runtime.

A case is an operator, its options and its input values; what is expected comes from ai_edge_litert, never from the
kernel under test.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from litecl.interpreter.graph import ABSENT, Array, Model, Node, Quantization, Subgraph, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True, eq=False)
class Case:
    """One operator on given values.

    inputs: arrays, None where absent. constants: positions that the file stores as constants.
    types, quantization: of inputs, by position, where the array's own type does not tell (INT4, int8 weights).
    intermediates: types and quantization of the node's intermediate tensors.
    outputs: type and quantization of the outputs, where they do not follow from the inputs; their shapes are inferred.
    tolerance: largest difference, relative to the expected output's largest magnitude; None takes the table's of
        ``tolerances``; a case that gives one says why in a comment.
    device: why the device is expected to refuse it; None where it must claim it.
    on_device: False where the case says nothing of the device, whether it takes it or not.
    kernels: which of LiteRT's answer, a key of ``RESOLVERS`` of ``tests/support/oracle.py``; a case that gives one says
        why in a comment.
    """

    name: str
    op: Op
    options: Any
    inputs: Sequence[Array | None]
    constants: frozenset[int] = frozenset()
    types: dict[int, TensorType] = field(default_factory=dict)
    quantization: dict[int, Quantization] = field(default_factory=dict)
    outputs: Sequence[TensorSpec] | None = None
    version: int = 1
    intermediates: Sequence[TensorSpec] = ()
    tolerance: float | None = None
    device: str | None = None
    kernels: str = "reference"
    on_device: bool = True

    def model(self) -> Model:
        """The case as a model of one node, with unit-test-sized tensors."""
        tensors: list[TensorSpec] = []
        node_inputs: list[int] = []
        for position, value in enumerate(self.inputs):
            if value is None:
                node_inputs.append(ABSENT)
                continue
            node_inputs.append(len(tensors))
            tensors.append(
                TensorSpec(
                    self.types.get(position, TensorType.of(value.dtype)),
                    value.shape,
                    name=f"input_{position}",
                    data=value if position in self.constants else None,
                    quantization=self.quantization.get(position),
                    is_variable=position in self.op.states,
                )
            )
        specs = [
            None if index == ABSENT else _with_value(tensors[index], self.inputs[i])
            for i, index in enumerate(node_inputs)
        ]
        inferred = self.op.infer(self.options, specs)
        declared = inferred if self.outputs is None else self.outputs
        first_output = len(tensors)
        tensors += [
            # A shape that is known only at run time is written as a scalar's, as TFLite's converter does.
            TensorSpec(spec.type, known.shape or spec.shape or (), f"output_{i}", quantization=spec.quantization)
            for i, (known, spec) in enumerate(zip(inferred, declared, strict=True))
        ]
        output_indices = tuple(range(first_output, len(tensors)))
        feeds = tuple(
            index
            for position, index in enumerate(node_inputs)
            if index != ABSENT and position not in self.constants and position not in self.op.states
        )
        inner = range(len(tensors), len(tensors) + len(self.intermediates))
        tensors += [replace(spec, shape=(), name=f"intermediate_{i}") for i, spec in enumerate(self.intermediates)]
        node = Node(self.op, tuple(node_inputs), output_indices, self.options, tuple(inner), self.version)
        return Model((Subgraph(tuple(tensors), feeds, output_indices, (node,), name="main"),), description=self.name)

    @property
    def feeds(self) -> list[Array]:
        """The values of the model's inputs, in order."""
        fixed = self.constants | frozenset(self.op.states)
        return [value for i, value in enumerate(self.inputs) if value is not None and i not in fixed]

    def __repr__(self) -> str:
        return f"{self.op.name}-{self.name}"


def _with_value(spec: TensorSpec, value: Array | None) -> TensorSpec:
    return TensorSpec(spec.type, spec.shape, spec.name, value, spec.quantization)


def rng(seed: int = 0) -> np.random.Generator:
    """A generator of its own for every table, so that cases do not depend on each other's order."""
    return np.random.default_rng(seed)
