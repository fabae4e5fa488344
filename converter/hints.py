"""What to write instead of operators that cannot be converted."""

from collections.abc import Mapping

_NOT_IN_FILE = "a .tflite file has nothing like it: keep it out of the model, and run it before or after"
_ALGEBRA = "TFLite has no linear algebra beyond products: compute what is constant beforehand, the rest outside"
_PYTHON = "a .tflite file holds no Python: write the function with TensorFlow's operators"
_PART = "write a part of known size without steps, or the whole: assign(tf.where(mask, values, variable))"
_STATELESS = "use tf.random.uniform or normal, or draw the numbers outside and feed them"
_SPECTRUM = "use tf.signal.rfft of a power of two, and tf.abs, tf.math.real or tf.math.imag of its result"
_TRAINING = "write the step with assign(), or use an optimizer of Keras 3, which does; a tf.IndexedSlices is made dense"

HINTS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "Cholesky",
            "Eig",
            "Lu",
            "MatrixDeterminant",
            "MatrixExponential",
            "MatrixInverse",
            "MatrixSolve",
            "MatrixTriangularSolve",
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
    **dict.fromkeys(("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IRFFT", "IRFFT2D", "Complex"), _SPECTRUM),
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
        ("DecodeJpeg", "DecodePng", "ParseExample", "ParseExampleV2", "ReadFile", "StringSplitV2", "StringLower"),
        _NOT_IN_FILE,
    ),
}
GENERAL = "Express it with other operators, or keep it out of the model and run it before or after"


def hint(op: str) -> str:
    """Return what to write instead of an operator of TensorFlow."""
    return HINTS.get(op, GENERAL)
