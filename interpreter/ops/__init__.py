"""The operators, one file per operator or family, and the tables of them all.

Every record that a module of this package defines, by itself or in a tuple, is an operator. ``BUILTINS`` maps the
schema's BuiltinOperator names to records, ``CUSTOMS`` maps custom codes. ``MODULES`` lists where each operator is, so
that a module is only imported for its own operators.
"""

from collections.abc import Iterator, Mapping
from types import ModuleType

from litecl.interpreter.kit.modules import Modules
from litecl.interpreter.op import ControlOp, Op

MODULES = Modules(
    __name__,
    {
        "add_n": "ADD_N",
        "arg_max": "ARG_MAX ARG_MIN",
        "audio": "AudioSpectrogram Mfcc",
        "batch_matmul": "BATCH_MATMUL",
        "bidirectional_sequence_lstm": "BIDIRECTIONAL_SEQUENCE_LSTM",
        "broadcast_to": "BROADCAST_ARGS BROADCAST_TO",
        "bucketize": "BUCKETIZE",
        "cast": "BITCAST CAST",
        "checkpoint": "litecl.Restore litecl.Save",
        "compare": "EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL NOT_EQUAL",
        "concatenation": "CONCATENATION",
        "control": "CALL CALL_ONCE IF STABLEHLO_COMPOSITE WHILE",
        "conv_2d": "CONV_2D",
        "conv_3d": "CONV_3D",
        "conv_3d_transpose": "CONV_3D_TRANSPOSE",
        "crossings": "litecl.SparseCross litecl.SparseCrossHashed litecl.SparseCrossTexts",
        "ctc_beam": "litecl.CTCBeamSearchDecoder",
        "cumsum": "CUMSUM",
        "densify": "DENSIFY",
        "depthwise_conv_2d": "DEPTHWISE_CONV_2D",
        "detection_postprocess": "TFLite_Detection_PostProcess",
        "dilate": "DILATE",
        "dynamic_update_slice": "DYNAMIC_UPDATE_SLICE",
        "embedding_lookup": "EMBEDDING_LOOKUP",
        "examples": "litecl.ParseExample",
        "factorizations": (
            "litecl.Lu litecl.MatrixSolveLs litecl.MatrixSquareRoot litecl.Qr litecl.SelfAdjointEig "
            "litecl.Svd litecl.TridiagonalSolve"
        ),
        "fill": "FILL RANGE ZEROS_LIKE",
        "fully_connected": "FULLY_CONNECTED",
        "gather": "GATHER GATHER_ND",
        "gelu": "GELU",
        "hadamard": "aeq.hadamard_rotation",
        "hashtable": "HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE",
        "l2_normalization": "L2_NORMALIZATION",
        "leaky_relu": "LEAKY_RELU",
        "local_response_normalization": "LOCAL_RESPONSE_NORMALIZATION",
        "log_softmax": "LOG_SOFTMAX",
        "lsh_projection": "LSH_PROJECTION",
        "lstm": "LSTM",
        "matrix_diag": "MATRIX_DIAG MATRIX_SET_DIAG",
        "max_unpooling": "LiteRtMaxUnpooling2D MaxPoolingWithArgmax2D MaxUnpooling2D",
        "moe": "moe",
        "non_max_suppression": "NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5",
        "numeric_verify": "NumericVerify",
        "one_hot": "ONE_HOT",
        "pack": "PACK UNPACK",
        "pad": "MIRROR_PAD PAD PADV2",
        "pool_2d": "AVERAGE_POOL_2D L2_POOL_2D MAX_POOL_2D",
        "prelu": "PRELU",
        "quantize": "DEQUANTIZE FAKE_QUANT QUANTIZE",
        "random": "MULTINOMIAL RANDOM_STANDARD_NORMAL RANDOM_UNIFORM STABLEHLO_RNG_BIT_GENERATOR",
        "random_counts": "litecl.RandomGamma litecl.RandomPoisson",
        "reduce": "MEAN REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD SUM",
        "reduce_window": "REDUCE_WINDOW STABLEHLO_REDUCE_WINDOW",
        "reshape": "EXPAND_DIMS RESHAPE SQUEEZE",
        "resize": "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR",
        "reverse": "REVERSE_SEQUENCE REVERSE_V2",
        "rnn": "BIDIRECTIONAL_SEQUENCE_RNN RNN UNIDIRECTIONAL_SEQUENCE_RNN",
        "scatter_nd": "SCATTER_ND",
        "segment": "SEGMENT_SUM UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM",
        "select": "SELECT SELECT_V2 WHERE",
        "shape": "RANK SHAPE",
        "signal": "SignalEnergy SignalFftAutoScale SignalIrfft SignalRfft SignalWindow",
        "signal_bank": (
            "SignalFilterBank SignalFilterBankLog SignalFilterBankSpectralSubtraction "
            "SignalFilterBankSquareRoot SignalPCAN"
        ),
        "signal_frames": "SignalDelay SignalFramer SignalOverlapAdd SignalStacker",
        "skip_gram": "SKIP_GRAM",
        "slice": "SLICE",
        "softmax": "SOFTMAX",
        "space_to_batch_nd": "BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND",
        "space_to_depth": "DEPTH_TO_SPACE SPACE_TO_DEPTH",
        "sparse_lookup": "EMBEDDING_LOOKUP_SPARSE HASHTABLE_LOOKUP",
        "sparse_to_dense": "SPARSE_TO_DENSE",
        "special": (
            "litecl.BesselI0 litecl.BesselI0e litecl.BesselI1 litecl.BesselI1e litecl.BesselJ0 "
            "litecl.BesselJ1 litecl.BesselK0 litecl.BesselK0e litecl.BesselK1 litecl.BesselK1e litecl.Betainc "
            "litecl.Igamma litecl.Igammac litecl.Polygamma litecl.Zeta"
        ),
        "spectral": "COMPLEX_ABS IMAG REAL RFFT2D",
        "split": "SPLIT SPLIT_V",
        "stablehlo": (
            "STABLEHLO_ADD STABLEHLO_AND STABLEHLO_CASE STABLEHLO_GATHER STABLEHLO_MAXIMUM STABLEHLO_MINIMUM "
            "STABLEHLO_MULTIPLY STABLEHLO_PAD STABLEHLO_SCATTER STABLEHLO_SHIFT_LEFT"
        ),
        "stablehlo_sort": "STABLEHLO_SORT",
        "stateless_random": (
            "litecl.StatelessIntegers litecl.StatelessKey litecl.StatelessMultinomial litecl.StatelessNormal "
            "litecl.StatelessTruncatedNormal litecl.StatelessUniform"
        ),
        "strided_slice": "STRIDED_SLICE",
        "strings": (
            "litecl.AsString litecl.RegexFullMatch litecl.RegexReplace litecl.StringJoin litecl.StringLength "
            "litecl.StringLower litecl.StringSplit litecl.StringStrip litecl.StringToHashBucket "
            "litecl.StringToNumber litecl.StringUpper litecl.Substr"
        ),
        "svdf": "SVDF",
        "text_parts": (
            "litecl.DecodeBase64 litecl.DecodeRaw litecl.EncodeBase64 litecl.Fingerprint litecl.ReduceJoin "
            "litecl.ShardedFilename litecl.ShardedFilespec litecl.StringNGrams litecl.StringSplitAt "
            "litecl.StringToBucket litecl.UnsortedSegmentJoin"
        ),
        "tile": "TILE",
        "topk_v2": "TOPK_V2",
        "transpose": "TRANSPOSE",
        "transpose_conv": "Convolution2DTransposeBias TRANSPOSE_CONV",
        "unicode": "litecl.UnicodeDecode litecl.UnicodeDecodeWithOffsets litecl.UnicodeEncode litecl.UnicodeTranscode",
        "unidirectional_sequence_lstm": "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "unique": "UNIQUE",
        "variables": "ASSIGN_VARIABLE READ_VARIABLE VAR_HANDLE",
        "waves": "litecl.DecodeWav litecl.EncodeWav",
    },
    others=("unary", "binary"),  # functions of each element, of one operand and of two
)


def _records(module: ModuleType) -> Iterator[Op | ControlOp]:
    """Yield the records of a module, imported ones included."""
    for value in vars(module).values():
        for record in value if isinstance(value, tuple) else (value,):
            if isinstance(record, Op | ControlOp):
                yield record


class _Operators(Mapping[str, Op | ControlOp]):
    """Operators by name: looking one up imports its module, listing them imports all."""

    def __init__(self, custom: bool) -> None:
        self._custom = custom

    def __getitem__(self, name: str) -> Op | ControlOp:
        """Return an operator; if it has several forms, the one that selects among them."""
        records = (op for module in MODULES.naming(name) for op in _records(module))
        forms = [op for op in records if op.name == name and op.custom == self._custom]
        if not forms:
            raise KeyError(name)
        return next((op for op in forms if isinstance(op, Op) and op.select is not None), forms[0])

    def __iter__(self) -> Iterator[str]:
        """Yield the names, by module."""
        records = (op for module in MODULES for op in _records(module))
        return iter(dict.fromkeys(op.name for op in records if op.custom == self._custom))

    def __len__(self) -> int:
        return sum(1 for _ in self)


BUILTINS: Mapping[str, Op | ControlOp] = _Operators(custom=False)
CUSTOMS: Mapping[str, Op | ControlOp] = _Operators(custom=True)


def every_form() -> Iterator[Op | ControlOp]:
    """Yield all records: every form of operators that select one for their operands."""
    return iter(dict.fromkeys(op for module in MODULES for op in _records(module)))


def every_op() -> tuple[Op | ControlOp, ...]:
    """Return all operators."""
    return (*BUILTINS.values(), *CUSTOMS.values())


def is_own(op: Op | ControlOp) -> bool:
    """Return whether a record is one of litecl's, not a user's of the same name."""
    return any(op is record for module in MODULES.naming(op.name) for record in _records(module))
