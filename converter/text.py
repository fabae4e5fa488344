"""Prints a module, one node per line, to see what a pass did."""

from collections.abc import Iterator

from litecl.converter.graph import Function, Module, Node, Value


def describe(module: Module) -> str:
    """Return all functions as text; those that nodes own are indented below them."""
    return "\n".join(_function(module.main, "")) + "\n"


def _function(function: Function, indent: str) -> Iterator[str]:
    yield f"{indent}{function.name}({', '.join(map(_value, function.inputs))})"
    for node in function.nodes:
        yield f"{indent}  {_node(node)}"
        for body in node.bodies:
            yield from _function(body, indent + "    ")
    yield f"{indent}  return {', '.join(map(_operand, function.outputs))}".rstrip()


def _node(node: Node) -> str:
    results = ", ".join(map(_value, node.outputs))
    operands = ", ".join(_operand(value) for value in node.inputs)
    return f"{results} = {node.op_name}({operands})" if results else f"{node.op_name}({operands})"


def _value(value: Value) -> str:
    shape = "?" if value.shape is None else ",".join("?" if d is None else str(d) for d in value.shape)
    return f"{value.name}:{value.type.name.lower()}[{shape}]"


def _operand(value: Value | None) -> str:
    if value is None:
        return "-"
    if value.variable is not None:
        return f"variable {value.variable.name}"
    if value.data is None:
        return value.name
    return str(value.data.tolist()) if value.data.size <= 8 else f"constant{list(value.data.shape)}"
