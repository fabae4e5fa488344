"""Arguments of TensorFlow's raw random numbers, special functions and factors of matrices."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from support.raw_arguments import c, f, n, p

_SEED, _SHAPE = n(3, 5), c([2, 7])
_V2 = {"shape": _SHAPE, "key": np.uint64([1234567]), "counter": np.uint64([5, 7]), "alg": c(1)}


FUNCTIONS: Mapping[str, Mapping[str, Any]] = {
    "RandomGamma": {"shape": c([300]), "alpha": np.float32([0.5, 3])},
    "RandomPoissonV2": {"shape": c([300]), "rate": np.float32([0.5, 30])},
    "RandomStandardNormal": {"shape": c([300]), "dtype": tf.float32},
    "RandomUniform": {"shape": c([300]), "dtype": tf.float32},
    "RandomUniformInt": {"shape": c([300]), "minval": c(2), "maxval": c(9)},
    "TruncatedNormal": {"shape": c([300]), "dtype": tf.float32},
    "Multinomial": {"logits": f(2, 4), "num_samples": c(300)},
    "StatelessMultinomial": {"logits": f(2, 4), "num_samples": c(7), "seed": _SEED},
    "StatelessRandomGammaV2": {"shape": c([5, 2]), "seed": _SEED, "alpha": np.float32([0.5, 3])},
    "StatelessRandomGetKeyCounterAlg": {"seed": _SEED},
    **{
        name: {"shape": _SHAPE, "seed": _SEED}
        for name in ("StatelessRandomNormal", "StatelessRandomUniform", "StatelessTruncatedNormal")
    },
    "StatelessRandomPoisson": {"shape": c([5, 2]), "seed": _SEED, "lam": np.float32([0.5, 30]), "dtype": tf.float32},
    "StatelessRandomUniformFullInt": {"shape": _SHAPE, "seed": _SEED, "dtype": tf.int32},
    "StatelessRandomUniformInt": {"shape": _SHAPE, "seed": _SEED, "minval": c(2), "maxval": c(9)},
    **dict.fromkeys(("StatelessRandomNormalV2", "StatelessRandomUniformV2", "StatelessTruncatedNormalV2"), _V2),
    "StatelessRandomUniformFullIntV2": {**_V2, "dtype": tf.int32},
    "StatelessRandomUniformIntV2": {**_V2, "minval": c(2), "maxval": c(9)},
    "StatelessSampleDistortedBoundingBox": {
        "image_size": c([40, 60, 3]),
        "bounding_boxes": c([[[0.1, 0.2, 0.7, 0.9]]], np.float32),
        "min_object_covered": c(0.3, np.float32),
        "seed": _SEED,
    },
    **{name: {"a": p(3, 4) * 3, "x": p(3, 4) * 4} for name in ("Igamma", "Igammac")},
    "Betainc": {"a": p(3, 4) * 5, "b": p(3, 4) * 3, "x": p(3, 4)},
    **{name: {"x": f(3, 4) * 2} for name in ("Digamma", "BesselI0e", "BesselI1e")},
    **{
        name: {"x": p(3, 4) * 9}
        for name in ("BesselI0", "BesselI1", "BesselJ0", "BesselJ1", "BesselK0", "BesselK0e", "BesselK1", "BesselK1e")
    },
    **{name: {"x": p(3, 4) * 9} for name in ("BesselY0", "BesselY1", "Spence", "Dawsn", "Expint")},
    **{name: {"x": p(3, 4) * 3} for name in ("FresnelCos", "FresnelSin")},
    "Polygamma": {"a": c([0, 1, 2, 3], np.float32), "x": p(3, 4) * 5},
    "Zeta": {"x": p(3, 4) * 5 + 1, "q": p(3, 4) * 3},
    "NextAfter": {"x1": f(3), "x2": f(3)},
    "Svd": {"input": f(2, 4, 3)},
    "Qr": {"input": f(2, 4, 3)},
    "Lu": {"input": f(2, 4, 4)},
    "SelfAdjointEigV2": {"input": np.float32([[[2, 1, 0], [1, 3, 1], [0, 1, 5]]])},
    "MatrixSquareRoot": {"input": np.float32([[[2, 1, 0], [1, 3, 1], [0, 1, 5]]])},
    "MatrixSolveLs": {"matrix": f(2, 5, 3), "rhs": f(2, 5, 2), "l2_regularizer": c(0, np.float64)},
    "TridiagonalSolve": {"diagonals": f(2, 3, 5) + np.float32([[0], [4], [0]]), "rhs": f(2, 5, 2)},
    "TridiagonalMatMul": {"superdiag": f(1, 5), "maindiag": f(1, 5), "subdiag": f(1, 5), "rhs": f(5, 2)},
    "LowerBound": {"sorted_inputs": np.sort(f(2, 5)), "values": f(2, 3)},
    "UpperBound": {"sorted_inputs": np.sort(f(2, 5)), "values": f(2, 3)},
    "CumulativeLogsumexp": {"x": f(3, 4), "axis": c(1)},
    "DeepCopy": {"x": f(2, 3)},
    "Empty": {"shape": c([2, 3]), "dtype": tf.float32, "init": True},
    "Angle": {"input": (f(3) + 1j * f(3)).astype(np.complex64)},
    "IsotonicRegression": {"input": f(2, 6)},
    "MatrixDiagPart": {"input": f(2, 3, 3)},
    "LogMatrixDeterminant": {"input": f(2, 3, 3)},
    "MatrixLogarithm": {"input": np.complex64([[[2, 1], [1, 3]]])},
    "Eig": {"input": f(2, 3, 3), "Tout": tf.complex64},
}
