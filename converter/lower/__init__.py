"""Lowers TensorFlow's operators to TFLite's, by one table keyed by TensorFlow's operator name."""

from collections.abc import Iterator

from litecl.converter.graph import Function, Module, Node, Value
from litecl.converter.hints import hint
from litecl.converter.lower import (
    blocks,
    checkpoints,
    control,
    conv,
    conv_gradients,
    detection,
    diagonals,
    elementwise,
    fake_quant,
    functions,
    images,
    index,
    indexing,
    losses,
    matmul,
    own,
    pool,
    pool_gradients,
    random,
    resize,
    shape,
    shape_gradients,
    shifts,
    spectral,
    strings,
    tables,
)
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.records import OwnOp
from litecl.interpreter.errors import ConversionError

_FAMILIES = (
    elementwise,
    functions,
    shape,
    shifts,
    index,
    indexing,
    blocks,
    shape_gradients,
    diagonals,
    conv,
    conv_gradients,
    pool,
    pool_gradients,
    matmul,
    resize,
    images,
    losses,
    random,
    detection,
    spectral,
    strings,
    tables,
    control,
    fake_quant,
    checkpoints,
    own,
)
LOWERINGS: dict[str, Lowering] = {name: how for family in _FAMILIES for name, how in family.LOWERINGS.items()}


def lower(module: Module) -> None:
    """Replace every TensorFlow operator by TFLite's, in every function of a module.

    Raises ConversionError that lists all operators it can't lower.
    """
    problems: dict[str, None] = {}
    for function in module.main.walk():
        problems |= dict.fromkeys(_lower(function))
    if problems:
        raise ConversionError("\n".join(problems))


def _lower(function: Function) -> Iterator[str]:
    """Lower what it can; yield an error for each of the others."""
    unknown: dict[str, list[Node]] = {}
    nodes, function.nodes = function.nodes, []  # a replacement takes its node's place, so that effects keep their order
    for node in nodes:
        lowering = _lowering(node)
        if lowering is None:
            unknown.setdefault(node.op_name, []).append(node)
            continue
        try:
            results = lowering(Builder(function, node))
        except ConversionError as error:
            yield str(error)
            continue
        function.replace_node(node, [results] if isinstance(results, Value) else results)
    for op, nodes_of in unknown.items():
        others = f" (and {len(nodes_of) - 1} more)" if len(nodes_of) > 1 else ""
        yield f"no TFLite operator computes {nodes_of[0]}{others}: {hint(op)}"
    if not unknown:
        function.tidy()


def _lowering(node: Node) -> Lowering | None:
    return node.op.lower if isinstance(node.op, OwnOp) else LOWERINGS.get(node.op_name)
