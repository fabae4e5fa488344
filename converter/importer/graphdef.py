"""Imports a ConcreteFunction into the converter's graph.

Its GraphDef has a shape for every tensor. Captured variables are bound as numpy arrays, so that no weight passes
through a protobuf message, which may not exceed 2 GiB.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import tensorflow as tf

from litecl.converter.graph import Function, Module, Value
from litecl.converter.importer.reader import Reader
from litecl.converter.importer.types import attribute, proto_dims, tensor_type
from litecl.converter.records import Table, Variable
from litecl.interpreter.errors import ConversionError


def import_function(concrete: Any, input_names: Sequence[str], output_names: Sequence[str]) -> Module:
    """Return a module whose entry point is a ConcreteFunction, with captures bound to their present values."""
    graph = concrete.graph
    definition = graph.as_graph_def(add_shapes=True)
    called = list(_reachable(definition))
    signatures = {function.signature.name: function.signature for function in called}
    main = Reader("main", definition.node, signatures).function(
        [tensor.name for tensor in graph.inputs], [tensor.name for tensor in graph.outputs]
    )
    captures = _captures(graph)
    arguments = []
    for tensor, value in zip(graph.inputs, main.inputs, strict=True):
        if tensor.name in captures:
            _bind(value, captures[tensor.name], definition)
        else:
            arguments.append(value)
    main.inputs = arguments
    for node in main.nodes:
        if node.op in ("VariableV2", "Variable"):
            node.output.variable = Variable(node.name, _value(concrete, node.output.name), f"{id(graph)}/{node.name}")
        elif node.op == "HashTableV2":
            node.output.variable = _table_of_graph(concrete, node.output.name)
    functions = {f.signature.name: _library_function(f, signatures) for f in called}
    return Module(main, list(input_names), list(output_names), functions)


def _reachable(definition: Any) -> Iterator[Any]:
    """Yield the functions that nodes call, by attribute or by name, in the graph or in each other.

    A library also holds others: gradients, and Keras 2's GPU variants.
    """
    library = {function.signature.name: function for function in definition.library.function}
    seen: set[str] = set()
    pending: list[Any] = list(definition.node)
    while pending:
        node = pending.pop()
        callees = [callee for attr in node.attr.values() for callee in _callees(attr)]
        for name in (node.op, *(callee.name for callee in callees)):
            if name in library and name not in seen:
                seen.add(name)
                pending += library[name].node_def
                yield library[name]


def _callees(attr: Any) -> Sequence[Any]:
    return [attr.func] if attr.WhichOneof("value") == "func" else attr.list.func


def with_own_functions(definition: Any) -> Any:
    """Return a GraphDef whose functions have names unique in this process.

    TensorFlow has one table of functions per process and rejects duplicate names.
    """
    names = {f.signature.name: f"{f.signature.name}_{uuid4().hex}" for f in definition.library.function}
    nodes = [*definition.node, *(node for f in definition.library.function for node in f.node_def)]
    for node in nodes:
        node.op = names.get(node.op, node.op)
        for attr in node.attr.values():
            for callee in _callees(attr):
                callee.name = names.get(callee.name, callee.name)
    for function in definition.library.function:
        function.signature.name = names[function.signature.name]
    for gradient in definition.library.gradient:
        gradient.function_name = names.get(gradient.function_name, gradient.function_name)
        gradient.gradient_func = names.get(gradient.gradient_func, gradient.gradient_func)
    return definition


def _value(concrete: Any, name: str) -> Any:
    """Return the present value of a TensorFlow 1 variable, which lives as long as the function that reads it."""
    with concrete.graph.as_default():
        value = tf.identity(concrete.graph.as_graph_element(f"{name}:0"))
    try:
        return concrete.prune([], value)().numpy()
    except tf.errors.FailedPreconditionError as error:
        raise ConversionError(
            f"the variable {name!r} has no value: convert a SavedModel, or a graph that was frozen with values"
        ) from error


def _table_of_graph(concrete: Any, name: str) -> Table | None:
    """Return a TensorFlow 1 table that a node makes and the loader has filled; None if nothing has."""
    with concrete.graph.as_default():
        handle = concrete.graph.as_graph_element(f"{name}:0")
        types = (handle.op.get_attr("key_dtype"), handle.op.get_attr("value_dtype"))
        content = tf.raw_ops.LookupTableExportV2(table_handle=handle, Tkeys=types[0], Tvalues=types[1])
    try:
        keys, values = concrete.prune([], list(content))()
    except tf.errors.OpError:
        return None
    return Table(name, keys.numpy(), f"table/{id(concrete.graph)}/{name}", values=values.numpy())


def _captures(graph: Any) -> dict[str, Any]:
    """Return captured objects, by the name of the tensor that represents them inside."""
    variables = {id(variable.handle): variable for variable in graph.variables}
    return {inner.name: variables.get(id(outer), outer) for outer, inner in graph.captures}


def _bind(value: Value, captured: Any, definition: Any) -> None:
    if hasattr(captured, "handle"):
        key = getattr(captured, "_unique_id", captured.name)
        value.variable = Variable(captured.name, captured.numpy(), key)
    elif captured.dtype == tf.resource:
        value.variable = _table(value.name, captured, definition)
    elif captured.dtype == tf.variant:
        raise ConversionError(
            f"the model captures {value.name!r}, of a type that a .tflite file cannot hold (a list, a data set or "
            "a ragged tensor as a variant); make it inside the converted function, or keep it out"
        )
    else:
        data = captured.numpy()
        value.data = np.array(data, object) if isinstance(data, bytes) else np.asarray(data)


def _table(name: str, handle: Any, definition: Any) -> Table:
    """Return the content of a lookup table, whose types the lookups tell."""
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    lookups = [node for node in nodes if node.op == "LookupTableFindV2"]
    for keys, values in dict.fromkeys((node.attr["Tin"].type, node.attr["Tout"].type) for node in lookups):
        if not _has_types(handle, keys, values):
            continue
        content = tf.raw_ops.LookupTableExportV2(table_handle=handle, Tkeys=keys, Tvalues=values)
        return Table(name, content.keys.numpy(), f"table/{id(handle)}", values=content.values.numpy())
    raise ConversionError(
        f"the model captures the resource {name!r} (an iterator, a table without content or an untracked variable), "
        "which a .tflite file cannot hold; keep it out of the converted function"
    )


def _has_types(handle: Any, keys: int, values: int) -> bool:
    """Return whether a resource is a table of these types: exporting with wrong types crashes the process."""
    none, default = tf.zeros([0], tf.as_dtype(keys)), tf.zeros([], tf.as_dtype(values))
    try:
        tf.raw_ops.LookupTableFindV2(table_handle=handle, keys=none, default_value=default)
    except tf.errors.OpError as error:
        # Types are compared before shapes, so a table of vectors matches here.
        return "default value" in error.message
    return True


def _library_function(definition: Any, signatures: Mapping[str, Any]) -> Function:
    arguments = definition.signature.input_arg
    reader = Reader(definition.signature.name, definition.node_def, signatures)
    for index, argument in enumerate(arguments):
        attrs = definition.arg_attr[index].attr if index in definition.arg_attr else {}
        shapes = attrs["_output_shapes"].list.shape if "_output_shapes" in attrs else ()
        shape = proto_dims(next(iter(shapes))) if len(shapes) else None
        reader.values[argument.name] = Value(tensor_type(argument.type, argument.name), shape, argument.name)
    results = [definition.ret[result.name] for result in definition.signature.output_arg]
    function = reader.function([argument.name for argument in arguments], results)
    function.attrs = {name: attribute(attr) for name, attr in definition.attr.items()}
    return function
