"""LiteRT's known faults, in its reference kernels and in its default ones (XNNPACK's and the optimised)."""

from collections.abc import Callable, Sequence
from functools import partial

from litecl.conformance.known import Known
from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph, TensorSpec, callees_of
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from litecl.perf.peers.litert import LITERT, LITERT_REFERENCE

_REFERENCE, _DEFAULT = (LITERT_REFERENCE,), (LITERT,)
_BOTH = (*_REFERENCE, *_DEFAULT)
_IGNORED = (ActivationFunctionType.TANH, ActivationFunctionType.SIGN_BIT)
_PRODUCTS = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED")
_HYBRID = (*_PRODUCTS, "BATCH_MATMUL")
_COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
_RECURRENT = ("LSTM", "RNN", "SVDF")
_SHARE_OF_8_BITS = 0.02  # error from rounding operands to 8 bits differently, relative to the largest result


def _any(test: Callable[[Subgraph, Node], bool]) -> Callable[[Model], bool]:
    return lambda model: any(test(graph, node) for graph in model.subgraphs for node in graph.nodes)


def _inputs(graph: Subgraph, node: Node) -> list[TensorSpec | None]:
    return [None if t == ABSENT else graph.tensors[t] for t in node.inputs]


def _ignores_activation(graph: Subgraph, node: Node) -> bool:
    function = getattr(node.options, "fused_activation_function", None)
    return function in _IGNORED and not any(name in node.op.name for name in _RECURRENT)


def _swaps(model: Model) -> bool:
    """Return whether a loop's body returns one of its inputs at another position."""
    loops = [callees_of(node)[1] for node in model.subgraphs[0].nodes if node.op.name == "WHILE"]
    bodies = [model.subgraphs[i] for i in loops]
    return any(t in body.inputs and body.inputs.index(t) != i for body in bodies for i, t in enumerate(body.outputs))


def _reads_wide_biases(graph: Subgraph, node: Node) -> bool:
    """Return whether an INT16 product has INT32 biases while its options declare another type."""
    specs = [spec for spec in _inputs(graph, node) if spec is not None]
    biases = [spec for spec in specs if spec.type == TensorType.INT32 and spec.quantization is not None]
    wide = any(spec.type == TensorType.INT16 for spec in specs)
    declared = getattr(node.options, "quantized_bias_type", TensorType.INT32)
    return node.op.name in _PRODUCTS and wide and bool(biases) and declared != TensorType.INT32


def _has_blocks(graph: Subgraph, node: Node, types: Sequence[TensorType]) -> bool:
    """Return whether a node has weights of these types with block-wise scales."""
    specs = [spec for spec in _inputs(graph, node) if spec is not None and spec.quantization is not None]
    return any(spec.quantization is not None and spec.quantization.block_size and spec.type in types for spec in specs)


def _broadcasts(graph: Subgraph, node: Node) -> bool:
    return node.op.name == "ATAN2" and len({spec.shape for spec in _inputs(graph, node) if spec is not None}) > 1


def _two_rnns(model: Model) -> bool:
    """Return whether a model has exactly two BIDIRECTIONAL_SEQUENCE_RNN nodes, as a minimized crash does."""
    nodes = model.subgraphs[0].nodes
    return len(nodes) == 2 and all(node.op.name == "BIDIRECTIONAL_SEQUENCE_RNN" for node in nodes)


def _is_int8_matmul(graph: Subgraph, node: Node) -> bool:
    specs = [spec for spec in _inputs(graph, node) if spec is not None]
    return node.op.name == "BATCH_MATMUL" and all(spec.type == TensorType.INT8 for spec in specs)


def _is_hybrid(graph: Subgraph, node: Node) -> bool:
    specs = [spec for spec in _inputs(graph, node) if spec is not None]
    stored = any(spec.data is not None and spec.quantization is not None for spec in specs)
    return node.op.name in _HYBRID and stored and any(spec.type == TensorType.FLOAT32 for spec in specs)


def _is_hybrid_rnn_by_steps(graph: Subgraph, node: Node) -> bool:
    """Return whether a node is a hybrid BIDIRECTIONAL_SEQUENCE_RNN, time major, of more than one step."""
    if node.op.name != "BIDIRECTIONAL_SEQUENCE_RNN" or not node.options.time_major:
        return False
    x, weights = _inputs(graph, node)[:2]
    return bool(x and weights and weights.quantization is not None and x.shape and x.shape[0] > 1)


def _returns_twice(model: Model) -> bool:
    """Return whether a branch of an IF returns one tensor as two outputs."""
    ifs = [node for graph in model.subgraphs for node in graph.nodes if node.op.name == "IF"]
    branches = [model.subgraphs[i] for node in ifs for i in callees_of(node)]
    return any(len({*branch.outputs}) < len(branch.outputs) for branch in branches)


def _compares_steps(graph: Subgraph, node: Node) -> bool:
    """Return whether a node compares 8-bit integers with a scale of 1 or more, or without one."""
    bytes_ = [x for x in _inputs(graph, node) if x is not None and x.type in (TensorType.INT8, TensorType.UINT8)]
    scales = [0.0 if x.quantization is None else float(x.quantization.scale.max(initial=0)) for x in bytes_]
    return node.op.name in _COMPARISONS and any(scale >= 1 or scale == 0 for scale in scales)


def _peeps_past_the_cells(graph: Subgraph, node: Node) -> bool:
    """Return whether an integer LSTM has peepholes and more outputs than cells."""
    if node.op.name not in ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM") or len(node.inputs) < 24:
        return False
    specs = _inputs(graph, node)
    peephole, projection = specs[10], specs[16]
    if peephole is None or projection is None or specs[0] is None or specs[0].type == TensorType.FLOAT32:
        return False
    outputs, cells = projection.static_shape
    return outputs > cells


def _sums_integers(graph: Subgraph, node: Node) -> bool:
    return node.op.name == "SUM" and any(
        spec is not None and spec.type in (TensorType.INT8, TensorType.INT16) for spec in _inputs(graph, node)
    )


def _has_idle_nodes(model: Model) -> bool:
    """Return whether the results of any node are unused."""
    for graph in model.subgraphs:
        read = {*graph.outputs, *(t for node in graph.nodes for t in node.inputs)}
        if any(not read.intersection(node.outputs) for node in graph.nodes):
            return True
    return False


_RANKS = ("*/rank 6", "MAXIMUM/edge*", "SELECT_V2/edge*", "TRANSPOSE/edge*")
_REDUCTIONS = ("MEAN/edge*", "SUM/edge*", "SUM/empty", "REDUCE_M*/edge*")
_has_blocks_of_4_bits = partial(_has_blocks, types=(TensorType.INT4, TensorType.INT2))
_has_blocks_of_8_bits = partial(_has_blocks, types=(TensorType.INT8,))
NEWEST = "2.3.0"
"""The newest LiteRT version tried; the others were 1.4.0 and 2.1.0."""

# First and last version with a fault, and whether tflite_runtime has it too.
_EVER, _MENDED = ("1.4.0", NEWEST, True), ("1.4.0", "2.1.0", True)
_SINCE_1, _SINCE_2 = ("1.4.0", NEWEST, False), ("2.1.0", NEWEST, False)
_UNTIL_2, _IN_2, _IN_1 = ("1.4.0", "2.1.0", False), ("2.1.0", "2.1.0", True), ("1.4.0", "1.4.0", False)
_IN_2_3 = "2.3.0", "2.3.0", False
_OF_BOTH = (
    Known("fused TANH and SIGN_BIT are silently ignored", _BOTH, *_EVER, shows=_any(_ignores_activation)),
    Known("a loop's variables are written one by one, even if they swap values", _BOTH, *_EVER, shows=_swaps),
    Known("32-bit biases of INT16 products are read as 64-bit ones", _BOTH, *_SINCE_1, shows=_any(_reads_wide_biases)),
    Known("RELU_N1_TO_1 of UINT32 makes every element 1", _BOTH, *_EVER, ("*/known: UINT32",)),
    Known("comparisons with NaN are false, so TOPK_V2 puts NaN anywhere", _BOTH, *_EVER, ("*/known: TOPK_V2",)),
    Known(
        "ATAN2 reads past the smaller of operands whose shapes differ",
        _BOTH,
        *_SINCE_1,
        shows=_any(_broadcasts),
        ends=True,
    ),
    Known("8-bit weights with scales of blocks give the bias alone", _BOTH, *_EVER, shows=_any(_has_blocks_of_8_bits)),
    Known("two hybrid BIDIRECTIONAL_SEQUENCE_RNNs in a row end the process", _BOTH, *_EVER, shows=_two_rnns, ends=True),
    Known(
        "hybrid BIDIRECTIONAL_SEQUENCE_RNNs are wrong time major",
        _BOTH,
        *_IN_2_3,
        shows=_any(_is_hybrid_rnn_by_steps),
        ends=True,
    ),
    Known(
        "a branch of IF that returns a tensor twice leaves an output unwritten", _BOTH, *_IN_2_3, shows=_returns_twice
    ),
    Known(
        "comparisons of 8-bit integers end the process or are wrong",
        _BOTH,
        *_IN_2_3,
        shows=_any(_compares_steps),
        ends=True,
    ),
    Known("peepholes of integer LSTMs reach past their cells", _BOTH, *_IN_2_3, shows=_any(_peeps_past_the_cells)),
    Known("differences of INT16 beyond the result's range are near 0", _BOTH, *_IN_2_3, ("SUB/known: *",)),
    Known("ADD_N clamps infinities to 3.4e38", _BOTH, *_EVER, ("*/known: ADD_N",)),
    Known("ARG_MAX and ARG_MIN of NaN give other indices", _BOTH, *_MENDED, ("ARG_M*/NaN*",)),
    Known("the linked or auxiliary input is misread", _BOTH, *_MENDED, ("BIDIRECTIONAL_SEQUENCE_LSTM/*",)),
    Known("numbers out of range are cast to others", _BOTH, *_MENDED, ("CAST/FLOAT* to UINT*", "CAST/saturating*")),
    Known(
        "SPARSE_TO_DENSE with indices of rank 0 or 1 ends the process",
        _BOTH,
        *_MENDED,
        ("SPARSE_TO_DENSE/*",),
        ends=True,
    ),
    Known("ranks above 5 end the process", _BOTH, *_MENDED, _RANKS, ends=True),
    Known("EQUAL of INT16 compares the stored integers, whatever their scales", _BOTH, *_IN_1, ("EQUAL/INT16 *",)),
    Known("slices are read from elsewhere", _BOTH, *_UNTIL_2, ("STABLEHLO_GATHER/rows",)),
)
_OF_THE_REFERENCE = (
    Known("sums of INT8 and INT16 wrap", _REFERENCE, *_SINCE_1, shows=_any(_sums_integers)),
    Known("numbers beyond int32 are quantized to the lowest one", _REFERENCE, *_SINCE_1, ("*/known: QUANTIZE",)),
    Known(
        "infinite results without an activation are clamped to 3.4e38",
        _REFERENCE,
        *_SINCE_1,
        ("*/known: *", "DIV/by zero*", "chain/NaN and infinities*"),
    ),
    Known(
        "the scales of blocks of 4-bit weights are ignored", _REFERENCE, *_SINCE_2, shows=_any(_has_blocks_of_4_bits)
    ),
    Known(
        "the last channel of a neighbourhood is left out", _REFERENCE, *_SINCE_1, ("LOCAL_RESPONSE_NORMALIZATION/*",)
    ),
    Known("a negative alpha is rounded differently", _REFERENCE, *_UNTIL_2, ("LEAKY_RELU/* alpha -0.5*",)),
    Known("the sign of NaN is 0", _REFERENCE, *_UNTIL_2, ("SIGN/infinities and NaN",)),
    Known("results change from run to run", _REFERENCE, *_UNTIL_2, ("BATCH_MATMUL/many rows, both adjoint",)),
)
_OF_THE_DEFAULT = (
    Known(
        "XNNPACK quantizes activations asymmetrically at run time, whatever asymmetric_quantize_inputs says",
        _DEFAULT,
        *_SINCE_1,
        shows=_any(_is_hybrid),
        most=_SHARE_OF_8_BITS,
    ),
    Known("the same, which decides the sign of a sum", _DEFAULT, *_SINCE_1, ("FULLY_CONNECTED/8 bits, saturates",)),
    Known("an infinity makes its neighbours NaN", _DEFAULT, *_EVER, ("*/known: *CONV*", "*/known: FULLY_CONNECTED")),
    Known(
        "DEPTHWISE_CONV_2D without a bias ends the process", _DEFAULT, *_EVER, ("DEPTHWISE_CONV_2D/no bias",), ends=True
    ),
    Known(
        "NaN and infinities",
        _DEFAULT,
        *_EVER,
        ("*/infinities and NaN", "REDUCE_M*/*", "RSQRT/zero*", "*POOL*/known: *"),
    ),
    Known("products near 3.4e38 overflow", _DEFAULT, *_EVER, ("RESIZE_BILINEAR/*extremes*",)),
    Known("SOFTMAX of 8 bits to INT16 adds the wrong offset", _DEFAULT, *_EVER, ("SOFTMAX/*INT8 to INT16*",)),
    Known("a product of scales above 256 overflows", _DEFAULT, *_SINCE_1, ("MUL/INT8 steps of 90.0",)),
    Known("shuffled weights ignore RELU", _DEFAULT, *_EVER, ("FULLY_CONNECTED/*shuffled*RELU*",)),
    Known("INT16 tables are coarser, by up to 10 steps", _DEFAULT, *_EVER, ("LOGISTIC/INT16*", "TANH/INT16*")),
    Known("the cosine of small numbers is off by 1.5e-4", _DEFAULT, *_SINCE_1, ("COS/small beside large",)),
    Known("denormal numbers become 0", _DEFAULT, *_EVER, ("chain/denormal numbers are kept",)),
    Known("sums of INT8 are far off", _DEFAULT, *_IN_2, ("BATCH_MATMUL/INT8 x INT8*",), shows=_any(_is_int8_matmul)),
    Known("strides and dilations misplace the filter", _DEFAULT, *_MENDED, ("CONV_2D/*strid*", "CONV_2D/*dilat*")),
    Known("CONV_3D with a dilation ends the process", _DEFAULT, *_UNTIL_2, ("CONV_3D/dilated",), ends=True),
    Known("halves are off by up to 64 steps", _DEFAULT, *_UNTIL_2, ("*/elements FLOAT16",), most=0.002),
    Known(
        "TANH of halves is off by 3 steps on a processor that computes in halves (avx512_fp16)",
        _DEFAULT,
        *_IN_2_3,
        ("TANH/elements FLOAT16",),
        most=0.002,
    ),
    Known("the zero point of weights is ignored", _DEFAULT, *_UNTIL_2, ("FULLY_CONNECTED/INT8 x INT8, weights*",)),
    Known("reductions of no elements, or ranks above 6", _DEFAULT, *_UNTIL_2, _REDUCTIONS, ends=True),
    Known("a scalar becomes a vector of one element", _DEFAULT, *_UNTIL_2, ("RESHAPE/legacy scalar",)),
    Known("the scales of blocks of 4-bit weights are ignored", _DEFAULT, *_IN_1, shows=_any(_has_blocks_of_4_bits)),
    Known("nodes whose results nobody reads end the process", _DEFAULT, *_IN_1, shows=_has_idle_nodes, ends=True),
    Known("the root of infinity is NaN", _DEFAULT, *_UNTIL_2, ("SQRT/zero*",)),
)
FAULTS: tuple[Known, ...] = (*_OF_BOTH, *_OF_THE_REFERENCE, *_OF_THE_DEFAULT)
