"""Details of each node in a delegation report: tensors and kernels."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from litecl.delegate.report import NodeRow, TensorRow
from litecl.interpreter.graph import ABSENT, Model, TensorSpec

_OF_THE_LIBRARY = frozenset(
    {"ATAN2", "COS", "NON_MAX_SUPPRESSION_V5", "POW", "RFFT2D", "SIN", "TFLite_Detection_PostProcess"}
)
"""Operators whose kernels call the C library's mathematics, or have tables of numpy's, which round as they like."""
_EXACT = frozenset(
    (
        *("ADD", "BROADCAST_TO", "CAST", "CONCATENATION", "DENSIFY", "DEQUANTIZE", "DIV", "EXPAND_DIMS"),
        *("FILL", "GATHER", "GATHER_ND", "MAXIMUM", "MINIMUM", "MUL", "NEG", "PACK"),
        *("PAD", "RESHAPE", "SLICE", "SPLIT", "SQRT", "SQUEEZE", "STRIDED_SLICE", "SUB"),
        *("TILE", "TRANSPOSE", "UNPACK"),
    )
)
"""Operators that numpy computes alike on every processor: they move elements, or round each once."""


def kernel_name(kernel: str, entry: str) -> str:
    """Return a kernel's file name, without its folder, and its function if that has another name."""
    file = Path(kernel).name
    return file if file == entry else f"{file}:{entry}"


def with_details(
    rows: Iterable[NodeRow],
    model: Model,
    specs: Sequence[Sequence[TensorSpec]],
    launched: Iterable[tuple[tuple[int, int], str]],
    merged: Mapping[tuple[int, int], tuple[int, int]],
) -> tuple[NodeRow, ...]:
    """Add tensors, kernels, and fusions to the rows.

    specs: of the model's tensors, as far as known. launched: for every launch, its node (subgraph and position) and its
    kernel. merged: fused nodes, each with the node that it is fused into.
    """
    kernels: dict[tuple[int, int], dict[str, None]] = {}
    for place, kernel in launched:
        kernels.setdefault(place, {})[kernel] = None
    detailed = (_with_details(row, model, specs[row.subgraph], kernels) for row in rows)
    return tuple(replace(row, into=merged.get((row.subgraph, row.node))) for row in detailed)


def _with_details(
    row: NodeRow, model: Model, specs: Sequence[TensorSpec], kernels: dict[tuple[int, int], dict[str, None]]
) -> NodeRow:
    node = model.subgraphs[row.subgraph].nodes[row.node]
    return replace(
        row,
        inputs=tuple(_tensor_row(t, specs[t]) for t in node.inputs if t != ABSENT),
        outputs=tuple(_tensor_row(t, specs[t]) for t in node.outputs),
        kernels=tuple(kernels.get((row.subgraph, row.node), ())),
    )


def _tensor_row(tensor: int, spec: TensorSpec) -> TensorRow:
    size_bytes = 0 if spec.shape is None else spec.size * spec.dtype.itemsize
    return TensorRow(tensor, spec.name, spec.type.name, spec.shape, size_bytes, spec.data is not None)


def steady(rows: Iterable[NodeRow], model: Model) -> str:
    """Return a line that names the operators of floats whose bits may differ between processors: those of the C
    library, and those that numpy computes, at preparation or later, as it chooses its loops by the processor.
    """
    differing = Counter(row.op for row in rows if _is_float(row, model) and _may_differ(row))
    named = ", ".join(f"{op} ({count})" for op, count in sorted(differing.items()))
    return f"deterministic: the same bits on every processor{f', but for {named}' if named else ''}"


def _may_differ(row: NodeRow) -> bool:
    is_folded = row.claimed and row.partition is None
    return row.op not in _EXACT if is_folded else not row.claimed or row.op in _OF_THE_LIBRARY


def _is_float(row: NodeRow, model: Model) -> bool:
    graph = model.subgraphs[row.subgraph]
    return any(graph.tensors[t].dtype.kind in "fc" for t in graph.nodes[row.node].outputs)
