"""Details of each node in a delegation report: tensors and kernels."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from litecl.delegate.report import NodeRow, TensorRow
from litecl.interpreter.graph import ABSENT, Model, TensorSpec
from litecl.interpreter.schema import ActivationFunctionType, TensorType

_FLOATS = frozenset(kind for kind in TensorType if kind.name.startswith(("FLOAT", "BFLOAT", "COMPLEX")))
_OF_THE_LIBRARY = frozenset(
    {"ATAN2", "COS", "NON_MAX_SUPPRESSION_V5", "POW", "RFFT2D", "SIN", "TFLite_Detection_PostProcess"}
)
"""Operators whose kernels call the C library's mathematics, or have tables of numpy's, which round as they like."""
_EXACT = """
    ABS ADD ARG_MAX ARG_MIN BATCH_TO_SPACE_ND BROADCAST_TO BUCKETIZE CAST CEIL CONCATENATION DENSIFY DEPTH_TO_SPACE
    DEQUANTIZE DIV EMBEDDING_LOOKUP EQUAL EXPAND_DIMS FILL FLOOR GATHER GATHER_ND GREATER GREATER_EQUAL LESS LESS_EQUAL
    MATRIX_DIAG MATRIX_SET_DIAG MAXIMUM MINIMUM MIRROR_PAD MUL NEG NOT_EQUAL ONE_HOT PACK PAD PADV2 QUANTIZE RANK RELU
    RELU6 RELU_0_TO_1 RELU_N1_TO_1 RESHAPE REVERSE_SEQUENCE REVERSE_V2 ROUND SCATTER_ND SELECT SELECT_V2 SHAPE SIGN
    SLICE SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPARSE_TO_DENSE SPLIT SPLIT_V SQRT SQUARE SQUEEZE STRIDED_SLICE SUB TILE
    TOPK_V2 TRANSPOSE UNPACK WHERE ZEROS_LIKE
"""
"""Operators that numpy computes alike on every processor: they move or compare, or IEEE 754 defines how they round."""


@lru_cache(1024)
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
    return tuple(
        _with_details(row, model, specs[row.subgraph], tuple(kernels.get(place, ())), merged.get(place))
        for row in rows
        for place in [(row.subgraph, row.node)]
    )


def _with_details(
    row: NodeRow,
    model: Model,
    specs: Sequence[TensorSpec],
    kernels: tuple[str, ...],
    into: tuple[int, int] | None,
) -> NodeRow:
    node = model.subgraphs[row.subgraph].nodes[row.node]
    return replace(
        row,
        inputs=tuple(_tensor_row(t, specs[t]) for t in node.inputs if t != ABSENT),
        outputs=tuple(_tensor_row(t, specs[t]) for t in node.outputs),
        kernels=kernels,
        into=into,
    )


def _tensor_row(tensor: int, spec: TensorSpec) -> TensorRow:
    size_bytes = 0 if spec.shape is None else spec.size * spec.dtype.itemsize
    return TensorRow(tensor, spec.name, spec.type.name, spec.shape, size_bytes, spec.data is not None)


def steady(rows: Iterable[NodeRow], model: Model, specs: Sequence[Sequence[TensorSpec]]) -> str:
    """Return a line that names the operators of floats whose bits may differ between processors: those of the C
    library, and those of the CPU, at preparation too, whose numpy chooses its loops by the processor.

    specs: of the model's tensors, as far as known.
    """
    differing = Counter(row.op for row in rows if _uses_floats(row, model) and _may_differ(row, model, specs))
    named = ", ".join(f"{op} ({count})" for op, count in sorted(differing.items()))
    line = "deterministic: the same bits on every processor, NaN's sign and payload aside"
    return f"{line}, but for {named}" if named else line


def _may_differ(row: NodeRow, model: Model, specs: Sequence[Sequence[TensorSpec]]) -> bool:
    node = model.subgraphs[row.subgraph].nodes[row.node]
    is_constant = bool(node.outputs) and all(specs[row.subgraph][t].data is not None for t in node.outputs)
    if row.partition is not None and not is_constant:
        return row.op in _OF_THE_LIBRARY
    tanh = getattr(node.options, "fused_activation_function", None) == ActivationFunctionType.TANH
    return tanh or row.op not in _EXACT.split()


def _uses_floats(row: NodeRow, model: Model) -> bool:
    graph = model.subgraphs[row.subgraph]
    node = graph.nodes[row.node]
    return any(graph.tensors[t].type in _FLOATS for t in (*node.inputs, *node.outputs) if t != ABSENT)
