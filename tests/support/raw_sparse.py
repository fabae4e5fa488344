"""Arguments of TensorFlow's raw operators on sparse and ragged tensors."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from support.raw_arguments import c, ct, f, i, n, p, s

_SPARSE = {"indices": n([0, 0], [0, 2], [2, 1]), "values": f(3), "dense_shape": n(4, 3)}
_SEGMENT = {"data": f(5, 3), "indices": i(0, 2, 4), "segment_ids": i(0, 0, 2)}
_BACK = {"grad": f(3, 3), "indices": i(0, 2, 4), "segment_ids": i(0, 0, 2), "output_dim0": c(5)}
_CROSSED = {
    "indices": [n([0, 0], [1, 0], [1, 1]), n([0, 0], [1, 0])],
    "values": [s(b"a", b"b", b"c"), n(7, 8)],
    "shapes": [n(2, 2), n(2, 1)],
    "dense_inputs": [s(b"x", b"y").reshape(2, 1)],
}


SPARSE: Mapping[str, Mapping[str, Any]] = {
    "RaggedBincount": {"splits": n(0, 2, 4), "values": i(0, 1, 1, 3), "size": c(4), "weights": f(4)},
    "RaggedGather": {
        "params_nested_splits": [n(0, 2, 2, 5)],
        "params_dense_values": f(5),
        "indices": i(2, 0),
        "OUTPUT_RAGGED_RANK": 1,
    },
    "RaggedRange": {"starts": i(1, 4), "limits": i(5, 6), "deltas": i(1, 2)},
    "RaggedTensorToSparse": {"rt_nested_splits": [n(0, 2, 2, 5)], "rt_dense_values": f(5)},
    "RaggedTensorToTensor": {
        "shape": c([-1, -1], np.int64),
        "values": f(5),
        "default_value": c(0, np.float32),
        "row_partition_tensors": [n(0, 2, 2, 5)],
        "row_partition_types": ["ROW_SPLITS"],
    },
    "SparseBincount": {**_SPARSE, "values": i(0, 1, 3), "size": c(4), "weights": f(3)},
    "SparseCross": {
        **_CROSSED,
        "values": [s(b"a", b"b", b"c"), s(b"7", b"8")],
        "hashed_output": False,
        "num_buckets": 0,
        "hash_key": 99,
        "out_type": tf.string,
        "internal_type": tf.string,
    },
    "SparseCrossHashed": {
        **_CROSSED,
        "num_buckets": c(100, np.int64),
        "strong_hash": c(False, bool),
        "salt": c([3, 5], np.int64),
    },
    "SparseCrossV2": {**_CROSSED, "values": [s(b"a", b"b", b"c"), s(b"7", b"8")], "sep": ct(b"_X_").value[0]},
    "SparseFillEmptyRows": {**_SPARSE, "default_value": c(7, np.float32)},
    "SparseFillEmptyRowsGrad": {"reverse_index_map": n(0, 1, 3), "grad_values": f(5)},
    "SparseReshape": {
        "input_indices": _SPARSE["indices"],
        "input_shape": _SPARSE["dense_shape"],
        "new_shape": c([2, 6], np.int64),
    },
    **{f"SparseSegment{name}": _SEGMENT for name in ("Mean", "SqrtN", "Sum")},
    **{f"SparseSegment{name}WithNumSegments": {**_SEGMENT, "num_segments": c(4)} for name in ("Mean", "SqrtN", "Sum")},
    **{f"SparseSegment{name}Grad": _BACK for name in ("Mean", "SqrtN")},
    "SparseToDense": {
        "sparse_indices": i(1, 3),
        "output_shape": c([5]),
        "sparse_values": f(2),
        "default_value": c(0, np.float32),
    },
    "SparseAdd": {
        "a_indices": _SPARSE["indices"],
        "a_values": f(3),
        "a_shape": _SPARSE["dense_shape"],
        "b_indices": n([0, 0], [1, 1]),
        "b_values": f(2),
        "b_shape": _SPARSE["dense_shape"],
        "thresh": c(0, np.float32),
    },
    "SparseMatMul": {"a": f(2, 3), "b": f(4, 3), "transpose_b": True},
    "SparseConcat": {
        "indices": [_SPARSE["indices"], n([1, 1])],
        "values": [f(3), f(1)],
        "shapes": [n(4, 3), n(4, 2)],
        "concat_dim": 1,
    },
    "SparseSlice": {
        "indices": _SPARSE["indices"],
        "values": f(3),
        "shape": n(4, 3),
        "start": n(0, 1),
        "size": n(3, 2),
    },
    "SparseSoftmax": {"sp_indices": _SPARSE["indices"], "sp_values": f(3), "sp_shape": n(4, 3)},
    "SparseReduceMax": {
        "input_indices": _SPARSE["indices"],
        "input_values": f(3),
        "input_shape": n(4, 3),
        "reduction_axes": c([1]),
    },
    **{
        f"SparseDenseCwise{name}": {
            "sp_indices": _SPARSE["indices"],
            "sp_values": f(3),
            "sp_shape": n(4, 3),
            "dense": p(4, 3),
        }
        for name in ("Add", "Div", "Mul")
    },
    **{
        f"SparseSparse{name}": {
            "a_indices": _SPARSE["indices"],
            "a_values": f(3),
            "a_shape": n(4, 3),
            "b_indices": n([0, 0], [1, 1]),
            "b_values": f(2),
            "b_shape": n(4, 3),
        }
        for name in ("Maximum", "Minimum")
    },
    "EditDistance": {
        "hypothesis_indices": n([0, 0], [0, 1], [1, 0]),
        "hypothesis_values": n(1, 2, 3),
        "hypothesis_shape": n(2, 2),
        "truth_indices": n([0, 0], [1, 0], [1, 1]),
        "truth_values": n(1, 4, 3),
        "truth_shape": n(2, 2),
    },
    "SetSize": {"set_indices": _SPARSE["indices"], "set_values": n(1, 2, 3), "set_shape": n(4, 3)},
    "DenseToDenseSetOperation": {"set1": n([1, 2, 2]), "set2": n([2, 3, 4]), "set_operation": "intersection"},
}
