"""Cases of every element type that an operator takes besides the ones that its own table has.

Each is a case of the operator's table with the elements of its first float (or integer) inputs in another type.
"""

from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random
from litecl.interpreter.graph import Array, Quantization
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops import BUILTINS
from litecl.interpreter.schema import TensorType as T

_random = Random(89)
_TABLES = [
    "arg_max",
    "binary",
    "broadcast_to",
    "bucketize",
    "cast",
    "compare",
    "concatenation",
    "cumsum",
    "dilate",
    "dynamic_update_slice",
    "embedding_lookup",
    "fill",
    "gather",
    "gelu",
    "matrix_diag",
    "one_hot",
    "pack",
    "pad",
    "pool_2d",
    "reduce",
    "reduce_window",
    "reshape",
    "resize",
    "reverse",
    "scatter_nd",
    "select",
    "shape",
    "slice",
    "softmax",
    "space_to_batch_nd",
    "space_to_depth",
    "sparse_lookup",
    "sparse_to_dense",
    "split",
    "stablehlo",
    "strided_slice",
    "tile",
    "topk_v2",
    "transpose",
    "unary",
    "unique",
]

_SMALL = (T.UINT8, T.INT16, T.INT8)
_PLAIN = (T.INT32, T.INT64, *_SMALL)
_WIDE = (T.FLOAT16, *_PLAIN, T.BOOL, T.COMPLEX64, T.FLOAT64, T.UINT64, T.UINT32, T.UINT16)
_TYPES: dict[str, tuple[T, ...]] = {
    "ARG_MAX": (T.BOOL, T.INT8),
    "ARG_MIN": (T.BOOL, T.INT8),
    "ADD": (T.FLOAT16, T.INT16),
    "MUL": (T.FLOAT16, T.INT16, T.COMPLEX64, T.UINT32),
    "MAXIMUM": (T.FLOAT16, *_SMALL),
    "MINIMUM": (T.FLOAT16, *_SMALL),
    "ATAN2": (T.FLOAT16, T.FLOAT64),
    "BITWISE_XOR": (T.INT16, T.INT8, T.UINT32, T.UINT16),
    "RIGHT_SHIFT": (*_SMALL, T.UINT32, T.UINT16),
    "BROADCAST_TO": _WIDE,
    "BUCKETIZE": (T.FLOAT64,),
    **dict.fromkeys(("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), (T.FLOAT16, T.INT16)),
    "NOT_EQUAL": (T.FLOAT16,),
    "CONCATENATION": (T.INT8, T.UINT32),
    "CUMSUM": (T.INT64,),
    "DILATE": _WIDE,
    "DYNAMIC_UPDATE_SLICE": _WIDE,
    "EMBEDDING_LOOKUP": _WIDE,
    "FILL": _WIDE,
    "GATHER": (T.FLOAT16, *_PLAIN, T.BOOL),
    "GATHER_ND": (T.FLOAT16, *_PLAIN, T.STRING, T.BOOL),
    "GELU": (T.FLOAT16,),
    "MATRIX_DIAG": (*_PLAIN, T.UINT32),
    "MATRIX_SET_DIAG": (*_PLAIN, T.UINT32),
    "ONE_HOT": (T.INT32, T.UINT8, T.INT64, T.BOOL, T.INT8),
    "PACK": (*_PLAIN, T.UINT32),
    "UNPACK": (T.FLOAT16, T.INT32, *_SMALL, T.BOOL),
    "PAD": (T.FLOAT16, *_PLAIN, T.BOOL),
    "PADV2": (T.FLOAT16, *_PLAIN, T.BOOL),
    "MIRROR_PAD": _WIDE,
    "SOFTMAX": (T.FLOAT16,),
    **dict.fromkeys(("REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"), (*_PLAIN, T.BOOL)),
    "REDUCE_WINDOW": (T.FLOAT64,),
    "RESIZE_NEAREST_NEIGHBOR": _SMALL,
    "NEG": (T.FLOAT16, T.INT16, T.INT8),
    **dict.fromkeys(("SIN", "COS", "FLOOR", "ROUND", "LOGISTIC", "TANH"), (T.FLOAT16,)),
    "RESHAPE": (*_WIDE, T.STRING),
    "SQUEEZE": (*_WIDE, T.STRING),
    "EXPAND_DIMS": (*_WIDE, T.STRING),
    "REVERSE_V2": (T.FLOAT16, *_PLAIN, T.BOOL),
    "REVERSE_SEQUENCE": (T.INT32, T.UINT8, T.INT64, T.INT16),
    "SCATTER_ND": (T.INT32, T.UINT8, T.INT64, T.BOOL, T.INT8),
    "SELECT": _WIDE,
    "SELECT_V2": _WIDE,
    "WHERE": (T.INT32, T.UINT8, T.INT64, T.INT8, T.UINT32),
    "SHAPE": (*_WIDE, T.STRING),
    "RANK": (*_WIDE, T.STRING),
    "SLICE": (*_WIDE, T.STRING),
    "SPACE_TO_BATCH_ND": _WIDE,
    "BATCH_TO_SPACE_ND": _WIDE,
    "SPACE_TO_DEPTH": (T.INT32, T.UINT8, T.INT64, T.INT8),
    "DEPTH_TO_SPACE": (T.INT32, T.UINT8, T.INT64, T.INT8),
    "HASHTABLE_LOOKUP": _WIDE,
    "SPARSE_TO_DENSE": (T.INT32, T.UINT8, T.INT64, T.INT8),
    "SPLIT": _PLAIN,
    "SPLIT_V": _PLAIN,
    **dict.fromkeys(
        ("STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"),
        (T.FLOAT16, *_PLAIN, T.BOOL, T.FLOAT64, T.UINT64, T.UINT32, T.UINT16),
    ),
    "STABLEHLO_AND": (T.UINT8, T.INT64, T.BOOL, T.UINT64, T.UINT32, T.UINT16),
    "STABLEHLO_PAD": _WIDE,
    "STABLEHLO_GATHER": _WIDE,
    "STRIDED_SLICE": (*_WIDE, T.STRING),
    "SUM": (T.BOOL,),
    "TILE": (*_WIDE, T.STRING),
    "TOPK_V2": _PLAIN,
    "TRANSPOSE": _WIDE,
    "UNIQUE": (T.INT64, *_SMALL),
}
_QUANTIZED: dict[str, tuple[T, ...]] = {
    **dict.fromkeys(
        (
            "BATCH_TO_SPACE_ND",
            "BROADCAST_TO",
            "CONCATENATION",
            "DILATE",
            "DYNAMIC_UPDATE_SLICE",
            "EXPAND_DIMS",
            "FILL",
            "GATHER",
            "GATHER_ND",
            "HASHTABLE_LOOKUP",
            "MATRIX_DIAG",
            "MATRIX_SET_DIAG",
            "MIRROR_PAD",
            "PACK",
            "PAD",
            "PADV2",
            "RESHAPE",
            "RESIZE_BILINEAR",
            "RESIZE_NEAREST_NEIGHBOR",
            "REVERSE_V2",
            "SELECT",
            "SELECT_V2",
            "SHAPE",
            "SLICE",
            "SPACE_TO_BATCH_ND",
            "SPLIT",
            "SPLIT_V",
            "SQUEEZE",
            "STABLEHLO_GATHER",
            "STABLEHLO_PAD",
            "STRIDED_SLICE",
            "TILE",
            "TOPK_V2",
            "TRANSPOSE",
            "UNIQUE",
            "UNPACK",
        ),
        _SMALL,
    ),
    **dict.fromkeys(
        (
            "ARG_MAX",
            "ARG_MIN",
            "DEPTH_TO_SPACE",
            "ONE_HOT",
            "SCATTER_ND",
            "SPACE_TO_DEPTH",
            "SPARSE_TO_DENSE",
            "WHERE",
        ),
        (T.UINT8, T.INT8),
    ),
    "REVERSE_SEQUENCE": (T.UINT8, T.INT16),
    **dict.fromkeys(("GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), (T.INT16,)),
}
"""Operators that hand elements on, or compare them, in one scale."""


def _first(op: Op | ControlOp) -> Case:
    """The first case of an operator with elements in all of its inputs."""
    first: Case = next(
        case
        for table in _TABLES
        for case in import_module(f"litecl.cases.{table}").CASES
        if case.op is op and all(x is None or x.size for x in case.inputs) and not case.quantization
    )
    return first


def _values(x: Array, type_: T) -> Array:
    if type_ in (T.FLOAT16, T.FLOAT64, T.COMPLEX64):
        return np.asarray(_random.normal(*x.shape)).astype(type_.dtype)
    return np.asarray(_random.of(type_, *x.shape), type_.dtype)


def _cases(name: str, wanted: tuple[T, ...]) -> Iterable[Case]:
    """The case with its elements in other types; the device's part is left to the operator's own table."""
    base = _first(BUILTINS[name])
    kinds = [None if x is None else T.of(x.dtype) for x in base.inputs]
    main = T.FLOAT32 if T.FLOAT32 in kinds else kinds[0]
    for type_ in wanted:
        inputs = [
            x if x is None or kind != main else _values(x, type_) for x, kind in zip(base.inputs, kinds, strict=True)
        ]
        if type_ != main:
            yield replace(base, name=f"elements {type_.name}", inputs=inputs, on_device=False)


def _quantized(name: str, wanted: tuple[T, ...]) -> Iterable[Case]:
    """The same with a scale, and a zero point where the type may have one, for inputs and outputs."""
    for case, type_ in zip(_cases(name, wanted), wanted, strict=True):
        scale = Quantization(np.array([0.05], np.float32), np.array([0 if type_ == T.INT16 else 3]))
        (graph,) = case.model().subgraphs
        outputs = [graph.tensors[t] for t in graph.outputs]
        yield replace(
            case,
            name=f"quantized {type_.name}",
            quantization={i: scale for i, x in enumerate(case.inputs) if x is not None and x.dtype == type_.dtype},
            outputs=[replace(spec, quantization=scale if spec.type == type_ else None) for spec in outputs],
        )


CASES = (
    *(case for name, wanted in _TYPES.items() for case in _cases(name, wanted)),
    *(case for name, wanted in _QUANTIZED.items() for case in _quantized(name, wanted)),
)
