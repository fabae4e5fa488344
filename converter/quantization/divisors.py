"""Finds divisors that quantization rounds to zero, which kernels can't divide by, or nearly, which is inaccurate."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from litecl.converter.quantization.aware import CONVERSION
from litecl.converter.quantization.data import Sample
from litecl.converter.quantization.integers import Quantized
from litecl.converter.quantization.measure import QuantizedRunner
from litecl.converter.quantization.rules import RULES
from litecl.converter.quantization.scales import range_held
from litecl.converter.quantization.watch import After, Look
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, Model, Subgraph, TensorSpec
from litecl.interpreter.ops.binary import DIV

Refused = Mapping[int, Mapping[int, str]]
"""Nodes that must stay in float, with the reason, by subgraph and number in the float model."""

_ZERO = "its divisor would be rounded to zero"
_MAKES_ZERO = "its result is a divisor, which would be rounded to zero"


@dataclass(frozen=True)
class _Divisor:
    """A quantized divisor: its tensor, the node after which it is known, and the node to blame."""

    tensor: int
    after: int | None
    number: int
    reason: str


def small_divisors(model: Model, quantized: Model, done: Mapping[int, Quantized], samples: Sequence[Sample]) -> Refused:
    """Return the nodes to blame for divisors within one step of zero.

    These are quantized divisions, and quantized nodes whose result a float division divides by. Without samples, which
    quantization-aware training doesn't need, a divisor counts if its range comes that near to zero.
    """
    known = {index: list(_divisors(model.subgraphs[index], part)) for index, part in done.items()}
    blamed: dict[int, dict[int, str]] = {index: {} for index in done}
    if samples:
        looks = {i: _looks(done[i].rewritten.graph, divisors, blamed[i]) for i, divisors in known.items()}
        _run(quantized, looks, samples, blamed)
    for index, divisors in known.items() if not samples else ():
        tensors = done[index].rewritten.graph.tensors
        blamed[index] |= {d.number: d.reason for d in divisors if _may_be_small(tensors[d.tensor])}
    return {index: reasons for index, reasons in blamed.items() if reasons}


def _run(model: Model, looks: Mapping[int, After], samples: Sequence[Sample], blamed: Refused) -> None:
    if not any(looks.values()):
        return
    run = QuantizedRunner(model, looks)
    for sample in samples:
        try:
            run(sample)
        except ModelError:
            if not any(blamed.values()):  # otherwise it is the division by zero that a look has just seen
                raise


def _divisors(graph: Subgraph, part: Quantized) -> Iterator[_Divisor]:
    makers = {tensor: number for number, node in enumerate(graph.nodes) for tensor in node.outputs}
    for number, node in enumerate(graph.nodes):
        if node.op is not DIV:
            continue
        if number in part.chosen.rules:
            new = part.rewritten.nodes[number]
            yield _Divisor(part.rewritten.graph.nodes[new].inputs[1], new - 1 if new else None, number, _ZERO)
            continue
        tensor = _moved(graph, makers, part, node.inputs[1])
        producer = makers.get(tensor)
        rule = None if producer is None else part.chosen.rules.get(producer)
        # Divisors that training rounds were zero in training, too.
        if producer is not None and rule is not None and rule is not CONVERSION and tensor in part.rewritten.stored:
            new = part.rewritten.nodes[producer]
            yield _Divisor(part.rewritten.stored[tensor], new, producer, _MAKES_ZERO)


def _moved(graph: Subgraph, makers: Mapping[int, int], part: Quantized, tensor: int) -> int:
    """Follow float operators that only move data back from a tensor to their source."""
    while (number := makers.get(tensor)) is not None and number not in part.chosen.rules:
        rule = RULES.get(graph.nodes[number].op)
        if rule is None or not (rule.moves and rule.shared):
            break
        tensor = graph.nodes[number].inputs[0]
    return tensor


def _looks(graph: Subgraph, divisors: Sequence[_Divisor], blamed: dict[int, str]) -> After:
    after: dict[int | None, list[tuple[Sequence[int], Look]]] = {}
    for divisor in divisors:
        after.setdefault(divisor.after, []).append(([divisor.tensor], _looking(graph, divisor, blamed)))
    return after


def _looking(graph: Subgraph, divisor: _Divisor, blamed: dict[int, str]) -> Look:
    def look(values: Sequence[Array]) -> None:
        if _is_small(graph.tensors[divisor.tensor], values[0]):
            blamed[divisor.number] = divisor.reason

    return look


def _may_be_small(spec: TensorSpec) -> bool:
    assert spec.quantization is not None
    if spec.data is not None:
        return _is_small(spec, spec.data)
    held, step = range_held(spec.quantization, spec.type), float(spec.quantization.scale[0])
    return held.low <= step and held.high >= -step


def _is_small(spec: TensorSpec, values: Array) -> bool:
    assert spec.quantization is not None
    return bool(np.any(np.abs(values.astype(np.int64) - int(spec.quantization.zero_point[0])) <= 1))
