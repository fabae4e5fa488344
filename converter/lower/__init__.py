"""TensorFlow's operators as TFLite's: one table, by the name of the TensorFlow operator."""

from litecl.converter.graph import Function, Node, Value
from litecl.converter.lower import control, conv, elementwise, fake_quant, index, matmul, pool, resize, shape
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.records import OwnOp
from litecl.interpreter.errors import ConversionError

LOWERINGS: dict[str, Lowering] = {
    **elementwise.LOWERINGS,
    **shape.LOWERINGS,
    **index.LOWERINGS,
    **conv.LOWERINGS,
    **pool.LOWERINGS,
    **matmul.LOWERINGS,
    **resize.LOWERINGS,
    **control.LOWERINGS,
    **fake_quant.LOWERINGS,
}


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
