"""Two models side by side: their nodes, their tensors, and what they compute on the same inputs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from litecl.diff.pair import Pair, pairs
from litecl.diff.values import error, real_inputs, values_of
from litecl.interpreter.file.reader import read
from litecl.interpreter.frames import Library, frame
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Quantization, Subgraph, TensorSpec
from litecl.interpreter.html import block, paragraph, table

Source = str | PathLike[str] | bytes


@dataclass(frozen=True)
class Changed:
    """A node that both models have. a, b: its number in each. what: what differs, each as "field: one -> other"."""

    a: int
    b: int
    op: str
    name: str
    what: tuple[str, ...]


@dataclass(frozen=True)
class Layer:
    """Results of a node of both models. relative: the root of the mean square of the difference of its first
    result, relative to that of the first model's; quantized results are compared as the real numbers that they are.
    """

    a: int
    b: int
    op: str
    name: str
    relative: float


@dataclass(frozen=True)
class Difference:
    """Two models. only_a, only_b: nodes that one of them has, by number, as "operator name". outputs: the error of each
    output, as ``Layer.relative``. inputs: what differs of inputs and outputs.
    """

    only_a: Mapping[int, str]
    only_b: Mapping[int, str]
    changed: tuple[Changed, ...]
    layers: tuple[Layer, ...]
    outputs: tuple[float, ...]
    ends: tuple[str, ...]

    @property
    def same_structure(self) -> bool:
        """True if nodes, tensors and constants are the same."""
        return not (self.only_a or self.only_b or self.changed or self.ends)

    def frame(self, rows: Literal["layers", "changed"] = "layers", library: Library | None = None) -> Any:
        """Return rows as a data frame of pandas or polars (``frames.frame``). Raises MissingExtra without either."""
        return frame(getattr(self, rows), library)

    def _repr_html_(self) -> str:
        """Return the comparison as HTML, which notebooks show."""
        ones = [("first", n, name) for n, name in self.only_a.items()]
        ones += [("second", n, name) for n, name in self.only_b.items()]
        return block(
            paragraph(f"The structures are {'equal' if self.same_structure else 'different'}."),
            *map(paragraph, self.ends),
            table(("only in the", "node", "operator"), ones),
            table(
                ("node", "of the other", "operator", "name", "differs"),
                ((c.a, c.b, c.op, c.name, "\n".join(c.what)) for c in self.changed),
            ),
            table(("output", "relative error"), ((n, f"{e:.3g}") for n, e in enumerate(self.outputs))),
            table(
                ("node", "of the other", "operator", "name", "relative error"),
                ((x.a, x.b, x.op, x.name, f"{x.relative:.3g}") for x in self.layers),
            ),
        )


def diff_models(a: Source, b: Source, inputs: Mapping[str, Array] | None = None, *, seed: int = 0) -> Difference:
    """Compare two models, node by node, then layer by layer on the same inputs.

    inputs: of the first model, by name, as it takes them; those not given are random, by ``seed``. The second model
    gets the same real numbers, in the types of its own inputs. Raises ModelError for files that are no models, and
    ShapeError where their inputs have other shapes or another number.
    """
    contents = [source if isinstance(source, bytes) else Path(source).read_bytes() for source in (a, b)]
    models = [read(content) for content in contents]
    first, second = (model.subgraphs[0] for model in models)
    found = pairs(first, second)
    given = real_inputs(contents, inputs or {}, seed)
    values = [values_of(content, own) for content, own in zip(contents, given, strict=True)]
    layers = tuple(_layers(found, first, second, values))
    outputs = zip(first.outputs, second.outputs, strict=False)
    return Difference(
        only_a=_others(first, [i for i, _ in found]),
        only_b=_others(second, [j for _, j in found]),
        changed=tuple(_changed(found, models)),
        layers=layers,
        outputs=tuple(error(values[0].get(s), values[1].get(t)) for s, t in outputs),
        ends=tuple(_ends(first, second)),
    )


def _others(graph: Subgraph, paired: Sequence[int]) -> dict[int, str]:
    taken = {*paired}
    return {i: _named(graph, node) for i, node in enumerate(graph.nodes) if i not in taken}


def _named(graph: Subgraph, node: Node) -> str:
    return f"{node.op.name} {_name(graph, node)}".strip()


def _name(graph: Subgraph, node: Node) -> str:
    return graph.tensors[node.outputs[0]].name if node.outputs else ""


def _layers(found: Sequence[Pair], a: Subgraph, b: Subgraph, values: Sequence[Mapping[int, Array]]) -> Iterator[Layer]:
    for i, j in found:
        of_a, of_b = a.nodes[i], b.nodes[j]
        if of_a.outputs and of_b.outputs and of_a.outputs[0] in values[0] and of_b.outputs[0] in values[1]:
            relative = error(values[0][of_a.outputs[0]], values[1][of_b.outputs[0]])
            yield Layer(i, j, of_a.op.name, _name(a, of_a), relative)


def _changed(found: Sequence[Pair], models: Sequence[Model]) -> Iterator[Changed]:
    a, b = (model.subgraphs[0] for model in models)
    for i, j in found:
        what = tuple(_of_node(a, a.nodes[i], b, b.nodes[j]))
        if what:
            yield Changed(i, j, a.nodes[i].op.name, _name(a, a.nodes[i]), what)


def _of_node(a: Subgraph, of_a: Node, b: Subgraph, of_b: Node) -> Iterator[str]:
    if of_a.version != of_b.version:
        yield f"version: {of_a.version} -> {of_b.version}"
    yield from _of_options(of_a.options, of_b.options)
    yield from _of_operands(a, of_a, b, of_b)
    for position, (s, t) in enumerate(zip(of_a.outputs, of_b.outputs, strict=False)):
        yield from (f"result {position}: {text}" for text in _of_tensor(a.tensors[s], b.tensors[t]))


def _of_operands(a: Subgraph, of_a: Node, b: Subgraph, of_b: Node) -> Iterator[str]:
    """Tell of constants; of what nodes compute is told with these."""
    if len(of_a.inputs) != len(of_b.inputs):
        yield f"operands: {len(of_a.inputs)} -> {len(of_b.inputs)}"
    for position, (s, t) in enumerate(zip(of_a.inputs, of_b.inputs, strict=False)):
        if s == ABSENT or t == ABSENT:
            if s != t:
                yield f"operand {position}: {_given(s)} -> {_given(t)}"
        elif a.tensors[s].data is not None or b.tensors[t].data is not None:
            yield from (f"operand {position}: {text}" for text in _of_tensor(a.tensors[s], b.tensors[t]))


def _given(tensor: int) -> str:
    return "absent" if tensor == ABSENT else "given"


def _of_options(a: Any, b: Any) -> Iterator[str]:
    if type(a) is not type(b) or not is_dataclass(a):
        if a != b:
            yield f"options: {a} -> {b}"
        return
    for field in fields(a):
        one, other = getattr(a, field.name), getattr(b, field.name)
        if one != other:
            yield f"{field.name}: {_text(one)} -> {_text(other)}"


def _text(value: Any) -> str:
    return value.name if hasattr(value, "name") else str(value)


def _of_tensor(a: TensorSpec, b: TensorSpec) -> Iterator[str]:
    if a.type != b.type:
        yield f"{a.type.name} -> {b.type.name}"
    if a.shape != b.shape:
        yield f"shape {_shape(a.shape)} -> {_shape(b.shape)}"
    if (one := _quantized(a.quantization)) != (other := _quantized(b.quantization)):
        yield f"quantization {one} -> {other}"
    if (a.data is None) != (b.data is None):
        yield "constant -> computed" if b.data is None else "computed -> constant"
    elif a.data is not None and b.data is not None and a.type == b.type and a.data.shape == b.data.shape:
        apart = int((a.data != b.data).sum())
        if apart:
            yield f"{apart} of {a.data.size} elements"


def _shape(shape: Sequence[int] | None) -> str:
    return "unknown" if shape is None else str([*shape])


def _quantized(by: Quantization | None) -> str:
    if by is None or not by.scale.size:
        return "none"
    scales, zeros = np.asarray(by.scale).reshape(-1), np.asarray(by.zero_point).reshape(-1)
    low, high, zero = float(scales.min()), float(scales.max()), int(zeros[0]) if zeros.size else 0
    if scales.size == 1:
        return f"{low:.6g} at {zero}"
    return f"{low:.6g} to {high:.6g} along {by.quantized_dimension} at {zero}"


def _ends(a: Subgraph, b: Subgraph) -> Iterator[str]:
    for kind, one, other in (("inputs", a.inputs, b.inputs), ("outputs", a.outputs, b.outputs)):
        if len(one) != len(other):
            yield f"{kind}: {len(one)} -> {len(other)}"
        for s, t in zip(one, other, strict=False):
            for text in _of_tensor(a.tensors[s], b.tensors[t]):
                yield f"{kind[:-1]} {a.tensors[s].name}: {text}"
