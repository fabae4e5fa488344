"""TensorFlow's operators as TFLite's: one table, by the name of the TensorFlow operator."""

from litecl.converter.graph import Function, Node, Value
from litecl.converter.lower import (
    control,
    conv,
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
    pool,
    random,
    resize,
    shape,
    shifts,
    spectral,
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
    diagonals,
    conv,
    pool,
    matmul,
    resize,
    images,
    losses,
    random,
    detection,
    spectral,
    control,
    fake_quant,
)
LOWERINGS: dict[str, Lowering] = {name: how for family in _FAMILIES for name, how in family.LOWERINGS.items()}


def lower(function: Function) -> None:
    """Replace every TensorFlow operator by TFLite's. Raises ConversionError that lists those that cannot be."""
    unknown = {node.op: node for node in reversed(function.nodes) if _lowering(node) is None}
    if unknown:
        places = "; ".join(f"{node}" for node in reversed(unknown.values()))
        raise ConversionError(
            f"no TFLite operator computes {places}. Express it with other operators, or keep it out of the model and "
            "run it before or after"
        )
    nodes, function.nodes = function.nodes, []  # a replacement takes the place of its node: effects keep their order
    for node in nodes:
        lowering = _lowering(node)
        assert lowering is not None
        results = lowering(Builder(function, node))
        function.replace_node(node, [results] if isinstance(results, Value) else results)
    function.tidy()


def _lowering(node: Node) -> Lowering | None:
    return node.op.lower if isinstance(node.op, OwnOp) else LOWERINGS.get(node.op_name)
