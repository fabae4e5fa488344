"""What to write instead of operators that cannot be converted."""

from collections.abc import Mapping

_NOT_IN_FILE = "a .tflite file has nothing like it: keep it out of the model, and run it before or after"
_ALGEBRA = (
    "there are tf.linalg.solve, inv, det, cholesky, triangular_solve, expm and products: write it with these, or "
    "compute what is constant beforehand and the rest outside"
)
_PYTHON = "a .tflite file holds no Python: write the function with TensorFlow's operators"
_PART = "write a part of known size without steps, or the whole: assign(tf.where(mask, values, variable))"
_STATELESS = "use tf.random.uniform or normal, or draw the numbers outside and feed them"
_SPECTRUM = "use tf.signal.fft, rfft, irfft, fft2d or fft3d and their like, which transform the last dimensions"
_SPARSE = (
    "make it dense by tf.sparse.to_dense before; sparse products, sums, reshape, reorder and embeddings are converted"
)
_TEXT = "there are lower, upper, strip, join, split, substr, length, regular expressions and hashes of tf.strings"
_BEAMS = "use tf.nn.ctc_greedy_decoder, or decode the logits outside"
_BOXES = "use tf.image.non_max_suppression or combined_non_max_suppression"
_TRAINING = "write the step with assign(), or use an optimizer of Keras 3, which does; a tf.IndexedSlices is made dense"

HINTS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "Eig",
            "Lu",
            "MatrixLogarithm",
            "MatrixSquareRoot",
            "Qr",
            "SelfAdjointEigV2",
            "Svd",
        ),
        _ALGEBRA,
    ),
    **dict.fromkeys(("EagerPyFunc", "PyFunc", "PyFuncStateless"), _PYTHON),
    **dict.fromkeys(
        (
            "ResourceScatterDiv",
            "ResourceScatterMax",
            "ResourceScatterMin",
            "ResourceScatterMul",
            "ResourceScatterNdMax",
            "ResourceScatterNdMin",
            "ResourceStridedSliceAssign",
        ),
        _PART,
    ),
    **dict.fromkeys(
        (
            "StatefulStandardNormalV2",
            "StatefulUniform",
            "StatelessRandomNormalV2",
            "StatelessRandomUniformV2",
            "StatelessTruncatedNormalV2",
        ),
        _STATELESS,
    ),
    **dict.fromkeys(("FFTND", "IFFTND", "RFFTND", "IRFFTND"), _SPECTRUM),
    **dict.fromkeys(
        (
            "SparseAdd",
            "SparseConcat",
            "SparseDenseCwiseAdd",
            "SparseDenseCwiseDiv",
            "SparseDenseCwiseMul",
            "SparseReduceMax",
            "SparseSlice",
            "SparseSoftmax",
            "SparseSparseMaximum",
            "SparseSparseMinimum",
            "SparseSplit",
        ),
        _SPARSE,
    ),
    **dict.fromkeys(
        ("SparseCross", "StringFormat", "StringNGrams", "UnicodeDecode", "UnicodeEncode", "UnicodeTranscode"), _TEXT
    ),
    **dict.fromkeys(("CTCBeamSearchDecoder",), _BEAMS),
    "NonMaxSuppressionWithOverlaps": _BOXES,
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
        ("DecodeJpeg", "DecodePng", "EncodeJpeg", "EncodePng", "ParseExample", "ParseExampleV2", "ReadFile"),
        _NOT_IN_FILE,
    ),
}
GENERAL = "Express it with other operators, or keep it out of the model and run it before or after"


def hint(op: str) -> str:
    """Return what to write instead of an operator of TensorFlow."""
    return HINTS.get(op, GENERAL)
