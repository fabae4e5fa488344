"""Picks the recipe entry that applies to each node, and the format of its weights.

An entry applies only if LiteRT has kernels for it; otherwise an earlier entry does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from litecl.converter.quantization.cells import CELL, cells
from litecl.converter.quantization.dynamic_range import TABLE, WEIGHTS, Weights, divides, given
from litecl.converter.quantization.formats import TYPES, Format, Method
from litecl.converter.quantization.recipes.recipe import (
    ALL,
    FORMS,
    INPUT,
    OUTPUT,
    Algorithm,
    Entry,
    Mode,
    Recipe,
)
from litecl.converter.quantization.rules import RULES, Rule
from litecl.converter.quantization.substitute import has_substitute
from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.ops.gather import GATHER
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV
from litecl.interpreter.schema import TensorType

_FEWER: Mapping[Op | ControlOp, tuple[int, ...]] = {
    FULLY_CONNECTED: (8, 4, 2),
    EMBEDDING_LOOKUP: (8, 4, 2),
    CONV_2D: (8, 4),
}
"""Bits of weights that kernels multiply with float activations; other operators support 8."""

_BLOCKS: Mapping[Op | ControlOp, tuple[int, ...]] = {FULLY_CONNECTED: (4,), EMBEDDING_LOOKUP: (4, 2)}
_INTEGERS: Mapping[Op | ControlOp, tuple[int, ...]] = {FULLY_CONNECTED: (8, 4), CONV_2D: (8, 4)}
_CHANNELS = {FULLY_CONNECTED, CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, EMBEDDING_LOOKUP, BATCH_MATMUL}
_METHODS: Mapping[Algorithm, Method] = {
    Algorithm.MIN_MAX: "minmax",
    Algorithm.HALVES: "minmax",
    Algorithm.OCTAV: "octav",
}
_DENSE = frozenset({FULLY_CONNECTED})
_WINDOWS = frozenset({CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV})
_ALL_OF: Mapping[Algorithm, frozenset[Op | ControlOp]] = {
    Algorithm.HALVES: _DENSE | _WINDOWS | {EMBEDDING_LOOKUP},
    Algorithm.MSE: _DENSE | _WINDOWS | {EMBEDDING_LOOKUP},
    Algorithm.GPTQ: _DENSE,
    Algorithm.AWQ: _DENSE,
    Algorithm.OSCAR: _DENSE,
    Algorithm.HADAMARD: _DENSE | {EMBEDDING_LOOKUP},
    Algorithm.DECOMPOSED_HADAMARD: _DENSE | {EMBEDDING_LOOKUP},
}
"""The operators that a ``*`` entry covers, for algorithms that the peer doesn't support for all."""


@dataclass(frozen=True)
class Choice:
    """How to store and multiply a node's weights.

    form: of all weights, unless the entry names operands. forms: by position. GATHER always dequantizes its result.
    """

    entry: Entry
    form: Format
    forms: Mapping[int, Format]

    @property
    def widened(self) -> bool:
        """True if a DEQUANTIZE widens the weights first."""
        return self.entry.config.mode is Mode.WEIGHT_ONLY


def scope_of(graph: Subgraph, node: Node) -> str:
    """Return the names that an entry's regular expression searches: those of the node's outputs, else of its inputs."""
    names = [graph.tensors[t].name for t in node.outputs if graph.tensors[t].name]
    names = names or [graph.tensors[t].name for t in node.inputs if t != ABSENT and graph.tensors[t].name]
    return "".join(f"{name};" for name in names)


def entry_of(graph: Subgraph, node: Node, recipe: Recipe) -> Entry | None:
    """Return the entry that applies to a node; None if it stays in float."""
    scope = scope_of(graph, node)
    fitting = (entry for entry in reversed(recipe.entries) if entry.fits(node.op.name, scope))
    suiting = next((entry for entry in fitting if _suits(graph, node, entry)), None)
    return None if suiting is None or suiting.config.mode is None else suiting


def choices(graph: Subgraph, recipe: Recipe) -> dict[int, Choice]:
    """Return the nodes with float activations whose weights are stored in fewer bits, by number."""
    candidates = ((number, choice_of(graph, node, recipe)) for number, node in enumerate(graph.nodes))
    return {number: choice for number, choice in candidates if choice is not None}


def choice_of(graph: Subgraph, node: Node, recipe: Recipe) -> Choice | None:
    """Return how to store a node's weights; None if they stay in float or activations become integers."""
    entry = entry_of(graph, node, recipe)
    if entry is None or entry.config.mode is Mode.STATIC:
        return None
    form = _form(graph, node, entry)
    assert form is not None
    present = [p for p in _weights(node).positions if p < len(node.inputs) and node.inputs[p] != ABSENT]
    if not entry.config.operands:
        return Choice(entry, form, dict.fromkeys(present, form))
    axis = _axis(graph, node, widened=True) or 0
    forms = {o.position: _of_form(entry, o.form, axis) for o in entry.config.operands if o.position in present}
    some = {position: format_ for position, format_ in forms.items() if format_ is not None}
    return Choice(entry, form, some) if some else None


def _of_form(entry: Entry, name: str, axis: int) -> Format | None:
    bits, per_channel = FORMS[name]
    if bits == 32:
        return None
    own = axis if per_channel else None
    return Format(TensorType.FLOAT16) if bits == 16 else Format(TYPES[bits], own, method=_method(entry))


def _rule(graph: Subgraph, node: Node) -> Rule | None:
    is_cell = any(graph.nodes[number] is node for number in cells(graph))
    return CELL if is_cell else RULES.get(node.op)


def integer_form(node: Node, entry: Entry) -> Format:
    """Return the weight format of a node with integer activations."""
    rule = RULES.get(node.op, CELL)
    axis = next(iter(rule.weights.values()), None) if entry.config.per_channel else None
    return Format(TYPES[entry.config.bits], axis, method=_method(entry))


def borders(model: Model, recipe: Recipe) -> tuple[str, str]:
    """Return the types of the model's float inputs and outputs: integers if a static entry applies to them."""
    graph = model.subgraphs[0]
    return _border(graph, graph.inputs, INPUT, recipe), _border(graph, graph.outputs, OUTPUT, recipe)


def _border(graph: Subgraph, tensors: tuple[int, ...], operation: str, recipe: Recipe) -> str:
    scope = "".join(f"{graph.tensors[t].name};" for t in tensors)
    last = next((entry for entry in reversed(recipe.entries) if entry.fits(operation, scope)), None)
    static = last is not None and last.config.mode is Mode.STATIC
    return str(last.config.activations.name.lower()) if static and last and last.config.activations else "float32"


def fits(graph: Subgraph, recipe: Recipe) -> Iterator[tuple[Entry, Node]]:
    """Yield every entry with every node that it fits, even if another entry applies."""
    for node in graph.nodes:
        scope = scope_of(graph, node)
        yield from ((entry, node) for entry in recipe.entries if entry.fits(node.op.name, scope))


def _suits(graph: Subgraph, node: Node, entry: Entry) -> bool:
    """Return whether there are kernels for a node as an entry wants it."""
    if entry.config.mode is None:
        return True
    if entry.operation == ALL and WEIGHTS.get(node.op) and node.op not in _ALL_OF.get(entry.algorithm, {node.op}):
        return False
    if entry.config.mode is Mode.STATIC:
        assert entry.config.activations is not None
        rule, bits = _rule(graph, node), _INTEGERS.get(node.op, (8,))
        if rule is None:
            return has_substitute(node.op, entry.config.activations)
        return entry.config.activations in rule.types and (not rule.weights or entry.config.bits in bits)
    return _form(graph, node, entry) is not None


def _weights(node: Node) -> Weights:
    return TABLE if node.op is GATHER else WEIGHTS.get(node.op, Weights(()))


def _form(graph: Subgraph, node: Node, entry: Entry) -> Format | None:
    """Return the format of a node's weights; None without weights or without kernels for it."""
    config = entry.config
    specs = [graph.tensors[t] for t in given(node, _weights(node))]
    constant = all(spec.data is not None and spec.type == TensorType.FLOAT32 for spec in specs)
    if not specs or not constant or sum(spec.data.size for spec in specs if spec.data is not None) < config.least:
        return None
    if config.bits == 16:
        return None if node.op is GATHER else Format(TensorType.FLOAT16)
    widened = config.mode is Mode.WEIGHT_ONLY and node.op is not GATHER
    if not widened and config.bits not in _FEWER.get(node.op, (8,)):
        return None
    block = config.block if _blocks(node, config.bits, widened) else 0
    if config.block and not block:
        return None
    block = block if block and divides(block, node.op, specs[0]) else 0
    axis = _axis(graph, node, widened) if config.per_channel else None
    return Format(TYPES[config.bits], axis, block, config.symmetric, _method(entry))


def _method(entry: Entry) -> Method:
    return "gptq" if entry.compensates else _METHODS.get(entry.algorithm, "mse")


def _blocks(node: Node, bits: int, widened: bool) -> bool:
    """Return whether kernels support blockwise scales; LiteRT's DEQUANTIZE doesn't."""
    return not widened and bits in _BLOCKS.get(node.op, ())


def _axis(graph: Subgraph, node: Node, widened: bool) -> int | None:
    """Return the dimension of output channels, if each may have a scale."""
    if node.op is BATCH_MATMUL:
        rank = len(graph.tensors[node.inputs[1]].static_shape)
        return rank - (2 if node.options.adj_y else 1) if rank == 2 or widened else None
    if node.op in _CHANNELS:
        return WEIGHTS[node.op].axis
    return 0 if widened else None
