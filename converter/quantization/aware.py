"""Quantization-aware training: takes ranges and scales from FAKE_QUANT nodes and rounded constants.

A FAKE_QUANT with at least as many bits as the model's integers becomes a conversion to integers of its scale: nothing,
if its input already has that scale, else a QUANTIZE. So its input may exceed its range or stay in float.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import inf, isfinite
from operator import or_

from litecl.converter.quantization.calibrate import Known
from litecl.converter.quantization.observers import Range
from litecl.converter.quantization.rules import RULES, Rule
from litecl.converter.quantization.scales import Affine, given, nested, nudged, range_held
from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.ops.binary import MUL
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D
from litecl.interpreter.ops.quantize import FAKE_QUANT
from litecl.interpreter.ops.resize import RESIZE_BILINEAR
from litecl.interpreter.ops.topk_v2 import TOPK_V2
from litecl.interpreter.ops.unary import RELU, RELU6, RELU_0_TO_1, RELU_N1_TO_1
from litecl.interpreter.ops.unique import UNIQUE
from litecl.interpreter.schema import ActivationFunctionType, TensorType

CONVERSION = Rule(states=(0,))
"""The rule of a FAKE_QUANT that becomes a conversion. Its input, no activation, may have any scale or none."""

_BITS = {TensorType.INT8: 8, TensorType.INT16: 16}
_CLAMPS = {RELU: (0.0, inf), RELU6: (0.0, 6.0), RELU_0_TO_1: (0.0, 1.0), RELU_N1_TO_1: (-1.0, 1.0)}
_POSITIVE = (ActivationFunctionType.RELU, ActivationFunctionType.RELU6)
_MIXING = (AVERAGE_POOL_2D, RESIZE_BILINEAR, UNIQUE, TOPK_V2)
"""Operators with one scale for operands and results, for which clamping before differs from clamping after."""


@dataclass(frozen=True)
class _Limits:
    """The range that all readers clamp a tensor to, and the scale they round it with if they agree."""

    range: Range
    scale: Affine | None

    def __or__(self, other: "_Limits") -> "_Limits":
        same = self.scale is not None and other.scale is not None and self.scale.same(other.scale)
        return _Limits(self.range | other.range, self.scale if same else None)

    def divided(self, factor: float) -> "_Limits":
        """Return the limits of a tensor before it is multiplied by ``factor``."""
        low, high = sorted((self.range.low / factor, self.range.high / factor))
        scale = self.scale
        if scale is not None:
            scale = given(float(scale.scale[0]) / factor, int(scale.zero_point[0])) if factor > 0 else None
        return _Limits(Range(low, high), scale)


def is_trained(model: Model, most_bits: int = 16) -> bool:
    """Return whether a model was trained for integers: whether it has FAKE_QUANT nodes of at most ``most_bits``."""
    nodes = (node for graph in model.subgraphs for node in graph.nodes)
    return any(node.op is FAKE_QUANT and node.options.num_bits <= most_bits for node in nodes)


def trained(model: Model, type_: TensorType) -> Mapping[int, Known]:
    """Return the ranges and scales that training gives for integers of a type, by subgraph."""
    return {index: _known(graph, type_) for index, graph in enumerate(model.subgraphs)}


def converts(graph: Subgraph, node: Node, type_: TensorType) -> bool:
    """Return whether a FAKE_QUANT can become a conversion to integers of a type, which must cover just its range.

    INT16 has no zero point, so an asymmetric range needs a tensor without negative numbers.
    """
    if node.op is not FAKE_QUANT or node.options.num_bits < _BITS[type_]:
        return False
    step = nudged(_range(node), type_, node.options.narrow_range).scale[0]
    is_even = abs(node.options.min + node.options.max) <= 2 * step
    return type_ == TensorType.INT8 or is_even or (node.options.min >= -step and _is_positive(graph, node.inputs[0]))


def _is_positive(graph: Subgraph, tensor: int) -> bool:
    for node in graph.nodes:
        if tensor in node.outputs:
            fused = getattr(node.options, "fused_activation_function", None)
            return fused in _POSITIVE or (node.op in _CLAMPS and _CLAMPS[node.op][0] == 0)
    return False


def _known(graph: Subgraph, type_: TensorType) -> Known:
    known, limits = Known(), _limits(graph, type_)
    for tensor in graph.inputs:
        _take(known, tensor, limits.get(tensor))
    for node in graph.nodes:
        if node.op is FAKE_QUANT:
            (tensor,) = node.outputs
            known.ranges[tensor], known.scales[tensor] = _range(node), _scale(node, type_)
            continue
        if _is_free(node):
            for tensor in node.outputs:
                _take(known, tensor, limits.get(tensor))
        _follow(graph, known, node, type_)
    return known


def _range(node: Node) -> Range:
    return Range(node.options.min, node.options.max)


def _scale(node: Node, type_: TensorType) -> Affine:
    """Return the scale of integers that hold a FAKE_QUANT's results, exactly if it has fewer bits."""
    if node.options.num_bits < _BITS[type_]:
        return nested(_range(node), node.options.num_bits, node.options.narrow_range, type_)
    return nudged(_range(node), type_, node.options.narrow_range)


def _take(known: Known, tensor: int, limits: _Limits | None) -> None:
    if limits is not None:
        known.ranges[tensor] = limits.range
        if limits.scale is not None:
            known.scales[tensor] = limits.scale


def _is_free(node: Node) -> bool:
    """Return whether an operator's integer kernel can write the range that its readers want."""
    rule = RULES.get(node.op)
    return rule is not None and not rule.fixed and not (rule.shared and node.op in _MIXING)


# Ranges from readers


def _limits(graph: Subgraph, type_: TensorType) -> Mapping[int, _Limits]:
    """Return the limits of tensors that every reader clamps, directly or after operators that commute with clamping."""
    limits: dict[int, _Limits] = {}
    read = {t for node in graph.nodes for t in node.inputs} | {*graph.outputs}
    unlimited = {*graph.outputs}
    for node in reversed(graph.nodes):
        whole = _joint([limits.pop(t, None) for t in node.outputs if t in read])
        if whole is not None:
            limits |= dict.fromkeys(node.outputs, whole)  # an operator's results share one scale
        wanted = _wanted(graph, node, type_, whole)
        for tensor in node.inputs:
            if tensor not in wanted:
                unlimited.add(tensor)
            if tensor in unlimited:
                limits.pop(tensor, None)
            else:
                limits[tensor] = limits[tensor] | wanted[tensor] if tensor in limits else wanted[tensor]
    return limits


def _joint(limits: Sequence[_Limits | None]) -> _Limits | None:
    known = [each for each in limits if each is not None]
    return reduce(or_, known) if known and len(known) == len(limits) else None


def _wanted(graph: Subgraph, node: Node, type_: TensorType, result: _Limits | None) -> Mapping[int, _Limits]:
    """Return the limits that a node's operands may have, given those of its results."""
    if node.op is FAKE_QUANT and node.options.num_bits >= _BITS[type_]:
        scale = _scale(node, type_) if converts(graph, node, type_) else None
        return {node.inputs[0]: _Limits(_range(node), scale)}
    if result is None:
        return {}
    if _lets_through(node):
        return dict.fromkeys(node.inputs, result)
    if (product := _product(graph, node)) is not None:
        tensor, factor = product
        return {tensor: result.divided(factor)}
    return {}


def _lets_through(node: Node) -> bool:
    """Return whether clamping an operator's operands is the same as clamping its results."""
    rule = RULES.get(node.op)
    return node.op in _CLAMPS or (rule is not None and rule.shared and node.op not in _MIXING)


def _product(graph: Subgraph, node: Node) -> tuple[int, float] | None:
    """Return the operand that a node multiplies by a scalar constant, and that scalar; None for other nodes."""
    if node.op is not MUL or node.options.fused_activation_function != ActivationFunctionType.NONE:
        return None
    for tensor, other in (node.inputs, node.inputs[::-1]):
        data = graph.tensors[other].data
        if data is not None and data.size == 1 and data.item() != 0 and isfinite(data.item()):
            return tensor, float(data.item())
    return None


# Ranges from operands


def _follow(graph: Subgraph, known: Known, node: Node, type_: TensorType) -> None:
    """Add the ranges of results that follow from ranges of operands."""
    rule = RULES.get(node.op)
    if rule is None or type_ not in rule.types:
        return
    given_ = [t for t in node.inputs if t != ABSENT and _is_computed(graph.tensors[t])]
    if not given_ or any(t not in known.ranges for t in given_):
        return
    whole = reduce(or_, (known.ranges[t] for t in given_))
    if rule.fixed:
        whole = range_held(given(*rule.fixed[type_]), type_)
    elif node.op in _CLAMPS:
        low, high = _CLAMPS[node.op]
        whole = Range(min(max(whole.low, low), high), max(min(whole.high, high), low))
    elif not rule.shared:
        return
    for tensor in node.outputs:
        if _is_computed(graph.tensors[tensor]):
            known.ranges.setdefault(tensor, whole)


def _is_computed(spec: TensorSpec) -> bool:
    return spec.type == TensorType.FLOAT32 and spec.data is None


def without_grids(model: Model) -> Model:
    """Return a model whose float constants no longer carry the grids of training."""
    graphs = (replace(g, tensors=tuple(map(_plain, g.tensors))) for g in model.subgraphs)
    return replace(model, subgraphs=tuple(graphs))


def _plain(spec: TensorSpec) -> TensorSpec:
    known = spec.quantization
    rounded = known is not None and not known.scale.size and spec.type == TensorType.FLOAT32
    return replace(spec, quantization=None) if rounded else spec
