"""Which nodes the Edge TPU's compiler maps to the Edge TPU, by the list that Coral publishes.

The compiler itself is not run: it is no public package. It maps nodes up to the first that it can't map; that one and
those after it run on the CPU.
"""

from collections.abc import Callable, Mapping
from typing import Any

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
_BY_LIST = "by its published list"

Answer = bool | None
"""Whether a node is within a limit; None if the list doesn't say."""
Limit = Callable[[Node, list[TensorSpec], list[TensorSpec]], Answer]


def verdict(graph: Subgraph, node: Node) -> Verdict:
    """Return where a node runs by the list, with the limit that keeps it on the CPU."""
    inputs = [graph.tensors[t] for t in node.inputs if t != ABSENT]
    outputs = [graph.tensors[t] for t in node.outputs]
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


def _eight_bits(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    activations = [spec for spec in (*inputs, *outputs) if spec.data is None and not spec.is_variable]
    constants = [spec for spec in inputs if spec.data is not None]
    quantized = all(_is_eight_bits(spec) and spec.quantization is not None for spec in activations)
    return quantized and all(_is_eight_bits(spec) or spec.type == TensorType.INT32 for spec in constants)


def _is_eight_bits(spec: TensorSpec) -> bool:
    return spec.type in (TensorType.INT8, TensorType.UINT8)


def _fixed_sizes(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    return all(spec.shape is not None and -1 not in (spec.shape_signature or ()) for spec in (*inputs, *outputs))


def _three_dimensions(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    activations = [spec for spec in (*inputs, *outputs) if spec.data is None]
    return all(n == 1 for spec in activations for n in spec.static_shape[:-_INNER])


def _constant_parameters(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    return all(spec.data is not None for spec in inputs[1:])


def _no_activation(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    return bool(_option(node, "fused_activation_function") == ActivationFunctionType.NONE)


def _one_dilation(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    return bool(_option(node, "dilation_w_factor") == _option(node, "dilation_h_factor"))


def _default_weights(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    return bool(_option(node, "weights_format") == FullyConnectedOptionsWeightsFormat.DEFAULT)


def _one_output_dimension(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    return _is_flat(outputs[0])


def _zeros_alone(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    constants = [spec for spec in inputs if spec.data is not None]
    return not constants or (len(inputs) == 2 and all(map(_is_zero, constants)))


def _is_zero(spec: TensorSpec) -> bool:
    assert spec.data is not None
    zero = 0 if spec.quantization is None else spec.quantization.zero_point
    return bool((spec.data == zero).all())


def _axes(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    axes, rank = _constant(inputs, 1), len(inputs[0].static_shape)
    return None if axes is None or rank < 4 else all(axis % rank for axis in axes.ravel())


def _fourfold_depth(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    axes, shape = _constant(inputs, 1), inputs[0].static_shape
    if axes is None or not shape:
        return None
    return all(axis % len(shape) < len(shape) - 1 for axis in axes.ravel()) or not shape[-1] % 4


def _padded_inside(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    borders = _constant(inputs, 1)
    return None if borders is None or len(borders) < 4 else not borders[0].any()


def _packed_inside(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    rank = len(outputs[0].static_shape)
    return None if rank < 4 else bool(_option(node, "axis") % rank)


def _flat_alpha(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    return _is_flat(inputs[1])


def _short_vector(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    return _is_flat(inputs[0]) and inputs[0].size <= _SOFTMAX


def _leading_ones(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    sizes = [*inputs[0].static_shape]
    while sizes and sizes[0] == 1:
        sizes.pop(0)
    return 1 not in sizes


def _unit_strides(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    strides = _constant(inputs, 3)
    masks = _option(node, "ellipsis_mask"), _option(node, "new_axis_mask")
    return None if strides is None else bool((strides == 1).all()) and not any(masks)


def _not_said(node: Node, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> Answer:
    return None


def _option(node: Node, name: str) -> Any:
    return getattr(node.options, name)


def _constant(inputs: list[TensorSpec], position: int) -> Array | None:
    return inputs[position].data if position < len(inputs) else None


def _is_flat(spec: TensorSpec) -> bool:
    return all(n == 1 for n in spec.static_shape[:-1])


LIMITS: Mapping[str, Limit] = {
    "tensors of 8 bits with a scale": _eight_bits,
    "fixed sizes, of the batch too": _fixed_sizes,
    "only three dimensions, the innermost, larger than 1": _three_dimensions,
    "constant weights and bias": _constant_parameters,
    "no fused activation": _no_activation,
    "the same dilation in x and y": _one_dilation,
    "weights in the default format": _default_weights,
    "an output of one dimension": _one_output_dimension,
    "a constant only as one of two inputs, and only zeros": _zeros_alone,
    "axes without the batch": _axes,
    "a multiple of 4 where the depth is reduced": _fourfold_depth,
    "no padding of the batch": _padded_inside,
    "no new first axis": _packed_inside,
    "one alpha for each channel": _flat_alpha,
    f"one dimension of at most {_SOFTMAX:,} elements": _short_vector,
    "dimensions of 1 only in front": _leading_ones,
    "strides of 1, no ellipsis and no new axis": _unit_strides,
    "sizes that it maps": _not_said,
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
