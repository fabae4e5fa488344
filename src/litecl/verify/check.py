"""A check: a model, its invokes, and the tolerance of its outputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from litecl.cases import Case
from litecl.cases.tolerances import DEVICE
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.kit.require import is_quantized

# The input whose type an operator works on, if that isn't the first.
_MAIN = {
    "CONV_3D_TRANSPOSE": 2,
    "EMBEDDING_LOOKUP": 1,
    "EMBEDDING_LOOKUP_SPARSE": 4,
    "FILL": 1,
    "HASHTABLE_LOOKUP": 2,
    "ONE_HOT": 2,
    "SCATTER_ND": 1,
    "SELECT": 1,
    "SELECT_V2": 1,
    "SPARSE_TO_DENSE": 2,
    "SPLIT": 1,
    "TRANSPOSE_CONV": 2,
}


@dataclass(frozen=True)
class Labels:
    """Describes a check: operator and version, element types, input shapes, and the edge case that they test."""

    op: str
    version: int
    types: str
    shapes: str
    edge: str


@dataclass(frozen=True, eq=False)
class Step:
    """An invoke, with a value for every input of the model. Inputs are resized if needed.

    reset: reset variables first.
    """

    feeds: Sequence[Array]
    reset: bool = False


@dataclass(frozen=True, eq=False)
class Check:
    """A model and its invokes; outputs and variables are compared after each.

    op: the operator under test, or a kind of scenario. describe: returns its ``labels``.

    tolerance: largest difference, relative to the expected output's largest magnitude; None takes the table's.
    options: of the delegate. rounds: how often to repeat all steps. threads: how many run them at once, each with its
    own interpreter. wanted: whether devices are expected to run it. quick: include the scenario in ``--quick``.
    """

    name: str
    op: str
    describe: Callable[[], Labels]
    model: Callable[[], Model]
    steps: Callable[[], Sequence[Step]]
    tolerance: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    rounds: int = 1
    threads: int = 1
    wanted: bool = True
    quick: bool = False

    @cached_property
    def labels(self) -> Labels:
        """The check's description."""
        return self.describe()

    def bound(self, dtype: np.dtype[Any]) -> tuple[float, str]:
        """Return the allowed relative difference for outputs of a type, and its source."""
        if self.tolerance is not None:
            return self.tolerance, "the case"
        return (DEVICE[dtype.name], "litecl.cases.tolerances") if dtype.name in DEVICE else (0.0, "exact")


def of_case(case: Case, name: str) -> Check:
    """Return the check of a case of one operator."""
    return Check(
        name,
        case.op.name,
        lambda: labels_of(case),
        case.model,
        lambda: [Step(case.feeds)],
        tolerance=case.tolerance,
        wanted=case.on_device and case.device is None,
    )


def labels_of(case: Case) -> Labels:
    """Describe a case."""
    shapes = " ".join(
        f"{list(x.shape)}{' constant' if i in case.constants else ''}".replace(", ", ",")
        for i, x in enumerate(case.inputs)
        if x is not None
    )
    return Labels(case.op.name, case.version, types_of(case), shapes, edge_of(case.inputs))


def types_of(case: Case) -> str:
    """Return a case's main element type, and its weights' type if that differs.

    A star means integers with a scale.
    """
    (graph,) = case.model().subgraphs
    inputs = graph.nodes[0].inputs
    position = _MAIN.get(case.op.name, 0)
    if not inputs or inputs[position] < 0:
        return ""
    main = graph.tensors[inputs[position]]
    names = [_type_name(main)]
    weights = graph.tensors[inputs[1]] if len(inputs) > 1 and inputs[1] >= 0 else main
    if weights.data is not None and is_quantized(weights) and weights.type != main.type:
        names.append(_type_name(weights))
    return " x ".join(names)


def main_input(case: Case) -> Array | None:
    """Return the operand with a case's main element type, None without operands."""
    return case.inputs[_MAIN.get(case.op.name, 0)] if case.inputs else None


def _type_name(spec: Any) -> str:
    return f"{spec.type.name.lower()}{'*' if is_quantized(spec) else ''}"


def edge_of(inputs: Sequence[Array | None]) -> str:
    """Return the edge case that inputs test: the first of these kinds that applies, or "plain"."""
    given = [x for x in inputs if x is not None]
    floats = [x for x in given if x.dtype.kind == "f"]
    kinds = {
        "empty": any(x.size == 0 for x in given),
        "NaN, Inf": any(not np.isfinite(x).all() for x in floats),
        "denormal": any(_has_denormals(x) for x in floats),
        "scalar": bool(given) and given[0].ndim == 0,
        "rank over 4": any(x.ndim > 4 for x in given),
        "odd size": any(x.ndim and x.shape[-1] % 4 for x in given[:1]),
    }
    return next((name for name, holds in kinds.items() if holds), "plain")


def _has_denormals(x: Array) -> bool:
    size = np.abs(x)
    return bool(((size > 0) & (size < np.finfo(x.dtype).tiny)).any())
