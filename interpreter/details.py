"""The dictionaries in which TFLite's Python interpreter describes tensors."""

from typing import Any, NotRequired, TypedDict

import numpy as np
import numpy.typing as npt

from litecl.interpreter import tensor
from litecl.interpreter.feeding import seen_dtype
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.schema import TensorType

_DTYPES = {TensorType.STRING: np.bytes_, TensorType.RESOURCE: np.object_, TensorType.VARIANT: np.object_}


class QuantizationParameters(TypedDict):
    """Quantization, real = (q - zero_point) * scale; both arrays are empty for a tensor without it.

    scales: float32, one or as many as ``quantized_dimension`` is long; float16 for blocks. zero_points: int32.
    """

    scales: npt.NDArray[np.floating[Any]]
    zero_points: npt.NDArray[np.int32]
    quantized_dimension: int
    block_size: int


class DimensionMetadata(TypedDict):
    """One dimension of a sparse tensor, dense (format 0) or compressed (format 1)."""

    format: int
    dense_size: NotRequired[int]
    array_segments: NotRequired[npt.NDArray[np.int32]]
    array_indices: NotRequired[npt.NDArray[np.int32]]


class SparsityParameters(TypedDict, total=False):
    """Storage of a sparse tensor; a dense one has no keys."""

    traversal_order: npt.NDArray[np.int32]
    block_map: npt.NDArray[np.int32]
    dim_metadata: list[DimensionMetadata]


class TensorDetails(TypedDict):
    """A tensor as TFLite's interpreter describes it.

    shape, shape_signature: int32; the signature has -1 for open dimensions. dtype: a numpy scalar type.
    quantization: scale and zero point of a tensor that has one of each, else (0.0, 0).
    """

    name: str
    index: int
    shape: npt.NDArray[np.int32]
    shape_signature: npt.NDArray[np.int32]
    dtype: type[Any]
    quantization: tuple[float, int]
    quantization_parameters: QuantizationParameters
    sparsity_parameters: SparsityParameters


class OpDetails(TypedDict):
    """An operator of a model, its tensors by index and the types of those present."""

    index: int
    op_name: str
    inputs: npt.NDArray[np.int32]
    outputs: npt.NDArray[np.int32]
    operand_types: list[type[Any]]
    result_types: list[type[Any]]


def tensor_details(index: int, spec: TensorSpec) -> TensorDetails:
    """Describe one tensor as ``tf.lite.Interpreter.get_tensor_details`` does."""
    quantization = spec.quantization
    scales, zeros = _parameters(quantization)
    per_tensor = scales.size == 1 and zeros.size == 1
    signature = spec.static_shape if spec.shape_signature is None else spec.shape_signature
    return {
        "name": spec.name,
        "index": index,
        "shape": np.array(spec.static_shape, np.int32),
        "shape_signature": np.array(signature, np.int32),
        "dtype": _DTYPES.get(spec.type, seen_dtype(spec).type),
        "quantization": (float(scales[0]), int(zeros[0])) if per_tensor else (0.0, 0),
        "quantization_parameters": {
            "scales": scales,
            "zero_points": zeros,
            "quantized_dimension": 0 if quantization is None else quantization.quantized_dimension,
            "block_size": 0 if quantization is None else quantization.block_size,
        },
        "sparsity_parameters": _sparsity(spec),
    }


def _parameters(quantization: Quantization | None) -> tuple[Array, Array]:
    """Return scales and zero points; for blocks, float16 scales, and no zero points if all are 0."""
    if quantization is None:
        return np.zeros(0, np.float32), np.zeros(0, np.int32)
    scales, zeros = np.asarray(quantization.scale).reshape(-1), np.asarray(quantization.zero_point).reshape(-1)
    if not quantization.block_size:
        return scales.astype(np.float32), zeros.astype(np.int32)
    return scales.astype(np.float16), (zeros if zeros.any() else zeros[:0]).astype(np.int32)


def _sparsity(spec: TensorSpec) -> SparsityParameters:
    if spec.sparsity is None:
        return {}
    details: SparsityParameters = {
        "traversal_order": np.array(spec.sparsity.traversal_order, np.int32),
        "dim_metadata": [_dimension(dimension) for dimension in spec.sparsity.dimensions],
    }
    if spec.sparsity.block_map:
        details["block_map"] = np.array(spec.sparsity.block_map, np.int32)
    return details


def _dimension(dimension: tensor.DimensionMetadata) -> DimensionMetadata:
    if dimension.segments is None:
        return {"format": 0, "dense_size": dimension.dense_size}
    segments, indices = _int32(dimension.segments), _int32(dimension.indices)
    return {"format": 1, "array_segments": segments, "array_indices": indices}


def _int32(values: Array | None) -> Array:
    return np.asarray(values, np.int32)
