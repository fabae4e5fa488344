"""Puts the bodies of called functions in place of their calls; functions that stand for an operation stay whole."""

from collections.abc import Mapping

from litecl.converter.composites import composite_of
from litecl.converter.graph import Callee, Function, Module, Node
from litecl.interpreter.errors import ConversionError

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_MAX_DEPTH = 100


def inline_calls(module: Module) -> None:
    """Inlines every call in every function; a composite becomes a node whose operator is the composite's name."""
    for function in (module.main, *module.functions.values()):
        _inline(function, module.functions, 0)


def _inline(function: Function, library: Mapping[str, Function], depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ConversionError(f"function {function.name!r} calls itself, which a .tflite file cannot express")
    nodes, function.nodes = function.nodes, []
    for node in nodes:
        callee = _callee(node, library)
        if callee is None:
            function.add(node)
            continue
        composite = composite_of(callee)
        if composite is not None:
            node.op, node.options = composite.name, composite.attrs
            function.add(node)
            continue
        _inline(callee, library, depth + 1)
        splice(function, node, callee.clone())


def _callee(node: Node, library: Mapping[str, Function]) -> Function | None:
    if node.op in _CALLS:
        target = node.attrs["f"]
        assert isinstance(target, Callee)
        return library[target.name]
    return library.get(node.op) if isinstance(node.op, str) else None


def splice(function: Function, call: Node, body: Function) -> None:
    """Moves the nodes of ``body``, which nothing else owns, into the caller in place of the call."""
    for argument, value in zip(body.inputs, call.inputs, strict=True):
        assert value is not None
        body.replace(argument, value)
    for node in body.nodes:
        node.name = _within(call, node.name)
        for value in node.outputs:
            value.name = _within(call, value.name)
        function.add(node)
    function.replace_node(call, body.outputs)


def _within(call: Node, name: str) -> str:
    return f"{call.name}/{name}"
