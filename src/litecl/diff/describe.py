"""Describes the differences of nodes, tensors and signatures."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from litecl.diff.values import error
from litecl.interpreter.graph import ABSENT, Model, Node, Quantization, Subgraph, TensorSpec, callees_of
from litecl.interpreter.ops.quantize import real


def of_node(a: Subgraph, of_a: Node, b: Subgraph, of_b: Node) -> Iterator[str]:
    """Describe the differences of two nodes of one operator, each as "field: one -> other"."""
    if of_a.version != of_b.version:
        yield f"version: {of_a.version} -> {of_b.version}"
    yield from _of_options(of_a, of_b)
    yield from _of_operands(a, of_a, b, of_b)
    if len(of_a.outputs) != len(of_b.outputs):
        yield f"results: {len(of_a.outputs)} -> {len(of_b.outputs)}"
    for position, (s, t) in enumerate(zip(of_a.outputs, of_b.outputs, strict=False)):
        yield from (f"result {position}: {text}" for text in of_tensor(a.tensors[s], b.tensors[t]))


def _of_operands(a: Subgraph, of_a: Node, b: Subgraph, of_b: Node) -> Iterator[str]:
    """Describe differing constant operands. Computed ones are described with the nodes that compute them."""
    if len(of_a.inputs) != len(of_b.inputs):
        yield f"operands: {len(of_a.inputs)} -> {len(of_b.inputs)}"
    for position, (s, t) in enumerate(zip(of_a.inputs, of_b.inputs, strict=False)):
        if s == ABSENT or t == ABSENT:
            if s != t:
                yield f"operand {position}: {_given(s)} -> {_given(t)}"
        elif a.tensors[s].data is not None or b.tensors[t].data is not None:
            yield from (f"operand {position}: {text}" for text in of_tensor(a.tensors[s], b.tensors[t]))


def _given(tensor: int) -> str:
    return "absent" if tensor == ABSENT else "given"


def _of_options(of_a: Node, of_b: Node) -> Iterator[str]:
    a, b = of_a.options, of_b.options
    if type(a) is not type(b) or not is_dataclass(a):
        if a != b:
            yield f"options: {a} -> {b}"
        return
    # Subgraphs that a node runs are compared by content, not by number.
    called = ("subgraph_index", "subgraph") if callees_of(of_a) else ()
    for field in fields(a):
        one, other = getattr(a, field.name), getattr(b, field.name)
        if one != other and not field.name.endswith(called):
            yield f"{field.name}: {_text(one)} -> {_text(other)}"


def _text(value: Any) -> str:
    return value.name if hasattr(value, "name") else str(value)


def of_tensor(a: TensorSpec, b: TensorSpec) -> Iterator[str]:
    """Describe the differences of two tensors: type, shape, quantization, and elements of constants."""
    if a.type != b.type:
        yield f"{a.type.name} -> {b.type.name}"
    if a.shape != b.shape:
        yield f"shape {_shape(a.shape)} -> {_shape(b.shape)}"
    elif a.shape_signature != b.shape_signature:
        yield f"open dimensions {_shape(a.shape_signature)} -> {_shape(b.shape_signature)}"
    if not _same_quantization(a.quantization, b.quantization):
        yield f"quantization {_quantized(a.quantization)} -> {_quantized(b.quantization)}"
    if (a.data is None) != (b.data is None):
        yield "constant -> computed" if b.data is None else "computed -> constant"
    elif a.data is not None and b.data is not None and a.type == b.type and a.data.shape == b.data.shape:
        apart = _unequal(a, b)
        if apart:
            yield f"{apart} of {a.data.size} elements"
    elif a.data is not None and b.data is not None and a.data.shape == b.data.shape:
        yield f"relative error {error(real(a.data, a.quantization), real(b.data, b.quantization)):.2g}"


def _unequal(a: TensorSpec, b: TensorSpec) -> int:
    same = a.data == b.data
    if a.data is not None and a.data.dtype.kind == "f":
        same = same | (np.isnan(a.data) & np.isnan(b.data))  # type: ignore[arg-type]
    return int(np.asarray(~np.asarray(same, bool)).sum())


def _shape(shape: Sequence[int] | None) -> str:
    return "unknown" if shape is None else str([*shape])


def _same_quantization(a: Quantization | None, b: Quantization | None) -> bool:
    of_a, of_b = (None if by is None or not by.scale.size else by for by in (a, b))
    return of_a is of_b if of_a is None or of_b is None else of_a.same(of_b)


def _quantized(by: Quantization | None) -> str:
    if by is None or not by.scale.size:
        return "none"
    scales, zeros = np.asarray(by.scale).reshape(-1), np.asarray(by.zero_point).reshape(-1)
    low, high, zero = float(scales.min()), float(scales.max()), int(zeros[0]) if zeros.size else 0
    if scales.size == 1:
        return f"{low:.6g}, zero point {zero}"
    return f"{low:.6g} to {high:.6g} along dimension {by.quantized_dimension}, zero point {zero}"


def of_signatures(a: Model, b: Model) -> Iterator[str]:
    """Describe the differences of two models' signatures: keys, and names of inputs and outputs."""
    of_a, of_b = ({s.key: s for s in model.signatures} for model in (a, b))
    if of_a.keys() != of_b.keys():
        yield f"signatures: {sorted(of_a) or 'none'} -> {sorted(of_b) or 'none'}"
    for key in of_a.keys() & of_b.keys():
        for kind in ("inputs", "outputs"):
            one, other = (sorted(getattr(signatures[key], kind)) for signatures in (of_a, of_b))
            if one != other:
                yield f"{kind} of signature {key}: {one} -> {other}"
