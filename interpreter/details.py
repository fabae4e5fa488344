"""The dictionaries in which TFLite's Python interpreter describes tensors."""

from typing import Any

import numpy as np

from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.schema import TensorType


def tensor_details(index: int, spec: TensorSpec) -> dict[str, Any]:
    """One tensor in the form of ``tf.lite.Interpreter.get_tensor_details``."""
    quantization = spec.quantization
    scales = np.zeros(0, np.float32) if quantization is None else np.asarray(quantization.scale, np.float32).reshape(-1)
    zeros = np.zeros(0, np.int32) if quantization is None else np.asarray(quantization.zero_point, np.int32).reshape(-1)
    per_tensor = scales.size == 1 and zeros.size == 1
    signature = spec.static_shape if spec.shape_signature is None else spec.shape_signature
    return {
        "name": spec.name,
        "index": index,
        "shape": np.array(spec.static_shape, np.int32),
        "shape_signature": np.array(signature, np.int32),
        "dtype": np.bytes_ if spec.type == TensorType.STRING else spec.dtype.type,
        "quantization": (float(scales[0]), int(zeros[0])) if per_tensor else (0.0, 0),
        "quantization_parameters": {
            "scales": scales,
            "zero_points": zeros,
            "quantized_dimension": 0 if quantization is None else quantization.quantized_dimension,
            "block_size": 0 if quantization is None else quantization.block_size,
        },
        "sparsity_parameters": _sparsity(spec),
    }


def _sparsity(spec: TensorSpec) -> dict[str, Any]:
    if spec.sparsity is None:
        return {}
    return {
        "traversal_order": np.array(spec.sparsity.traversal_order, np.int32),
        "block_map": np.array(spec.sparsity.block_map, np.int32),
        "dim_metadata": [
            {"format": 0, "dense_size": d.dense_size}
            if d.segments is None
            else {"format": 1, "array_segments": d.segments, "array_indices": d.indices}
            for d in spec.sparsity.dimensions
        ],
    }
