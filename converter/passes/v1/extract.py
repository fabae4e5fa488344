"""Extracts a function from another: everything that given values depend on, up to values that become arguments."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from litecl.converter.graph import Function, Node, Value
from litecl.interpreter.errors import ConversionError

_LOOP_OPS = frozenset({"Enter", "Exit", "NextIteration", "LoopCond", "RefEnter", "RefExit", "RefNextIteration"})


def function_of(
    name: str,
    outer: Sequence[Value | None],
    inner: Sequence[Sequence[Value]],
    results: Sequence[Value],
    effects: Sequence[Node] = (),
) -> Function:
    """Return the function that computes ``results`` and has ``effects``; nodes are in the order copied.

    Argument i is like ``outer[i]`` and stands for every value of ``inner[i]``.
    """
    inputs = [replace(v, name=f"{name}/{v.name}", data=None, producer=None, users=[]) for v in outer if v is not None]
    arguments = {value: inputs[i] for i, values in enumerate(inner) for value in values}
    extraction = _Extraction(name, arguments)
    for value in (*results, *(v for node in effects for v in node.inputs if v is not None)):
        extraction.add(value)
    for node in effects:
        extraction.copy(node)
    return Function(name, inputs, [extraction.copies[value] for value in results], extraction.nodes)


class _Extraction:
    def __init__(self, name: str, arguments: Mapping[Value, Value]) -> None:
        self.name = name
        self.copies: dict[Value, Value] = dict(arguments)
        self.nodes: list[Node] = []

    def add(self, root: Value) -> None:
        """Copy a value with its dependencies."""
        stack = [root]
        while stack:
            value = stack[-1]
            node = value.producer
            if value in self.copies or node is None:
                self.copies.setdefault(value, replace(value, users=[]))
                stack.pop()
                continue
            if node.op in _LOOP_OPS:
                raise ConversionError(
                    f"{node}: this loop of TensorFlow 1 reads a value of another ({self.name!r}); build the model with "
                    "tf.compat.v1.enable_control_flow_v2()"
                )
            missing = [v for v in node.inputs if v is not None and v not in self.copies]
            if missing:
                stack += missing
                continue
            stack.pop()
            self.copy(node)

    def copy(self, node: Node) -> None:
        """Copy a node whose operands are already copied."""
        if any(value in self.copies for value in node.outputs):
            return
        outputs = [replace(value, producer=None, users=[]) for value in node.outputs]
        self.copies.update(zip(node.outputs, outputs, strict=True))
        self.nodes.append(node.copied(self.copies))


def order_like(function: Function, body: Function) -> None:
    """Order the copied nodes as in their original function, so that effects keep their order."""
    position = {node.name: i for i, node in enumerate(function.nodes)}
    body.nodes.sort(key=lambda node: position.get(node.name, 0))
    body.tidy()
