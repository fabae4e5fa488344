"""Inlines a function in place of a node that calls it."""

from litecl.converter.graph import Function, Node


def splice(function: Function, call: Node, body: Function) -> None:
    """Move the nodes of ``body``, which nothing else owns, into the caller in place of the call."""
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
