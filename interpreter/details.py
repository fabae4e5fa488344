"""The dictionaries in which TFLite's Python interpreter describes tensors."""

from typing import Any

import numpy as np

from litecl.interpreter.feeding import seen_dtype
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.schema import TensorType

_DTYPES = {TensorType.STRING: np.bytes_, TensorType.RESOURCE: np.object_, TensorType.VARIANT: np.object_}


def tensor_details(index: int, spec: TensorSpec) -> dict[str, Any]:
    """One tensor in the form of ``tf.lite.Interpreter.get_tensor_details``."""
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
    """Return scales and zero points; of blocks, halves and, where they are 0, none."""
    if quantization is None:
        return np.zeros(0, np.float32), np.zeros(0, np.int32)
    scales, zeros = np.asarray(quantization.scale).reshape(-1), np.asarray(quantization.zero_point).reshape(-1)
    if not quantization.block_size:
        return scales.astype(np.float32), zeros.astype(np.int32)
    return scales.astype(np.float16), (zeros if zeros.any() else zeros[:0]).astype(np.int32)


def _sparsity(spec: TensorSpec) -> dict[str, Any]:
    if spec.sparsity is None:
        return {}
    return {
        "traversal_order": np.array(spec.sparsity.traversal_order, np.int32),
        **({"block_map": np.array(spec.sparsity.block_map, np.int32)} if spec.sparsity.block_map else {}),
        "dim_metadata": [
            {"format": 0, "dense_size": d.dense_size}
            if d.segments is None
            else {"format": 1, "array_segments": _int32(d.segments), "array_indices": _int32(d.indices)}
            for d in spec.sparsity.dimensions
        ],
    }


def _int32(values: Array | None) -> Array:
    return np.asarray(values, np.int32)
