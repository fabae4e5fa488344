"""Turns variables into the constants that they are while a model only reads them."""

from litecl.converter.graph import Function, Node, Value, Variable, constant
from litecl.interpreter.errors import ConversionError


def freeze_variables(function: Function) -> None:
    """Replaces every read by the variable's value; writes to what is never read are dropped.

    Raises ConversionError where the model reads a variable that it also writes.
    """
    writes = [node for node in function.nodes if node.is_effect]
    for node in writes:
        node.rewire(node.inputs[:1])
    written = {node.input(0).variable: node for node in writes}
    function.nodes = [node for node in function.nodes if node not in written.values()]
    function.tidy()
    frozen: dict[Variable, Value] = {}
    for node in function.nodes:
        if node.op != "ReadVariableOp":
            continue
        variable = _variable(node)
        if variable in written:
            raise ConversionError(
                f"{written[variable]} writes the variable {variable.name!r}, which {node} reads: the model keeps state "
                "between calls; pass the state in and out as arguments instead"
            )
        value = frozen.setdefault(variable, constant(variable.data, variable.name))
        function.replace_node(node, [value])
    function.tidy()


def _variable(node: Node) -> Variable:
    variable = node.input(0).variable
    if variable is None:
        raise ConversionError(f"{node} reads a variable that is not known when the model is converted")
    return variable
