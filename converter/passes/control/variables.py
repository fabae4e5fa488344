"""Separates variables that a model changes from those it only reads, which become constants."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from litecl.converter.graph import Function, Module, Node, Value, constant
from litecl.converter.passes.control.optimizers import write_out_steps
from litecl.converter.passes.control.partial_writes import widen_writes
from litecl.converter.records import Variable
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.schema import TensorType

_READS = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd")
_LOOKUPS = ("LookupTableFindV2", "LookupTableSizeV2")
_WRITES = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")


def changed_variables(modules: Iterable[Module]) -> set[Variable]:
    """Return the variables that some program writes and some result depends on; drop other writes."""
    mains = [module.main for module in modules]
    for main in mains:
        _bind(main)
        for function in main.walk():
            widen_writes(function)
            write_out_steps(function)
    needed = _needed(mains)
    for main in mains:
        for function in main.walk():
            for node in function.nodes:
                if node.op in _WRITES and _variable(node) not in needed:
                    function.replace_node(node, ())
            function.tidy()
    nodes = (node for main in mains for function in main.walk() for node in function.nodes)
    return {_variable(node) for node in nodes if node.op in _WRITES}


def freeze_variables(module: Module, changed: set[Variable]) -> None:
    """Replace reads of variables other than ``changed`` by constants, in every function.

    ``module.variables`` lists the others. Nodes no longer pass on handles; those that read or write a variable name it.
    """
    used: set[Variable] = set()
    for function in module.main.walk():
        _freeze(function, changed)
        function.tidy()
        used |= {_variable(node) for node in function.nodes if node.op in (*_READS, *_WRITES, *_LOOKUPS)}
    module.variables = sorted(used, key=lambda variable: variable.key)
    _drop_handles(module.main)


def _bind(function: Function) -> None:
    """Propagate variables to the handles among function arguments."""
    for node in function.nodes:
        offset = 1 if node.op == "If" else 0
        for body in node.bodies:
            for argument, value in zip(body.inputs, node.inputs[offset:], strict=True):
                argument.variable = None if value is None else value.variable
            _bind(body)
        if node.op == "While":
            for value, result in zip(node.inputs, node.outputs, strict=True):
                result.variable = None if value is None else value.variable
        elif node.op == "If":
            for result, inner in zip(node.outputs, node.bodies[0].outputs, strict=True):
                result.variable = inner.variable


def _variable(node: Node) -> Variable:
    variable = node.input(0).variable
    if variable is None:
        raise ConversionError(
            f"{node} uses a variable or table that is unknown at conversion; track it in the converted model or module"
        )
    return variable


def _needed(mains: Sequence[Function]) -> set[Variable]:
    """Return the variables that results depend on, directly or through writes to other variables."""
    needed: set[Variable] = set()
    while True:
        read = {variable for main in mains for node in _live(main, needed) for variable in _read(node)}
        if read <= needed:
            return needed
        needed |= read


def _read(node: Node) -> Iterator[Variable]:
    if node.op in _READS:
        yield _variable(node)


def _live(function: Function, needed: set[Variable]) -> Iterator[Node]:
    """Yield the nodes that compute a function's results or write needed variables, bodies included."""
    seen: set[Node] = set()
    pending = [value.producer for value in function.outputs] + [
        node for node in function.nodes if _writes_needed(node, needed)
    ]
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node
        for body in node.bodies:
            yield from _live(body, needed)
        pending += [value.producer for value in node.inputs if value is not None]


def _writes_needed(node: Node, needed: set[Variable]) -> bool:
    if node.bodies:
        return any(_writes_needed(inner, needed) for body in node.bodies for inner in body.nodes)
    return node.writes and (node.op not in _WRITES or _variable(node) in needed)


def _freeze(function: Function, changed: set[Variable]) -> None:
    frozen: dict[Variable, Value] = {}
    for node in list(function.nodes):
        if node.op == "VariableShape":
            shape = np.array(_variable(node).data.shape, node.output.type.dtype)
            function.replace_node(node, [constant(shape, node.name)])
        if node.op not in _READS:
            continue
        variable = _variable(node)
        if variable not in changed:
            value = frozen.setdefault(variable, constant(variable.data, variable.name))
        elif node.op != "ReadVariableOp":
            value = _read_before(function, node, variable)
        else:
            continue
        if node.op == "ReadVariableOp":
            function.replace_node(node, [value])
        else:
            _gather(function, node, value)


def _read_before(function: Function, node: Node, variable: Variable) -> Value:
    value = Value(TensorType.of(variable.data.dtype), variable.data.shape, node.name)
    return function.add(Node("ReadVariableOp", [node.input(0)], [value], {}, node.name), before=node).output


def _gather(function: Function, node: Node, table: Value) -> None:
    if node.op == "ResourceGatherNd":
        result = function.emit("GatherNd", [table, node.input(1)], node.output, node.name)
    else:
        axis = constant(np.array(node.attrs.get("batch_dims") or 0, np.int32))
        batch_dims = node.attrs.get("batch_dims") or 0
        result = function.emit("GatherV2", [table, node.input(1), axis], node.output, node.name, batch_dims=batch_dims)
    function.replace_node(node, [result])


def _drop_handles(function: Function) -> None:
    """Remove variable handles from operands, arguments and results; readers and writers name their variable."""
    for node in function.nodes:
        if node.bodies:
            for body in node.bodies:
                _drop_handles(body)
            _drop_from(function, node)
        elif node.inputs and node.inputs[0] is not None and node.inputs[0].variable is not None:
            handle = Value(TensorType.RESOURCE, (), node.inputs[0].name, variable=node.inputs[0].variable)
            node.rewire([handle, *node.inputs[1:]])
    function.tidy()


def _drop_from(function: Function, node: Node) -> None:
    offset = 1 if node.op == "If" else 0
    operands = [v is not None and v.variable is not None for v in node.inputs]
    results = [v.variable is not None for v in node.outputs]
    if node.op not in ("If", "While"):
        return
    node.rewire([v for v, dropped in zip(node.inputs, operands, strict=True) if not dropped])
    node.outputs = tuple(v for v, dropped in zip(node.outputs, results, strict=True) if not dropped)
    for i, body in enumerate(node.bodies):
        body.inputs = [v for v, dropped in zip(body.inputs, operands[offset:], strict=True) if not dropped]
        if node.op == "If" or i == 1:
            body.outputs = [v for v, dropped in zip(body.outputs, results, strict=True) if not dropped]
        body.tidy()
