"""Widens integers where TFLite computes narrow ones only if they are quantized, or does not move them.

Values that don't fit wrap around, as in TensorFlow.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.interpreter.schema import TensorType

_Types = Mapping[TensorType, TensorType]

_WIDE: _Types = {
    **dict.fromkeys((TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.UINT16), TensorType.INT32),
    TensorType.UINT32: TensorType.INT64,
}
# Operators that compute or compare.
_COMPUTE = frozenset(
    (
        *("Abs", "Add", "AddN", "AddV2", "ArgMax", "ArgMin", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"),
        *("BiasAdd", "Bincount", "ClipByValue", "Cumprod", "Cumsum", "DenseBincount", "Equal", "FloorDiv", "FloorMod"),
        *(
            "Greater",
            "GreaterEqual",
            "LeftShift",
            "Less",
            "LessEqual",
            "MatMul",
            "Max",
            "Maximum",
            "Mean",
            "Min",
            "Minimum",
            "Mod",
        ),
        *(
            "Mul",
            "Neg",
            "NotEqual",
            "Pow",
            "Prod",
            "Relu",
            "Relu6",
            "ScatterNd",
            "SegmentMax",
            "SegmentMin",
        ),
        *("SegmentProd", "SegmentSum", "Select", "SelectV2", "Sign", "Square", "SquaredDifference", "Sub", "Sum"),
        *("TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub", "TensorScatterUpdate"),
        *("TopKV2", "TruncateDiv", "TruncateMod", "Unique", "UniqueV2", "UnsortedSegmentMax", "UnsortedSegmentMin"),
        *("UnsortedSegmentProd", "UnsortedSegmentSum"),
    )
)


# Operators that move elements, and the types that LiteRT's kernels of them lack.
_TRUTH = {TensorType.BOOL: TensorType.INT32}
_UNSIGNED = {TensorType.UINT16: TensorType.INT32, TensorType.UINT32: TensorType.INT64}
_DIAGONALS = ("BatchMatrixDiag", "Diag", "MatrixDiag", "MatrixDiagV2", "MatrixDiagV3")
_MOVE = (
    (("ReverseSequence",), {**_WIDE, **_TRUTH}),
    (("Pack", "Split", "SplitV"), {**_TRUTH, **_UNSIGNED}),
    (("ConcatV2", "Gather", "GatherNd", "GatherV2", "Pad", "PadV2", "ReverseV2", "Unpack"), _UNSIGNED),
    (("DepthToSpace", "SpaceToDepth"), {**_TRUTH, **_UNSIGNED, TensorType.INT16: TensorType.INT32}),
    # These write every element as four bytes, past the end of a narrow result.
    (
        (*_DIAGONALS, "MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"),
        {**_TRUTH, TensorType.UINT16: TensorType.INT32},
    ),
)
_TYPES: Mapping[str, _Types] = {
    **dict.fromkeys(_COMPUTE, _WIDE),
    **{name: types for names, types in _MOVE for name in names},
}
# The operator and the limit of the narrow type that bound the result of segments without elements.
_LIMITS = {"UnsortedSegmentMax": ("Maximum", 0), "UnsortedSegmentMin": ("Minimum", 1)}


def widen_integers(function: Function) -> None:
    """Put casts around every such operator."""
    narrow = [(node, _TYPES[node.op_name]) for node in function.nodes if _has(node, _TYPES.get(node.op_name, {}))]
    for node, types in narrow:
        _widen(function, node, types)
    if narrow:
        function.tidy()


def _has(node: Node, types: _Types) -> bool:
    return any(value is not None and value.type in types for value in (*node.inputs, *node.outputs))


def _widen(function: Function, node: Node, types: _Types) -> None:
    inputs = [None if value is None else _cast(function, value, types.get(value.type)) for value in node.inputs]
    outputs = [Value(types.get(value.type, value.type), value.shape, value.name) for value in node.outputs]
    attrs = {name: types.get(option, option) if _is_type(option) else option for name, option in node.attrs.items()}
    wide = function.add(Node(node.op, inputs, outputs, attrs, node.name), before=node)
    results = []
    for value, old in zip(wide.outputs, node.outputs, strict=True):
        bounded = _bounded(function, node, value, old.type)
        results.append(_cast(function, bounded, old.type if old.type in types else None))
    function.replace_node(node, results)


def _bounded(function: Function, node: Node, value: Value, narrow: TensorType) -> Value:
    if node.op_name not in _LIMITS:
        return value
    op, end = _LIMITS[node.op_name]
    limits: Any = np.iinfo(narrow.dtype)
    limit = constant(np.array((limits.min, limits.max)[end], value.type.dtype))
    return function.emit(op, [value, limit], value, node.name)


def _is_type(option: object) -> bool:
    return isinstance(option, TensorType)


def _cast(function: Function, value: Value, to: TensorType | None) -> Value:
    if to is None:
        return value
    if value.data is not None:
        return constant(value.data.astype(to.dtype), value.name)
    return function.emit("Cast", [value], (to, value.shape), value.name, SrcT=value.type, DstT=to, Truncate=False)
