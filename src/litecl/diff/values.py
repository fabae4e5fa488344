"""The real values of a model's tensors, and the error between two of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from litecl.comparison import distances
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError, ShapeError
from litecl.interpreter.feeding import fits
from litecl.interpreter.graph import Array, Model, Subgraph, TensorSpec
from litecl.interpreter.ops.quantize import QUANTIZE, real
from litecl.perf.feeds import labels, named_inputs, prepare, random_inputs


def _is_quantized(spec: TensorSpec) -> bool:
    by = spec.quantization
    return spec.dtype.kind in "iu" and by is not None and bool(by.scale.size) and not by.block_size


def error(a: Array | None, b: Array | None) -> float:
    """Return the RMS of b - a relative to the RMS of a; infinite if they can't be compared."""
    if a is None or b is None or a.shape != b.shape or a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub":
        return 0.0 if a is not None and b is not None and np.array_equal(a, b) else np.inf
    expected = a.astype(np.float64)
    apart = distances(b.astype(np.float64), expected)
    if not apart.any() or not np.isfinite(apart).all():
        return float(apart.max(initial=0.0))
    size, off = (float(np.sqrt(np.mean(np.square(x)))) for x in (expected[np.isfinite(expected)], apart))
    return off / size if size else np.inf


def real_inputs(
    models: Sequence[Model], runtimes: Sequence[Interpreter], inputs: Mapping[str, Array], seed: int
) -> list[list[Array]]:
    """Return the inputs of two models. The second gets the same real numbers as the first, random ones within the
    range of its integers.

    Raises ModelError for an unknown name, ShapeError if the models' inputs differ in number or shape.
    """
    details = [runtime.get_input_details() for runtime in runtimes]
    by_name = named_inputs(details[0], inputs, seed)
    if len(details[0]) != len(details[1]):
        raise ShapeError(f"expected models of as many inputs, got {len(details[0])} and {len(details[1])}")
    first = [by_name[name] for name in labels(details[0])]
    a, b = ([graph.tensors[t] for t in graph.inputs] for graph in (model.subgraphs[0] for model in models))
    held = [_held(models[1].subgraphs[0], t) for t in models[1].subgraphs[0].inputs]
    alike = [
        {**detail, "shape": value.shape, "dtype": spec.dtype}
        for detail, value, spec in zip(details[1], first, held, strict=True)
    ]
    for position, (name, drawn) in enumerate(zip(by_name, random_inputs(alike, seed).values(), strict=True)):
        if name not in inputs and a[position].dtype.kind == "f" and _is_quantized(held[position]):
            first[position] = real(drawn, held[position].quantization).astype(a[position].dtype)
    numbers = [real(value, spec.quantization) for value, spec in zip(first, a, strict=True)]
    return [first, [_as(value, spec) for value, spec in zip(numbers, b, strict=True)]]


def _held(graph: Subgraph, tensor: int) -> TensorSpec:
    """Return the tensor that holds an input's numbers: what a QUANTIZE makes of it, else the input."""
    made = (node.outputs[0] for node in graph.nodes if node.op == QUANTIZE and node.inputs[0] == tensor)
    return graph.tensors[next(made, tensor)]


def _as(value: Array, spec: TensorSpec) -> Array:
    """Convert real numbers to a tensor's type, quantizing if needed. Raises ShapeError."""
    shape = spec.shape_signature or spec.shape
    if shape is not None and not fits(value.shape, shape):
        raise ShapeError(f"input {spec.name!r}: expected {[*value.shape]} as in the other model, got {[*shape]}")
    if not _is_quantized(spec) or value.dtype.kind != "f":
        return value.astype(spec.dtype)
    assert spec.quantization is not None
    bounds: Any = np.iinfo(spec.dtype.name)
    scaled = np.round(value / spec.quantization.scale) + spec.quantization.zero_point
    return np.clip(scaled, bounds.min, bounds.max).astype(spec.dtype)


def values_of(model: Model, runtime: Interpreter, given: Sequence[Array]) -> dict[int, Array]:
    """Run a model and return the real values of all computed tensors by index. runtime: preserves all tensors."""
    graph = model.subgraphs[0]
    prepare(runtime, dict(zip(labels(runtime.get_input_details()), given, strict=True)))
    runtime.invoke()
    values = {}
    for tensor in {*graph.outputs, *(t for node in graph.nodes for t in node.outputs)}:
        try:
            values[tensor] = real(np.asarray(runtime.get_tensor(tensor)), graph.tensors[tensor].quantization)
        except (LiteclError, ValueError):  # not readable, such as a resource
            continue
    return values
