"""TensorFlow's operators as TFLite's: one table, by the name of the TensorFlow operator."""

from litecl.converter.graph import Function, Value
from litecl.converter.lower import composites, control, conv, elementwise, index, lstm, matmul, pool, resize, shape
from litecl.converter.lower.builder import Builder, Lowering
from litecl.interpreter.errors import ConversionError

LOWERINGS: dict[str, Lowering] = {
    **elementwise.LOWERINGS,
    **shape.LOWERINGS,
    **index.LOWERINGS,
    **conv.LOWERINGS,
    **pool.LOWERINGS,
    **matmul.LOWERINGS,
    **resize.LOWERINGS,
    **lstm.LOWERINGS,
    **control.LOWERINGS,
    **composites.LOWERINGS,
}


def lower(function: Function) -> None:
    """Replaces every TensorFlow operator by TFLite's. Raises ConversionError that lists those that cannot be."""
    unknown = {node.op: node for node in reversed(function.nodes) if node.op not in LOWERINGS}
    if unknown:
        places = "; ".join(f"{node}" for node in reversed(unknown.values()))
        raise ConversionError(
            f"no TFLite operator computes {places}. Express it with other operators, or keep it out of the model and "
            "run it before or after"
        )
    nodes, function.nodes = function.nodes, []  # what replaces a node stands where it stood: effects keep their order
    for node in nodes:
        results = LOWERINGS[str(node.op)](Builder(function, node))
        function.replace_node(node, [results] if isinstance(results, Value) else results)
    function.tidy()
