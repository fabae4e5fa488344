"""Brings the numbers that mask scores before a softmax near the scores.

Attention hides a score by a huge negative number, which SELECT_V2 puts in its place or ADD adds to it; or SELECT_V2
chooses between scores and scores less a huge number, which becomes the first form. Integers of one
scale cannot hold both: all scores would round to one integer. A number that is smaller than every score by a margin
hides as well. With n numbers in a row and a result of ``steps`` steps from 0 to 1, a margin of log(2 n steps) keeps the
sum of what is hidden below half a step, since exp(x - max) of each is at most 1 / (2 n steps).
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from litecl.converter.quantization.data import Sample
from litecl.converter.quantization.watch import After, Runner
from litecl.interpreter.graph import Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.binary import ADD, SUB
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE, SQUEEZE
from litecl.interpreter.ops.select import SELECT, SELECT_V2
from litecl.interpreter.ops.softmax import SOFTMAX
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.schema import ActivationFunctionType, TensorType

_MOVES = (RESHAPE, TRANSPOSE, SQUEEZE, EXPAND_DIMS)
_STEPS: Mapping[TensorType, int] = {TensorType.INT8: 1 << 8, TensorType.INT16: 1 << 15}
_POSITIONS: Mapping[Op | ControlOp, Sequence[int]] = {SELECT: (1, 2), SELECT_V2: (1, 2), ADD: (0, 1), SUB: (1,)}
_HUGE = 1e4  # programs mask by the least half, -65,504, or less


@dataclass
class _Masked:
    """A softmax of masked scores.

    softmax: its node's number. masks: the numbers of the nodes that mask, with the position of their constants. scores:
    the tensor before all masks. low, high, width: the scores' range and the largest row, once measured.
    """

    softmax: int
    masks: Sequence[tuple[int, int]]
    scores: int
    low: float = math.inf
    high: float = -math.inf
    width: int = 1

    def look(self, values: Sequence[Array]) -> None:
        """Receive the scores and the operand of the softmax, in one run."""
        scores, masked = values
        self.low = min(self.low, float(scores.min(initial=math.inf)))
        self.high = max(self.high, float(scores.max(initial=-math.inf)))
        self.width = max(self.width, masked.shape[-1])


def with_near_masks(model: Model, type_: TensorType, samples: Sequence[Sample]) -> Model:
    """Return the model with constants that mask the scores of these samples, and integers of a type can hold both."""
    found = [list(_masked(graph)) for graph in model.subgraphs]
    if not samples or not any(found):
        return model
    graphs = zip(model.subgraphs, found, strict=True)
    run = Runner(model, {index: _looks(graph, softmaxes) for index, (graph, softmaxes) in enumerate(graphs)})
    for sample in samples:
        run(sample)
    near = (_near(graph, each, _STEPS[type_]) for graph, each in zip(model.subgraphs, found, strict=True))
    return replace(model, subgraphs=tuple(near))


def _looks(graph: Subgraph, softmaxes: Sequence[_Masked]) -> After:
    return {each.softmax: [((each.scores, graph.nodes[each.softmax].inputs[0]), each.look)] for each in softmaxes}


def _masked(graph: Subgraph) -> Iterator[_Masked]:
    makers = {tensor: number for number, node in enumerate(graph.nodes) for tensor in node.outputs}
    readers = Counter((*graph.outputs, *(tensor for node in graph.nodes for tensor in node.inputs)))
    for number, softmax in enumerate(graph.nodes):
        if softmax.op is not SOFTMAX or softmax.options.beta <= 0:
            continue
        masks, scores, rest = [], softmax.inputs[0], readers.copy()
        while scores in makers and rest[scores] == 1:
            number_of_maker = makers[scores]
            maker = graph.nodes[number_of_maker]
            if maker.op in _MOVES:
                scores = maker.inputs[0]
                continue
            position = _mask(graph, maker)
            if position is None:
                position = _lowered(graph, maker, makers, rest)
                if position is None:
                    break
                rest[maker.inputs[_other(maker, position)]] -= 1  # read for the branch that goes
            masks.append((number_of_maker, position))
            scores = maker.inputs[_other(maker, position)]
        if masks:
            yield _Masked(number, masks, scores)


def _mask(graph: Subgraph, node: Node) -> int | None:
    """Return the position of a constant that masks."""
    if node.op in (ADD, SUB) and node.options.fused_activation_function != ActivationFunctionType.NONE:
        return None
    for position in _POSITIONS.get(node.op, ()):
        data = graph.tensors[node.inputs[position]].data
        if data is None or data.dtype != np.float32 or not data.size:
            continue
        signed = -data if node.op is SUB else data
        if (signed.max() if node.op in (SELECT, SELECT_V2) else signed.min()) <= -_HUGE:
            return position
    return None


def _lowered(graph: Subgraph, node: Node, makers: Mapping[int, int], readers: Mapping[int, int]) -> int | None:
    """Return the position of scores less a huge number, if a SELECT_V2 chooses between these and the scores."""
    for position in (1, 2) if node.op is SELECT_V2 else ():
        tensor, scores = node.inputs[position], node.inputs[_other(node, position)]
        maker = graph.nodes[makers[tensor]] if tensor in makers and readers[tensor] == 1 else None
        constant = None if maker is None or maker.op not in (ADD, SUB) else _mask(graph, maker)
        if maker is None or constant is None or maker.inputs[_other(maker, constant)] != scores:
            continue
        data = graph.tensors[maker.inputs[constant]].data
        if data is not None and (np.abs(data) >= _HUGE).all():
            return position
    return None


def _other(node: Node, position: int) -> int:
    return (3 if node.op in (SELECT, SELECT_V2) else 1) - position


def _near(graph: Subgraph, softmaxes: Sequence[_Masked], steps: int) -> Subgraph:
    tensors, nodes = list(graph.tensors), list(graph.nodes)
    for each in softmaxes:
        margin = math.log(2 * each.width * steps) / nodes[each.softmax].options.beta
        margin += sum(_spread(nodes[number], tensors[nodes[number].inputs[at]].data) for number, at in each.masks)
        for number, position in each.masks if math.isfinite(each.low) and math.isfinite(each.high) else ():
            node = nodes[number]
            spec = tensors[node.inputs[position]]
            if spec.data is None:
                spec = replace(spec, shape=(), shape_signature=None, data=np.zeros((), np.float32))
            tensors.append(replace(spec, data=_near_data(node, spec, each, margin)))
            inputs = (*node.inputs[:position], len(tensors) - 1, *node.inputs[position + 1 :])
            nodes[number] = replace(node, inputs=inputs)
    read = {*graph.outputs, *(tensor for node in nodes for tensor in node.inputs)}
    kept = [node for node in nodes if node.op not in (ADD, SUB) or not read.isdisjoint(node.outputs)]
    return replace(graph, tensors=tuple(tensors), nodes=tuple(kept))


def _near_data(node: Node, spec: TensorSpec, masked: _Masked, margin: float) -> Array:
    data = spec.data
    assert data is not None
    if node.op in (SELECT, SELECT_V2):
        return np.full_like(data, masked.low - margin)
    signed = -data if node.op is SUB else data
    near = np.where(signed > -_HUGE, signed, np.float32(masked.low - masked.high - margin))
    return -near if node.op is SUB else near


def _spread(node: Node, data: Array | None) -> float:
    """Return how far the numbers of an added mask that hide nothing may move scores from each other."""
    if node.op in (SELECT, SELECT_V2) or data is None:
        return 0.0
    shown = data[np.abs(data) < _HUGE]
    return float(shown.max(initial=0.0) - shown.min(initial=0.0))
