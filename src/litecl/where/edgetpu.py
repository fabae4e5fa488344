"""Which nodes the Edge TPU's compiler maps to the Edge TPU, by the list that Coral publishes.

The compiler itself is not run: it is no public package. It maps nodes up to the first that it can't map; that one and
those after it run on the CPU.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import dropwhile

from litecl.interpreter.graph import ABSENT, Array, Node, Subgraph, TensorSpec
from litecl.interpreter.schema import ActivationFunctionType, FullyConnectedOptionsWeightsFormat, TensorType
from litecl.where.table import LEFT, PLACED, UNKNOWN, Runtime, Verdict

SOURCE = "https://coral.ai/docs/edgetpu/models-intro"
"""Its table of operators, as copied in https://developer.axis.com/computer-vision/on-device/system-on-chip/artpec-7 up
to RESIZE_BILINEAR, and from there on in its form of 2019, to which operators were added since."""
_COPIED = "RESIZE_BILINEAR"
RUNTIME = Runtime("edgetpu", "edgetpu_compiler", "its list", "2026-11-29", "", 0)
_SOFTMAX = 16_000  # elements
_INNER = 3  # dimensions that may be larger than 1
_RANK = 4  # from which on the first dimension is the batch for sure
_EIGHT_BITS = TensorType.INT8, TensorType.UINT8
_BY_LIST = "by its published list"

Answer = bool | None
"""Whether a node is within a limit; None if the list doesn't say."""
Specs = Sequence[TensorSpec]
Limit = Callable[[Node, Specs, Specs], Answer]


def verdict(graph: Subgraph, node: Node) -> Verdict:
    """Return where a node runs by the list, with the limit that keeps it on the CPU."""
    inputs = [graph.tensors[t] for t in node.inputs if t != ABSENT]
    outputs = [graph.tensors[t] for t in node.outputs]
    if not inputs or not outputs:
        return Verdict(UNKNOWN, "a node without inputs or outputs")
    if node.op.name not in OPERATORS:
        if node.op.custom or node.op.name < _COPIED:
            return Verdict(LEFT, f"{_BY_LIST}: no {node.op.name}")
        return Verdict(UNKNOWN, f"{_BY_LIST}, of which only an early form is known: no {node.op.name}")
    unknown = ""
    for text in (*OF_ALL, *OPERATORS[node.op.name]):
        answer = LIMITS[text](node, inputs, outputs)
        if answer is False:
            return Verdict(LEFT, f"{_BY_LIST}: expected {text}")
        unknown = unknown or ("" if answer else text)
    return (
        Verdict(UNKNOWN, f"{_BY_LIST}: expected {unknown}, which it leaves open")
        if unknown
        else Verdict(PLACED, _BY_LIST)
    )


def _eight_bits(node: Node, inputs: Specs, outputs: Specs) -> Answer:
    activations = [spec for spec in _activations(inputs, outputs) if not spec.is_variable]
    constants = [spec for spec in inputs if spec.data is not None]
    quantized = all(spec.type in _EIGHT_BITS and spec.quantization is not None for spec in activations)
    return quantized and all(spec.type in (*_EIGHT_BITS, TensorType.INT32) for spec in constants)


def _zeros_alone(node: Node, inputs: Specs, outputs: Specs) -> Answer:
    constants = [spec for spec in inputs if spec.data is not None]
    return not constants or (len(inputs) == 2 and all(map(_is_zero, constants)))


def _is_zero(spec: TensorSpec) -> bool:
    assert spec.data is not None
    zero = 0 if spec.quantization is None else spec.quantization.zero_point
    return bool((spec.data == zero).all())


def _axes_without_batch(node: Node, inputs: Specs, outputs: Specs) -> Answer:
    axes, rank = _constant(inputs, 1), len(inputs[0].static_shape)
    return None if axes is None or rank < _RANK else all(axis % rank for axis in axes.ravel())


def _fourfold_depth(node: Node, inputs: Specs, outputs: Specs) -> Answer:
    axes, shape = _constant(inputs, 1), inputs[0].static_shape
    if axes is None or not shape:
        return None
    return all(axis % len(shape) < len(shape) - 1 for axis in axes.ravel()) or not shape[-1] % 4


def _padded_inside(node: Node, inputs: Specs, outputs: Specs) -> Answer:
    borders = _constant(inputs, 1)
    return None if borders is None or len(borders) < _RANK else not borders[0].any()


def _packed_inside(node: Node, inputs: Specs, outputs: Specs) -> Answer:
    rank = len(outputs[0].static_shape)
    return None if rank < _RANK else bool(node.options.axis % rank)


def _leading_ones(node: Node, inputs: Specs, outputs: Specs) -> Answer:
    return all(1 not in dropwhile(lambda n: n == 1, spec.static_shape) for spec in inputs)


def _unit_strides(node: Node, inputs: Specs, outputs: Specs) -> Answer:
    strides, options = _constant(inputs, 3), node.options
    return None if strides is None else bool((strides == 1).all() and not options.ellipsis_mask | options.new_axis_mask)


def _constant(inputs: Specs, position: int) -> Array | None:
    return inputs[position].data if position < len(inputs) else None


def _activations(inputs: Specs, outputs: Specs) -> Specs:
    return [spec for spec in (*inputs, *outputs) if spec.data is None]


def _is_flat(spec: TensorSpec) -> bool:
    return all(n == 1 for n in spec.static_shape[:-1])


LIMITS: Mapping[str, Limit] = {
    "tensors of 8 bits with a scale": _eight_bits,
    "fixed sizes, of the batch too": lambda _, x, y: all(
        spec.shape is not None and -1 not in (spec.shape_signature or ()) for spec in (*x, *y)
    ),
    "only three dimensions, the innermost, larger than 1": lambda _, x, y: all(
        n == 1 for spec in _activations(x, y) for n in spec.static_shape[:-_INNER]
    ),
    "constant weights and bias": lambda _, x, y: all(spec.data is not None for spec in x[1:]),
    "no fused activation": lambda node, x, y: node.options.fused_activation_function == ActivationFunctionType.NONE,
    "the same dilation in x and y": lambda node, x, y: node.options.dilation_w_factor == node.options.dilation_h_factor,
    "weights in the default format": lambda node, x, y: (
        node.options.weights_format == FullyConnectedOptionsWeightsFormat.DEFAULT
    ),
    "an output of one dimension": lambda _, x, y: all(map(_is_flat, y)),
    "a constant only as one of two inputs, and only zeros": _zeros_alone,
    "axes without the batch": _axes_without_batch,
    "a multiple of 4 where the depth is reduced": _fourfold_depth,
    "no padding of the batch": _padded_inside,
    "no new first axis": _packed_inside,
    "one alpha for each channel": lambda _, x, y: all(map(_is_flat, x[1:])),
    f"one dimension of at most {_SOFTMAX:,} elements": lambda _, x, y: all(
        _is_flat(spec) and spec.size <= _SOFTMAX for spec in x
    ),
    "dimensions of 1 only in front": _leading_ones,
    "strides of 1, no ellipsis and no new axis": _unit_strides,
    "sizes that it maps": lambda _, x, y: None,
}
"""What a limit says, and whether a node is within it."""
OF_ALL = tuple(LIMITS)[:3]
"""The limits of every operator."""
OPERATORS: Mapping[str, tuple[str, ...]] = {
    "ADD": (),
    "AVERAGE_POOL_2D": ("no fused activation",),
    "CONCATENATION": ("no fused activation", "a constant only as one of two inputs, and only zeros"),
    "CONV_2D": ("constant weights and bias", "the same dilation in x and y"),
    "DEPTHWISE_CONV_2D": ("constant weights and bias", "the same dilation in x and y"),
    "EXPAND_DIMS": (),
    "FULLY_CONNECTED": (
        "constant weights and bias",
        "weights in the default format",
        "an output of one dimension",
    ),
    "L2_NORMALIZATION": (),
    "LOGISTIC": (),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (),
    "MAXIMUM": (),
    "MAX_POOL_2D": ("no fused activation",),
    "MEAN": ("axes without the batch", "a multiple of 4 where the depth is reduced"),
    "MINIMUM": (),
    "MUL": (),
    "PACK": ("no new first axis",),
    "PAD": ("no padding of the batch",),
    "PRELU": ("one alpha for each channel",),
    "QUANTIZE": (),
    "REDUCE_MAX": ("axes without the batch",),
    "REDUCE_MIN": ("axes without the batch",),
    "RELU": (),
    "RELU6": (),
    "RELU_N1_TO_1": (),
    "RESHAPE": ("sizes that it maps",),
    "RESIZE_BILINEAR": ("sizes that it maps",),
    "RESIZE_NEAREST_NEIGHBOR": ("sizes that it maps",),
    "SLICE": (),
    "SOFTMAX": (f"one dimension of at most {_SOFTMAX:,} elements",),
    "SPACE_TO_DEPTH": (),
    "SPLIT": (),
    "SQUEEZE": ("dimensions of 1 only in front",),
    "STRIDED_SLICE": ("strides of 1, no ellipsis and no new axis",),
    "SUB": (),
    "TANH": (),
}
"""The limits of each operator that the list has."""
