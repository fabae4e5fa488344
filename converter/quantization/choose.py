"""Chooses the nodes to quantize, and gives reasons for the others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from litecl.converter.quantization.aware import CONVERSION, converts
from litecl.converter.quantization.calibrate import Ranges
from litecl.converter.quantization.cells import CELL, STATE, Cell, cells
from litecl.converter.quantization.options import Quantization
from litecl.converter.quantization.rules import RULES, Rule, why_in_float
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import ABSENT, Node, Subgraph
from litecl.interpreter.schema import ActivationFunctionType, TensorType


@dataclass(frozen=True)
class Chosen:
    """The rules of nodes to quantize, and the reasons of float nodes that stay, by number.

    cells: the quantized LSTM layers.
    """

    rules: Mapping[int, Rule]
    reasons: Mapping[int, str]
    cells: Mapping[int, Cell] = field(default_factory=dict)


def operands(graph: Subgraph, node: Node, rule: Rule) -> list[int]:
    """Return the positions of a node's activation operands."""
    return [
        position
        for position, tensor in enumerate(node.inputs)
        if tensor != ABSENT
        and position not in rule.weights
        and position not in rule.sums
        and position not in rule.states
        and graph.tensors[tensor].type == TensorType.FLOAT32
    ]


def results(graph: Subgraph, node: Node) -> list[int]:
    """Return the float tensors that a node writes."""
    return [t for t in node.outputs if graph.tensors[t].type == TensorType.FLOAT32]


def choose(graph: Subgraph, ranges: Ranges, how: Quantization, refused: Mapping[int, str]) -> Chosen:
    """Choose the nodes to quantize in a subgraph with these ranges; ``refused`` ones stay in float.

    FAKE_QUANTs from training always become conversions where possible, so that their range is kept.
    """
    type_ = TensorType[(how.activations or "").upper()]
    layers = dict(_layers(graph, ranges, how, refused))
    rules: dict[int, Rule] = {}
    for number, cell in layers.items():
        rules |= {number: CELL, **dict.fromkeys(cell.writers, STATE)}
    reasons = {}
    for number, node in enumerate(graph.nodes):
        if number in rules or not _on_floats(graph, node):
            continue
        if converts(graph, node, type_):
            rules[number] = CONVERSION
            continue
        reason = refused.get(number) or _reason(graph, node, RULES.get(node.op), ranges, how)
        if reason is None:
            rules[number] = RULES[node.op]
        else:
            reasons[number] = reason
    stay = set() if how.strict else set(rules) - _among_integers(graph, rules, how)
    alone = dict.fromkeys(stay, "only moves what is in float before and after it")
    return Chosen({n: rule for n, rule in rules.items() if n not in stay}, reasons | alone, layers)


def _layers(
    graph: Subgraph, ranges: Ranges, how: Quantization, refused: Mapping[int, str]
) -> Iterator[tuple[int, Cell]]:
    """Return the LSTM layers to quantize, unless a node that writes their states must stay in float."""
    for number, cell in cells(graph).items():
        given = {number, *cell.writers} & set(refused)
        if not given and _reason(graph, graph.nodes[number], CELL, ranges, how) is None:
            yield number, cell


def _on_floats(graph: Subgraph, node: Node) -> bool:
    tensors = (t for t in (*node.inputs, *node.outputs) if t != ABSENT)
    return any(graph.tensors[t].type == TensorType.FLOAT32 for t in tensors)


def _reason(graph: Subgraph, node: Node, rule: Rule | None, ranges: Ranges, how: Quantization) -> str | None:
    type_ = TensorType[(how.activations or "").upper()]
    if is_named(graph, node, how.skip):
        return "it is named in skip"
    if rule is None:
        return why_in_float(node.op)
    if type_ not in rule.types:
        return f"it has no kernel for {type_.name} activations"
    if rule.shared and getattr(node.options, "fused_activation_function", None) not in (None, *_PLAIN):
        return "its activation is not one of integers"
    return _of_constants(graph, node, rule) or _of_ranges(graph, node, rule, ranges)


_PLAIN = (ActivationFunctionType.NONE, ActivationFunctionType.RELU, ActivationFunctionType.RELU6)


def is_named(graph: Subgraph, node: Node, names: Sequence[str]) -> bool:
    """Return whether a pattern matches the node's operator or the name of one of its outputs."""
    return any(name == node.op.name or _matches(graph.tensors[t].name, name) for name in names for t in node.outputs)


def check_names(graphs: Sequence[Subgraph], names: Sequence[str]) -> None:
    """Raise ConversionError for names that match no layer."""
    unknown = [n for n in names if not any(is_named(graph, node, [n]) for graph in graphs for node in graph.nodes)]
    if unknown:
        raise ConversionError(f"quantize: skip: no operator and no layer is named {', '.join(map(repr, unknown))}")


def _matches(name: str, pattern: str) -> bool:
    """Match a tensor's name, or adjacent parts of it between slashes (each name separately if joined by ``;``)."""
    return any(fnmatchcase(part, pattern) for part in _parts(name))


def _parts(name: str) -> Iterator[str]:
    yield name
    for single in name.split(";"):
        parts = single.split("/")
        for first in range(len(parts)):
            for last in range(first + 1, len(parts) + 1):
                yield "/".join(parts[first:last])


def _of_constants(graph: Subgraph, node: Node, rule: Rule) -> str | None:
    for position in (*rule.weights, *rule.sums):
        tensor = node.inputs[position] if position < len(node.inputs) else ABSENT
        if tensor == ABSENT and position in rule.sums:
            continue
        spec = graph.tensors[tensor]
        if spec.data is None or spec.type != TensorType.FLOAT32:
            return f"its operand {position} is no constant in float32"
    return None


def _of_ranges(graph: Subgraph, node: Node, rule: Rule, ranges: Ranges) -> str | None:
    read = [node.inputs[position] for position in operands(graph, node, rule)]
    written = [] if rule.fixed else results(graph, node)
    for tensor in (*read, *written):
        spec = graph.tensors[tensor]
        if spec.is_variable:
            return f"{spec.name!r} is a variable"
        if spec.data is None and tensor not in ranges:
            return f"{spec.name!r} has no range: no representative data had values for it, and no training gave one"
    return None


def _among_integers(graph: Subgraph, rules: Mapping[int, Rule], how: Quantization) -> set[int]:
    """Return the nodes to quantize, without those that only move data between float nodes."""
    makers = {t: number for number, node in enumerate(graph.nodes) for t in node.outputs}
    readers: dict[int, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        for tensor in node.inputs:
            readers.setdefault(tensor, []).append(number)
    integers = {number for number, rule in rules.items() if not rule.moves}
    entering = set(graph.inputs) if how.input_type != "float32" else set()
    leaving = set(graph.outputs) if how.output_type != "float32" else set()

    def fed(number: int) -> bool:
        read = (
            graph.nodes[number].inputs[position] for position in operands(graph, graph.nodes[number], rules[number])
        )
        return any(t in entering or makers.get(t) in integers for t in read)

    def awaited(number: int) -> bool:
        written = results(graph, graph.nodes[number])
        read = [reader for t in written for reader in readers.get(t, [])]
        left = [t for t in written if t in graph.outputs]
        return bool(read or left) and integers.issuperset(read) and leaving.issuperset(left)

    waiting = set(rules) - integers
    while True:
        more = {number for number in waiting if fed(number) or awaited(number)}
        if not more:
            return integers
        integers |= more
        waiting -= more
