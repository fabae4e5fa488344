"""One interpreter of a ``Predictor``, which splits a batch into the invokes it needs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.dynamic_range import DynamicRange
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.feeding import fits, texts, told_apart
from litecl.interpreter.graph import Array, Shape, keeps_states
from litecl.interpreter.numbers import Numbers


class _Input:
    """An input of a signature."""

    def __init__(self, details: Mapping[str, Any]) -> None:
        self.tensor = int(details["index"])
        self.dtype = np.dtype(np.object_ if details["dtype"] is np.bytes_ else details["dtype"])
        self.shape = _shape(details)
        self.quantization = details["quantization"]

    def rows_at_once(self, name: str, value: Array) -> int | None:
        """Return how many rows of a value one invoke takes: None for all, 0 for one row without the batch dimension.

        Raises ShapeError for a value that doesn't fit.
        """
        if fits(value.shape, self.shape):
            return None
        if value.ndim and self.shape and fits(value.shape[1:], self.shape[1:]):
            return self.shape[0]
        if value.ndim and fits(value.shape[1:], self.shape):
            return 0
        wanted = ", ".join(["rows", *map(str, self.shape[1:])])
        alone = ": for a single row, pass value[None]" if fits(value.shape, self.shape[1:]) else ""
        raise ShapeError(f"input {name!r}: expected [{wanted}], got {[*value.shape]}{alone}")


class Lane:
    """One interpreter with its own memory. dynamic_range, numbers: as for ``Interpreter``."""

    def __init__(
        self,
        source: Any,
        signature: str | None,
        delegates: Sequence[CLDelegate],
        dynamic_range: DynamicRange | None = None,
        numbers: Numbers = "reference",
    ) -> None:
        self.interpreter = Interpreter(source, delegates=delegates, dynamic_range=dynamic_range, numbers=numbers)
        self.interpreter.allocate_tensors()
        keys = self.interpreter.get_signature_list()
        if signature is None and len(keys) != 1:
            given: Sequence[Mapping[str, Any]] = self.interpreter.get_input_details()
            results: Sequence[Mapping[str, Any]] = self.interpreter.get_output_details()
            self.subgraph = 0
        else:
            runner = self.interpreter.get_signature_runner(signature)
            self.subgraph = runner._subgraph_index
            given, results = (
                [{**detail, "name": name} for name, detail in details.items()]
                for details in (runner.get_input_details(), runner.get_output_details())
            )
        self.inputs = dict(zip(told_apart([d["name"] for d in given]), map(_Input, given), strict=True))
        self.outputs = dict(
            zip(told_apart([d["name"] for d in results]), [int(d["index"]) for d in results], strict=True)
        )
        self.results = {name: (_shape(d), np.dtype(d["dtype"])) for name, d in zip(self.outputs, results, strict=True)}
        self.keeps_states = keeps_states(self.interpreter.model, self.subgraph)
        self.device = "none" if not delegates else self.interpreter.delegation_report().device

    def run(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Run a batch in as many invokes as needed. Raises ModelError and ShapeError."""
        if batch.keys() != self.inputs.keys():
            raise ModelError(f"expected a batch of {sorted(self.inputs)}, got {sorted(batch)}")
        values = {name: self._checked(name, value) for name, value in batch.items()}
        counts = {name: self.inputs[name].rows_at_once(name, value) for name, value in values.items()}
        if set(counts.values()) == {None}:
            return self._invoke(values)
        step = max(count or 0 for count in counts.values())
        rows = {len(value) for value in values.values()}
        if len(rows) != 1 or any(count not in (step, None) for count in counts.values()):
            raise ShapeError(f"expected equal row counts, got { ({name: len(x) for name, x in values.items()}) }")
        (total,) = rows
        if not total:
            raise ShapeError("expected at least one row, got none")
        if self.keeps_states and step and total % step:  # padding would change the missing rows' states
            raise ShapeError(f"a model of {step} rows, which keeps states: expected a multiple of them, got {total}")
        parts = [self._rows(values, start, step) for start in range(0, total, step or 1)]
        return {name: (np.concatenate if step else np.stack)([part[name] for part in parts]) for name in self.outputs}

    def _checked(self, name: str, value: Any) -> Array:
        if self.inputs[name].dtype == np.object_:
            return texts(value, f"input {name!r}")
        array = np.asarray(value)
        if array.dtype != self.inputs[name].dtype:
            raise ShapeError(f"input {name!r}: expected {self.inputs[name].dtype}, got {array.dtype}")
        return array

    def _rows(self, values: Mapping[str, Array], start: int, step: int) -> dict[str, Any]:
        """Run ``step`` rows from ``start``, padding a short tail with copies of its last row; 0 runs a single row."""
        if not step:
            return self._invoke({name: value[start] for name, value in values.items()})
        parts = {name: value[start : start + step] for name, value in values.items()}
        count = len(next(iter(parts.values())))
        if count < step:
            parts = {name: np.concatenate([x, np.repeat(x[-1:], step - count, axis=0)]) for name, x in parts.items()}
        results = self._invoke(parts)
        for name, value in results.items():
            if value.shape[:1] != (step,):
                raise ShapeError(f"output {name!r}: expected {step} rows as its input has, got shape {[*value.shape]}")
        return {name: value[:count] for name, value in results.items()}

    def _invoke(self, values: Mapping[str, Array]) -> dict[str, Any]:
        for name, value in values.items():
            tensor = self.inputs[name].tensor
            self.interpreter.resize_tensor_input(tensor, value.shape, subgraph_index=self.subgraph)
        self.interpreter.allocate_tensors()
        for name, value in values.items():
            self.interpreter.set_tensor(self.inputs[name].tensor, value, subgraph_index=self.subgraph)
        self.interpreter._invoke(self.subgraph)
        return {name: self.interpreter.get_tensor(tensor, self.subgraph) for name, tensor in self.outputs.items()}


def _shape(details: Mapping[str, Any]) -> Shape:
    """Return a tensor's shape, with -1 for open dimensions."""
    return tuple(int(n) for n in details["shape_signature"]) or tuple(int(n) for n in details["shape"])
