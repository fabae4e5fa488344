"""Compares outputs and layers with a reference."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from litecl import comparison
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Model
from litecl.perf.feeds import Runtime, difference, outputs_of, prepare, steps
from litecl.report.facts import Accuracy, Difference, Place, Tensor

TOLERANCE = 1e-4
_ROUNDED_OTHERWISE = 1  # tolerance of LiteRT's default kernels, in steps


def outputs_accuracy(name: str, ours: Runtime, theirs: Sequence[Array], allowed_steps: int = 0) -> Accuracy:
    """Compare the latest invoke's outputs with a reference's."""
    details = ours.get_output_details()
    pairs = zip(details, outputs_of(ours), theirs, strict=True)
    rows = tuple(compared(detail, got, expected, None, "", allowed_steps) for detail, got, expected in pairs)
    return Accuracy(name, TOLERANCE, rows)


def peer_steps(name: str) -> int:
    """Return a peer's tolerance in steps."""
    return _ROUNDED_OTHERWISE if name.startswith("litert") and "reference" not in name else 0


def layers_accuracy(model: Model, inputs: Mapping[str, Array], delegate: CLDelegate) -> tuple[Difference, ...]:
    """Compare every tensor computed in the main subgraph with the reference's, in order.

    Nodes run unfused for this: preserved tensors can't be fused away.
    """
    ours, reference = (
        Interpreter(
            model,
            delegates=delegates,
            experimental_preserve_all_tensors=True,
            dynamic_range=delegate.dynamic_range,
        )
        for delegates in ([delegate], [])
    )
    for interpreter in (ours, reference):
        prepare(interpreter, inputs)
        interpreter.invoke()
    details = {detail["index"]: detail for detail in reference.get_tensor_details()}
    rows: list[Difference] = []
    for position, node in enumerate(model.subgraphs[0].nodes):
        for tensor in node.outputs:
            try:
                got, expected = ours.get_tensor(tensor), reference.get_tensor(tensor)
            except ValueError:  # the tensor isn't computed
                continue
            rows.append(compared(details[tensor], got, expected, (0, position), node.op.name, 0))
    return tuple(rows)


def compared(
    detail: Mapping[str, Any], got: Array, expected: Array, place: Place | None, op: str, allowed_steps: int
) -> Difference:
    """Compare a tensor with the expected values."""
    apart, relative = steps([detail], [got], [expected]), difference([got], [expected])
    tensor = Tensor(
        detail["name"], np.dtype(detail["dtype"]).name, tuple(expected.shape), expected.nbytes, False, detail["index"]
    )
    departs = relative > TOLERANCE if apart is None else apart > allowed_steps
    return Difference(tensor, place, op, _largest(got, expected), relative, apart, departs)


def _largest(got: Array, expected: Array) -> float:
    apart = comparison.difference(got, expected, any_type=True)
    return float("inf") if apart.wrong else apart.absolute


def first_departure(layers: Sequence[Difference]) -> int | None:
    """Return the position of the first layer that departs, None if none does."""
    return next((i for i, row in enumerate(layers) if row.departs), None)
