"""Arguments of TensorFlow's raw operators on numbers: arithmetic, shapes, reductions, matrices."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from support.raw_arguments import b, c, f, i, of, p, z

_NORM = {"scale": p(3), "offset": f(3)}
_BOXES = np.float32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [0, 2.1, 1, 3], [0, 5, 1, 6]])
_SCORES = np.float32([0.9, 0.75, 0.6, 0.95, 0.5])
_AXES = c([1])
_SEGMENTS, _ANY = i(0, 0, 1, 3), i(0, 2, 0, 1)


NUMBERS: Mapping[str, Mapping[str, Any]] = {
    "AddN": {"inputs": [f(3, 4), f(3, 4)]},
    "All": {"input": b([0, 1], [1, 1]), "axis": _AXES},
    "Any": {"input": b([0, 0], [1, 0]), "axis": _AXES},
    "ArgMax": {"input": f(3, 4), "dimension": c(1)},
    "ArgMin": {"input": f(3, 4), "dimension": c(1)},
    "AudioSpectrogram": {"input": f(64, 1), "window_size": 16, "stride": 8},
    "BatchMatMul": {"x": f(2, 3, 4), "y": f(2, 4, 2)},
    "BatchMatMulV2": {"x": f(2, 3, 4), "y": f(4, 2)},
    "BatchToSpace": {"input": f(4, 2, 2, 3), "crops": c([[0, 1], [0, 0]]), "block_size": 2},
    "BatchToSpaceND": {"input": f(4, 2, 2, 3), "block_shape": c([2, 2]), "crops": c([[0, 1], [0, 0]])},
    "BiasAdd": {"value": f(2, 3), "bias": f(3)},
    "BiasAddV1": {"value": f(2, 3), "bias": f(3)},
    "Bincount": {"arr": i(0, 1, 1, 3), "size": c(4), "weights": f(4)},
    "Bitcast": {"input": f(3), "type": "int32"},
    "BroadcastTo": {"input": f(3, 1), "shape": c([3, 4])},
    "Bucketize": {"input": f(3, 4), "boundaries": [-1.0, 0.0, 1.0]},
    "Cast": {"x": f(3), "DstT": "int32"},
    "Concat": {"concat_dim": c(1), "values": [f(2, 3), f(2, 1)]},
    "ConcatOffset": {"concat_dim": c(1), "shape": [i(2, 3), i(2, 1)]},
    "ConcatV2": {"values": [f(2, 3), f(2, 1)], "axis": c(1)},
    "ConjugateTranspose": {"x": z(2, 3), "perm": c([1, 0])},
    "Cumprod": {"x": f(3, 4), "axis": c(1)},
    "Cumsum": {"x": f(3, 4), "axis": c(1)},
    "CumulativeLogsumexp": {"x": f(3, 4), "axis": c(1)},
    "DataFormatDimMap": {"x": i(0, 3, -1)},
    "DataFormatVecPermute": {"x": i(1, 2, 3, 4)},
    "DenseBincount": {"input": i(0, 1, 1, 3), "size": c(4), "weights": f(4)},
    "DepthToSpace": {"input": f(1, 2, 2, 8), "block_size": 2},
    "DiagPart": {"input": f(3, 3)},
    "DynamicPartition": {"data": f(4, 2), "partitions": i(0, 1, 0, 1), "num_partitions": 2},
    "DynamicStitch": {"indices": [c([0, 2]), c([1])], "data": [f(2, 3), f(1, 3)]},
    "Einsum": {"inputs": [f(2, 3), f(3, 4)], "equation": "ab,bc->ac"},
    "EnsureShape": {"input": f(2, 3), "shape": [2, 3]},
    "ExpandDims": {"input": f(2, 3), "axis": c(1)},
    "Fill": {"dims": c([2, 3]), "value": np.float32(2)},
    **{
        name: {"x": f(2, 3, 3, 3), **_NORM, "mean": c([], np.float32), "variance": c([], np.float32), "epsilon": 0.01}
        for name in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
    },
    **{
        name: {
            "y_backprop": f(2, 3, 3, 3),
            "x": f(2, 3, 3, 3),
            "scale": p(3),
            "reserve_space_1": f(3),
            "reserve_space_2": p(3),
            **({"reserve_space_3": f(3)} if name[-1] == "3" else {}),
            "epsilon": 0.01,
        }
        for name in ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
    },
    "GatherNd": {"params": f(3, 4), "indices": i([0, 1], [2, 3])},
    "GatherV2": {"params": f(3, 4), "indices": i(0, 2), "axis": c(1)},
    "IRFFT": {"input": z(2, 5), "fft_length": c([8])},
    "IRFFT2D": {"input": z(2, 4, 5), "fft_length": c([4, 8])},
    "IRFFT3D": {"input": z(2, 4, 5), "fft_length": c([2, 4, 8])},
    "IdentityN": {"input": [f(2), f(3)]},
    **{
        name: {
            "images": f(1, 5, 5, 2),
            "transforms": f(1, 8) / 8 + np.float32([1, 0, 0, 0, 1, 0, 0, 0]),
            "output_shape": c([4, 4]),
            "interpolation": "BILINEAR",
            **({"fill_value": c(0.5, np.float32)} if name[-1] == "3" else {}),
        }
        for name in ("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
    },
    "InTopK": {"predictions": f(3, 5), "targets": i(0, 2, 4), "k": 2},
    "InTopKV2": {"predictions": f(3, 5), "targets": i(0, 2, 4), "k": c(2)},
    "InvertPermutation": {"x": i(2, 0, 1)},
    "LinSpace": {"start": np.float32(1), "stop": np.float32(3), "num": c(5)},
    "MatMul": {"a": f(2, 3), "b": f(3, 4)},
    "MatrixDiagPartV2": {"input": f(2, 3, 3), "k": c([-1, 1]), "padding_value": c(0, np.float32)},
    "MatrixDiagPartV3": {"input": f(2, 3, 3), "k": c([-1, 1]), "padding_value": c(0, np.float32)},
    **{
        name: {"diagonal": f(2, 3), "k": c(1), "num_rows": c(-1), "num_cols": c(-1), "padding_value": c(1, np.float32)}
        for name in ("MatrixDiagV2", "MatrixDiagV3")
    },
    "MatrixInverse": {"input": f(2, 3, 3)},
    "MatrixSetDiag": {"input": f(2, 3, 3), "diagonal": f(2, 3)},
    "MatrixSetDiagV2": {"input": f(2, 3, 3), "diagonal": f(2, 2), "k": c(1)},
    "MatrixSetDiagV3": {"input": f(2, 3, 3), "diagonal": f(2, 2), "k": c(1)},
    **{name: {"input": f(3, 4), "axis": _AXES} for name in ("Max", "Mean", "Min", "Prod", "Sum")},
    "Mfcc": {"spectrogram": p(1, 4, 65), "sample_rate": c(16000)},
    "MirrorPad": {"input": f(3, 4), "paddings": c([[1, 0], [2, 1]]), "mode": "REFLECT"},
    **{
        name: {"boxes": _BOXES, "scores": _SCORES, "max_output_size": c(3), "iou_threshold": c(0.5, np.float32), **more}
        for name, more in (
            ("NonMaxSuppressionV2", {}),
            ("NonMaxSuppressionV3", {"score_threshold": c(0.55, np.float32)}),
            ("NonMaxSuppressionV4", {"score_threshold": c(0.55, np.float32), "pad_to_max_output_size": True}),
            (
                "NonMaxSuppressionV5",
                {"score_threshold": c(0.2, np.float32), "soft_nms_sigma": c(0.3, np.float32)},
            ),
        )
    },
    "OneHot": {"indices": i(0, 2), "depth": c(3), "on_value": c(1, np.float32), "off_value": c(0, np.float32)},
    "Pack": {"values": [f(2, 3), f(2, 3)]},
    "Pad": {"input": f(2, 3), "paddings": c([[1, 0], [0, 2]])},
    "PadV2": {"input": f(2, 3), "paddings": c([[1, 0], [0, 2]]), "constant_values": c(3, np.float32)},
    "ParallelConcat": {"values": [f(1, 3), f(1, 3)], "shape": [2, 3]},
    "ParallelDynamicStitch": {"indices": [c([0, 2]), c([1])], "data": [f(2, 3), f(1, 3)]},
    "PlaceholderWithDefault": {"input": f(2, 3), "shape": [2, 3]},
    "PopulationCount": {"x": of(np.int32, 4)},
    "RFFT": {"input": f(2, 8), "fft_length": c([8])},
    "RFFT2D": {"input": f(2, 4, 8), "fft_length": c([4, 8])},
    "RFFT3D": {"input": f(2, 4, 8), "fft_length": c([2, 4, 8])},
    "Range": {"start": i(1).reshape(()), "limit": i(9).reshape(()), "delta": i(2).reshape(())},
    "Reverse": {"tensor": f(2, 3), "dims": c([False, True], bool)},
    "ReverseSequence": {"input": f(2, 4, 3), "seq_lengths": i(2, 4), "seq_dim": 1},
    "ReverseV2": {"tensor": f(2, 3), "axis": _AXES},
    "Roll": {"input": f(3, 4), "shift": c(2), "axis": c(1)},
    "ScatterNd": {"indices": i([0], [2]), "updates": f(2, 3), "shape": c([4, 3])},
    **{f"Segment{name}": {"data": f(4, 3), "segment_ids": _SEGMENTS} for name in ("Max", "Min", "Prod", "Mean", "Sum")},
    **{
        f"UnsortedSegment{name}": {"data": f(4, 3), "segment_ids": _ANY, "num_segments": c(3)}
        for name in ("Max", "Min", "Prod", "Sum")
    },
    "Select": {"condition": b(0, 1, 1), "x": f(3), "y": f(3)},
    "ShapeN": {"input": [f(2, 3), f(4)]},
    "Slice": {"input": f(3, 4), "begin": c([1, 0]), "size": c([2, 3])},
    "SpaceToBatch": {"input": f(1, 4, 4, 3), "paddings": c([[0, 0], [1, 1]]), "block_size": 2},
    "SpaceToBatchND": {"input": f(1, 4, 4, 3), "block_shape": c([2, 2]), "paddings": c([[0, 0], [1, 1]])},
    "SpaceToDepth": {"input": f(1, 4, 4, 3), "block_size": 2},
    "Split": {"axis": c(1), "value": f(2, 4), "num_split": 2},
    "SplitV": {"value": f(2, 4), "size_splits": c([1, 3]), "axis": c(1), "num_split": 2},
    "StridedSlice": {"input": f(4, 4), "begin": c([0, 1]), "end": c([3, 4]), "strides": c([1, 2])},
    **{
        f"TensorScatter{name}": {"tensor": f(4, 3), "indices": i([0], [2]), "updates": f(2, 3)}
        for name in ("Add", "Max", "Min", "Sub", "Update")
    },
    "ScatterNdNonAliasingAdd": {"input": f(4, 3), "indices": i([0], [0]), "updates": f(2, 3)},
    "TensorStridedSliceUpdate": {
        "input": f(4, 4),
        "begin": c([0, 1]),
        "end": c([3, 4]),
        "strides": c([1, 1]),
        "value": f(3, 3),
    },
    **{f"Inplace{name}": {"x": f(4, 3), "i": i(0, 2), "v": f(2, 3)} for name in ("Add", "Sub", "Update")},
    "Tile": {"input": f(2, 3), "multiples": c([2, 1])},
    "TopKV2": {"input": f(2, 5), "k": c(2)},
    "Transpose": {"x": f(2, 3), "perm": c([1, 0])},
    "Unpack": {"value": f(2, 3), "num": 2},
    "Where": {"condition": b([0, 1], [1, 1])},
}
