"""Summarizes a model's contents."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import field, fields, is_dataclass
from typing import Any

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.storage import stored_bytes
from litecl.interpreter.graph import ABSENT, Model, Subgraph, TensorSpec
from litecl.interpreter.ops.control import StableHLOCompositeOptions
from litecl.perf.arithmetic import multiply_adds


@dataclass(frozen=True)
class TensorLine:
    """A tensor's short description. shape: -1 for open dimensions."""

    name: str
    type: str
    shape: tuple[int, ...] | None


@dataclass(frozen=True)
class StoredTensor:
    """A tensor's full description. size_bytes: of its elements as stored in a file, if known.

    scale, zero_point: minimum and maximum, if quantized. scales: the number of scales. dimension: their axis if there
    is more than one.
    """

    subgraph: int
    tensor: int
    name: str
    type: str
    shape: tuple[int, ...] | None
    size_bytes: int | None
    constant: bool
    scale: tuple[float, float] | None
    zero_point: tuple[int, int] | None
    scales: int
    dimension: int | None


@dataclass(frozen=True)
class NodeLine:
    """A node with its tensors as text and its options that differ from the schema's defaults.

    composite: a STABLEHLO_COMPOSITE's name and attributes; None for other operators. multiply_adds: of products; None
    for other operators and unknown shapes.
    """

    subgraph: int
    node: int
    op: str
    version: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    options: str
    multiply_adds: int | None = None
    composite: "CompositeLine | None" = None


@dataclass(frozen=True)
class CompositeLine:
    """A composite's name, version and attributes. attributes: None if they can't be read."""

    name: str
    version: int
    attributes: dict[str, Any] | None


@dataclass(frozen=True)
class GraphSummary:
    """A subgraph: its interface, and counts of operators, composites by name, and tensors by type."""

    name: str
    inputs: tuple[TensorLine, ...]
    outputs: tuple[TensorLine, ...]
    operators: dict[str, int]
    tensors: dict[str, int]
    composites: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SignatureSummary:
    """A named entry point with the names of its arguments and results."""

    key: str
    subgraph: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class ModelSummary:
    """A whole model. constant_bytes: size in memory, counting shared buffers once.

    multiply_adds: of all products with known shapes, counting loop bodies once.
    """

    description: str
    subgraphs: tuple[GraphSummary, ...]
    signatures: tuple[SignatureSummary, ...]
    operators: dict[str, int]
    constant_bytes: int
    multiply_adds: int
    metadata: tuple[str, ...]


def summarize(model: Model) -> ModelSummary:
    """Summarize a model."""
    constants = {id(t.data): t.data for g in model.subgraphs for t in g.tensors if t.data is not None}
    return ModelSummary(
        description=model.description,
        subgraphs=tuple(_graph(graph) for graph in model.subgraphs),
        signatures=tuple(
            SignatureSummary(s.key, s.subgraph, tuple(s.inputs), tuple(s.outputs)) for s in model.signatures
        ),
        operators=_counted(node.op.name for graph in model.subgraphs for node in graph.nodes),
        constant_bytes=sum(data.nbytes for data in constants.values()),
        multiply_adds=sum(multiply_adds(node, g.tensors) or 0 for g in model.subgraphs for node in g.nodes),
        metadata=tuple(model.metadata),
    )


def node_lines(model: Model) -> tuple[NodeLine, ...]:
    """Return every node of every subgraph."""
    return tuple(
        NodeLine(
            index,
            position,
            node.op.name,
            node.version,
            tuple("-" if t == ABSENT else describe(t, graph.tensors[t]) for t in node.inputs),
            tuple(describe(t, graph.tensors[t]) for t in node.outputs),
            _options(node.options),
            multiply_adds(node, graph.tensors),
            _composite(node.options),
        )
        for index, graph in enumerate(model.subgraphs)
        for position, node in enumerate(graph.nodes)
    )


def stored_tensors(model: Model) -> tuple[StoredTensor, ...]:
    """Return every tensor of every subgraph."""
    return tuple(
        _stored(number, index, spec)
        for number, graph in enumerate(model.subgraphs)
        for index, spec in enumerate(graph.tensors)
    )


def _stored(subgraph: int, index: int, spec: TensorSpec) -> StoredTensor:
    line, quantization = _tensor(spec), spec.quantization
    size_bytes = None if spec.shape is None else stored_bytes(spec.type, spec.size)
    head = subgraph, index, line.name, line.type, line.shape, size_bytes, spec.data is not None
    if quantization is None or not quantization.scale.size:
        return StoredTensor(*head, None, None, 0, None)
    scale, zero, count = quantization.scale, quantization.zero_point, quantization.scale.size
    zero_point = (int(zero.min()), int(zero.max())) if zero.size else (0, 0)
    along = quantization.quantized_dimension if count > 1 else None
    return StoredTensor(*head, (float(scale.min()), float(scale.max())), zero_point, count, along)


def describe(index: int, spec: TensorSpec) -> str:
    """Describe a tensor briefly: ``7:FLOAT32[1,8,8,16]``, with ``=`` after a constant's index."""
    shape = "?" if spec.shape is None else ",".join(map(str, spec.shape))
    return f"{index}{'=' if spec.data is not None else ':'}{spec.type.name}[{shape}]"


def _graph(graph: Subgraph) -> GraphSummary:
    return GraphSummary(
        name=graph.name,
        inputs=tuple(_tensor(graph.tensors[t]) for t in graph.inputs),
        outputs=tuple(_tensor(graph.tensors[t]) for t in graph.outputs),
        operators=_counted(node.op.name for node in graph.nodes),
        tensors=_counted(spec.type.name for spec in graph.tensors),
        composites=_counted(line.name for node in graph.nodes if (line := _composite(node.options)) is not None),
    )


def _tensor(spec: TensorSpec) -> TensorLine:
    return TensorLine(spec.name, spec.type.name, spec.shape if spec.shape_signature is None else spec.shape_signature)


def _counted(names: Iterable[str]) -> dict[str, int]:
    """Count names, most common first."""
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))


def _composite(options: object) -> CompositeLine | None:
    if not isinstance(options, StableHLOCompositeOptions):
        return None
    try:
        attributes = {name: _value(value) for name, value in options.attributes().items()}
    except ModelError:
        return CompositeLine(options.name, options.version, None)
    return CompositeLine(options.name, options.version, attributes)


def _value(value: object) -> Any:
    """Return an attribute's value for display, shortening float32 values."""
    if isinstance(value, float) and abs(value) < 1e38 and float(np.float32(value)) == value:
        return float(str(np.float32(value)))
    return bytes(value).hex() if isinstance(value, bytes | bytearray) else value


def _options(options: object) -> str:
    """Return the options that differ from the schema's defaults."""
    if not is_dataclass(options):
        return ""
    if (line := _composite(options)) is not None and isinstance(options, StableHLOCompositeOptions):
        return f"{_called(line)}, decomposition_subgraph_index={options.decomposition_subgraph_index}"
    values = {field.name: getattr(options, field.name) for field in fields(options)}
    defaults: dict[str, Any] = {field.name: field.default for field in fields(options)}
    return ", ".join(
        f"{name}={getattr(value, 'name', value)}"
        for name, value in values.items()
        if not np.array_equal(value, defaults[name])
    )


def _called(line: CompositeLine) -> str:
    """Describe a composite: ``odml.rms_norm(epsilon=1e-06)``."""
    if line.attributes is None:
        attributes = "attributes that are no map"
    else:
        attributes = ", ".join(f"{name}={value}" for name, value in line.attributes.items())
    return f"{line.name}({attributes})" + (f" version {line.version}" if line.version else "")
