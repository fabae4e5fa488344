"""The device operators, one file per operator or family, and the table of them all: every module's ``CL_OPS``.

``GENERAL`` and ``SPECIAL`` map operators to modules, so that a module is imported only when one of its operators is
needed.
"""

from collections.abc import Iterator, Mapping

from litecl.delegate.cl_op import ClOp, DeviceOp, Variants
from litecl.delegate.ops import hybrid, quantized
from litecl.delegate.quantized import hybrid as hybrid_weights
from litecl.delegate.quantized import integers
from litecl.interpreter import ops
from litecl.interpreter.kit.modules import Modules
from litecl.interpreter.op import Op

_ELEMENTWISE = ("unary", "binary")  # hold the operators of the interpreter's modules of these names, and more

GENERAL = Modules(
    __name__,
    {
        "arg_max": "ARG_MAX ARG_MIN CUMSUM",
        "batch_matmul": "BATCH_MATMUL",
        "bidirectional_sequence_lstm": "BIDIRECTIONAL_SEQUENCE_LSTM",
        "binary": "PRELU EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL ADD_N",
        "bucketize": "BUCKETIZE",
        "cast": "CAST",
        "concatenation": "CONCATENATION PACK",
        "conv_2d": "CONV_2D",
        "conv_3d": "CONV_3D CONV_3D_TRANSPOSE",
        "depthwise_conv_2d": "DEPTHWISE_CONV_2D",
        "detection_postprocess": "TFLite_Detection_PostProcess",
        "dilate": "DILATE",
        "fill": "FILL ZEROS_LIKE",
        "fully_connected": "FULLY_CONNECTED",
        "gather": "GATHER EMBEDDING_LOOKUP GATHER_ND ONE_HOT",
        "hadamard": "aeq.hadamard_rotation",
        "lstm": "LSTM",
        "max_unpooling": "MaxPoolingWithArgmax2D MaxUnpooling2D LiteRtMaxUnpooling2D",
        "non_max_suppression": "NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5",
        "pad": "PAD PADV2 MIRROR_PAD",
        "pool_2d": "AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D",
        "reduce": "SUM MEAN REDUCE_PROD REDUCE_MAX REDUCE_MIN REDUCE_ANY REDUCE_ALL",
        "reshape": "RESHAPE SQUEEZE EXPAND_DIMS",
        "resize": "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR",
        "rnn": "RNN UNIDIRECTIONAL_SEQUENCE_RNN BIDIRECTIONAL_SEQUENCE_RNN",
        "select": "SELECT SELECT_V2",
        "slice": "SLICE STRIDED_SLICE DYNAMIC_UPDATE_SLICE",
        "softmax": "SOFTMAX LOG_SOFTMAX L2_NORMALIZATION",
        "space_to_batch_nd": "SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND",
        "spectral": "COMPLEX_ABS IMAG REAL RFFT2D",
        "split": "SPLIT SPLIT_V UNPACK",
        "svdf": "SVDF",
        "topk_v2": "TOPK_V2",
        "transpose": "TRANSPOSE REVERSE_V2 TILE BROADCAST_TO SPACE_TO_DEPTH DEPTH_TO_SPACE",
        "transpose_conv": "TRANSPOSE_CONV Convolution2DTransposeBias",
        "unary": "GELU LEAKY_RELU",
        "unidirectional_sequence_lstm": "UNIDIRECTIONAL_SEQUENCE_LSTM",
    },
    others=_ELEMENTWISE,
    elsewhere=ops.MODULES,
)
_QUANTIZED = Modules(
    quantized.__name__,
    {
        "basic_lstm": "LSTM",
        "batch_matmul": "BATCH_MATMUL",
        "binary": "ADD SUB MUL DIV EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL",
        "conv_2d": "CONV_2D FULLY_CONNECTED",
        "depthwise_conv_2d": "DEPTHWISE_CONV_2D",
        "lstm": "LSTM UNIDIRECTIONAL_SEQUENCE_LSTM",
        "pool_2d": "AVERAGE_POOL_2D MAX_POOL_2D",
        "reduce": "MEAN SUM",
        "requantize": "QUANTIZE DEQUANTIZE",
        "softmax": "SOFTMAX",
        "svdf": "SVDF",
        "table": (
            "ABS NEG EXP LOG RSQRT RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 LOGISTIC TANH HARD_SWISH ELU GELU "
            "LEAKY_RELU SQUARED_DIFFERENCE PRELU"
        ),
        "transpose_conv": "TRANSPOSE_CONV",
    },
)
_HYBRID = Modules(
    hybrid.__name__,
    {
        "conv_2d": "CONV_2D FULLY_CONNECTED",
        "embedding_lookup": "EMBEDDING_LOOKUP",
        "lstm": "LSTM UNIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_LSTM",
        "rnn": "RNN UNIDIRECTIONAL_SEQUENCE_RNN BIDIRECTIONAL_SEQUENCE_RNN",
        "rounded": "BATCH_MATMUL DEPTHWISE_CONV_2D TRANSPOSE_CONV",
        "svdf": "SVDF",
    },
)
# Conditions on a node's tensors, and the modules with kernels for nodes that meet them.
SPECIAL = ((integers.applies, _QUANTIZED), (hybrid_weights.applies, _HYBRID))


class _DeviceOps(Mapping[Op, DeviceOp]):
    """Device operators by their records: getting one imports its modules, iterating imports all."""

    def __init__(self) -> None:
        self._cl_ops: dict[Op, DeviceOp] = {}

    def __getitem__(self, op: Op) -> DeviceOp:
        """Return an operator, as variants where quantized tensors or integer weights have their own kernels."""
        cl_op = self._cl_ops.get(op)
        return self._cl_ops.setdefault(op, self._find(op)) if cl_op is None else cl_op  # one for all threads

    def _find(self, op: Op) -> DeviceOp:
        general = _defined(GENERAL, op)
        special = [(applies, cl_op) for applies, modules in SPECIAL for cl_op in _defined(modules, op)]
        if general and special:
            return Variants(op, tuple(special), general[0])
        only = [*general, *(cl_op for _, cl_op in special)]
        if not only:
            raise KeyError(op)
        return only[0]

    def __iter__(self) -> Iterator[Op]:
        """Yield the records, by module."""
        everything = [module for modules in (GENERAL, *(modules for _, modules in SPECIAL)) for module in modules]
        return iter(dict.fromkeys(cl_op.op for module in everything for cl_op in getattr(module, "CL_OPS", ())))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _defined(modules: Modules, op: Op) -> list[ClOp]:
    """Return the modules' device operators for an operator."""
    return [cl_op for module in modules.naming(op.name) for cl_op in getattr(module, "CL_OPS", ()) if cl_op.op is op]


CL_OPS: Mapping[Op, DeviceOp] = _DeviceOps()


def has_kernels(name: str) -> bool:
    """Return whether there are kernels for an operator of this name, whatever its record computes."""
    modules = (module for part in (GENERAL, *(part for _, part in SPECIAL)) for module in part.naming(name))
    return any(cl_op.op.name == name for module in modules for cl_op in getattr(module, "CL_OPS", ()))
