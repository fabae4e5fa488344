"""Suggests alternatives to operators that cannot be converted."""

from collections.abc import Mapping

_NOT_IN_FILE = "a .tflite file has nothing like it: keep it out of the model, and run it before or after"
_ALGEBRA = (
    "there are tf.linalg.eigh, svd, qr, lu, sqrtm, solve, inv, det, cholesky, expm and products of real matrices: "
    "write it with these, or compute what is constant beforehand and the rest outside"
)
_PYTHON = "a .tflite file holds no Python: write the function with TensorFlow's operators"
_PART = "write a part of known size without steps, or the whole: assign(tf.where(mask, values, variable))"
_STATELESS = "use tf.random.stateless_uniform or normal, tf.random.gamma or poisson, or feed numbers drawn outside"
_SPECIAL = "there are tf.math.lgamma, digamma, polygamma, igamma, betainc, zeta, erfinv and Bessel functions"
_SPECTRUM = "use tf.signal.fft, rfft, irfft, fft2d or fft3d and their like, which transform the last dimensions"
_SPARSE = (
    "make it dense by tf.sparse.to_dense before; sparse products, sums, reshape, reorder and embeddings are converted"
)
_TEXT = (
    "there are lower, upper, strip, join, split, substr, as_string, ngrams, regular expressions, hashes, code points"
)
_TRAINING = "write the step with assign(), or use an optimizer of Keras 3, which does; a tf.IndexedSlices is made dense"

HINTS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "Eig",
            "MatrixLogarithm",
        ),
        _ALGEBRA,
    ),
    **dict.fromkeys(
        ("BesselY0", "BesselY1", "Dawsn", "Expint", "FresnelCos", "FresnelSin", "Spence"),
        _SPECIAL,
    ),
    **dict.fromkeys(("EagerPyFunc", "PyFunc", "PyFuncStateless"), _PYTHON),
    **dict.fromkeys(("ResourceScatterDiv", "ResourceScatterMul", "ResourceStridedSliceAssign"), _PART),
    **dict.fromkeys(
        (
            "StatefulStandardNormalV2",
            "StatefulUniform",
            "StatelessRandomGammaV2",
            "StatelessRandomPoisson",
        ),
        _STATELESS,
    ),
    **dict.fromkeys(("FFTND", "IFFTND", "RFFTND", "IRFFTND"), _SPECTRUM),
    **dict.fromkeys(("SparseReduceMaxSparse", "SparseReduceSumSparse", "SparseSplit"), _SPARSE),
    "StringFormat": _TEXT,
    **dict.fromkeys(
        (
            "ResourceApplyAddSign",
            "ResourceApplyFtrl",
            "ResourceApplyFtrlV2",
            "ResourceApplyPowerSign",
            "ResourceApplyProximalAdagrad",
            "ResourceApplyProximalGradientDescent",
            "ResourceSparseApplyAdagrad",
            "ResourceSparseApplyAdagradV2",
            "ResourceSparseApplyKerasMomentum",
            "ResourceSparseApplyMomentum",
            "ResourceSparseApplyRMSProp",
        ),
        _TRAINING,
    ),
    **dict.fromkeys(
        ("DecodeImage", "DecodeJpeg", "DecodePng", "EncodeJpeg", "EncodePng", "ParseSequenceExampleV2", "ReadFile"),
        _NOT_IN_FILE,
    ),
}
GENERAL = "Express it with other operators, or keep it out of the model and run it before or after"


def hint(op: str) -> str:
    """Return what to write instead of a TensorFlow operator."""
    return HINTS.get(op, GENERAL)
