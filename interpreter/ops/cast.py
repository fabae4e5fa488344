"""CAST and BITCAST: elements converted to another type, by value and by bits."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.arithmetic import bfloat16, float8
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Run, Specs
from litecl.interpreter.schema import TensorType

_NARROW = (TensorType.INT4, TensorType.INT2, TensorType.UINT4)  # cast from FLOAT32 and FLOAT8 only, which saturate
_TYPES = (
    *_NARROW,
    *float8.TYPES,
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.FLOAT64,
    TensorType.COMPLEX64,
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.INT16,
    TensorType.UINT16,
    TensorType.INT32,
    TensorType.UINT32,
    TensorType.INT64,
    TensorType.BOOL,
)


@dataclass(frozen=True)
class CastOptions:
    in_data_type: TensorType = TensorType.FLOAT32
    out_data_type: TensorType = TensorType.FLOAT32


def cast(x: Array, type_: TensorType) -> Array:
    """Convert ``x``: floats are truncated and saturate (NaN becomes the largest integer), integers wrap."""
    real = x.real if x.dtype.kind == "c" and type_.dtype.kind != "c" else x
    if type_ == TensorType.BFLOAT16:
        return bfloat16.narrow(real)
    if type_ in float8.TYPES:
        return float8.narrow(real, type_)
    if type_ == TensorType.BOOL:
        return np.asarray(real != 0)
    if real.dtype.kind != "f" or type_.dtype.kind not in "iu":
        with np.errstate(over="ignore"):  # too large a number is infinite in FLOAT16
            return real.astype(type_.dtype)
    real = real.astype(np.float64) if real.itemsize < 4 else real  # float16 could not hold the limits
    low, high = types.integer_limits(type_)
    with np.errstate(invalid="ignore"):
        result = real.astype(type_.dtype)
    result = np.where(np.isnan(real) | (real >= float(high) + 1), type_.dtype.type(high), result)
    return np.where(real <= float(low) - 1, type_.dtype.type(low), result)


def _wide(x: Array, type_: TensorType) -> Array:
    """Return elements as numpy's numbers, float32 for types that numpy lacks."""
    if type_ in float8.TYPES:
        return float8.widen(x, type_)
    return bfloat16.widen(x) if type_ == TensorType.BFLOAT16 else x


def _infer_cast(options: CastOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.types(x, _TYPES)
    return [TensorSpec(options.out_data_type, x.shape)]


def _run_cast(options: CastOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    return [cast(x, options.out_data_type)]


def _bind_cast(options: CastOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    """Cast to the output's declared type, as options may be missing."""
    type_ = require.types(outputs[0], _TYPES)
    (source,) = require.present(inputs, 1)
    if type_ in _NARROW:
        require.types(source, (TensorType.FLOAT32, *float8.TYPES))

    def run(options: CastOptions, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        return [x if source.type == type_ in float8.TYPES else cast(_wide(x, source.type), type_)]

    return run


def _infer_bitcast(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    return [TensorSpec(x.type, None)]


def _bind_bitcast(options: NoOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    """Adjust the shape: if element sizes differ, the last dimension holds the parts of one larger element."""
    dtype = outputs[0].dtype

    def run(options: NoOptions, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        shape = x.shape
        if x.itemsize > dtype.itemsize:
            shape = (*x.shape, x.itemsize // dtype.itemsize)
        elif x.itemsize < dtype.itemsize:
            shape = x.shape[:-1]
            if x.shape[-1:] != (dtype.itemsize // x.itemsize,):
                raise ShapeError(f"shape {list(x.shape)} does not end in the parts of one {dtype}")
        return [np.ascontiguousarray(x).reshape(-1).view(dtype).reshape(shape)]

    return run


CAST = Op(
    "CAST",
    options=CastOptions,
    infer=_infer_cast,
    run=_run_cast,
    bind=_bind_cast,
    versions=range(1, 11),
    declared_types=True,
)
BITCAST = Op(
    "BITCAST",
    options=NoOptions,
    infer=_infer_bitcast,
    run=require.unbound,
    bind=_bind_bitcast,
    declared_types=True,
)
