"""JAX models: converts the StableHLO that ``jax2tf`` puts into a graph to TensorFlow operators.

An XlaCallModule holds a portable program. jaxlib parses it; each operator is then traced as a TensorFlow operator.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any
from uuid import uuid4

import tensorflow as tf

from litecl.converter.graph import Function, Module, Node
from litecl.converter.importer.graphdef import import_function
from litecl.converter.importer.stablehlo import elementwise, places, shapes, windows
from litecl.converter.importer.stablehlo.values import Rule, attribute, is_known, whole
from litecl.converter.importer.types import tf_type
from litecl.converter.records import Callee
from litecl.interpreter.errors import ConversionError

_IDENTITIES = ("Sharding", "annotate_device_placement", "LayoutConstraint")
_RULES: Mapping[str, Rule] = elementwise.RULES | shapes.RULES | windows.RULES | places.RULES  # type: ignore[operator]
_COMPOSITES = {"chlo.erf": tf.math.erf}


def expand_stablehlo(module: Module) -> None:
    """Turn all such nodes into calls of functions of TensorFlow operators. Raises ConversionError that names a node."""
    functions: Sequence[Function] = (module.main, *module.functions.values())
    for node in [node for function in functions for node in function.nodes if node.op == "XlaCallModule"]:
        part = _traced(node)
        name = f"stablehlo_{uuid4().hex}"
        part.main.name = name
        module.functions |= {name: part.main, **part.functions}
        node.become("PartitionedCall", node.inputs, {"f": Callee(name)})


def _traced(node: Node) -> Module:
    if node.attrs.get("function_list"):
        raise ConversionError(f"{node} calls TensorFlow from within JAX; convert the parts separately")
    operands = [node.input(i) for i in range(len(node.inputs))]
    specs = [tf.TensorSpec(value.shape, tf_type(value.type)) for value in operands]
    program = _Program(node)
    concrete = tf.function(program.main, autograph=False).get_concrete_function(*specs)
    return import_function(concrete, [f"x{i}" for i in range(len(specs))], [str(i) for i in range(len(node.outputs))])


class _Program:
    """The functions of one module, traced when called."""

    def __init__(self, node: Node) -> None:
        try:
            from jaxlib.mlir import ir
            from jaxlib.mlir.dialects import sdy, stablehlo
        except ImportError as error:
            raise ConversionError(f"{node} is a JAX program, which needs jaxlib: pip install jaxlib") from error
        self._node = node
        self._context = ir.Context()
        sdy.register_dialect(self._context)  # how a program is sharded over devices, irrelevant here
        content = node.attrs["module"].encode("utf-8", "surrogateescape")
        try:
            self._module = stablehlo.deserialize_portable_artifact(self._context, content)
        except ValueError as error:
            raise ConversionError(f"{node} is a program that this jaxlib cannot read: {error}") from error
        self._functions = {attribute(op, "sym_name"): op for op in self._module.body.operations}

    def main(self, *operands: Any) -> list[Any]:
        """Return the results of the program."""
        count = len(self._functions["main"].regions[0].blocks[0].arguments)
        platform = [tf.constant(0)] * (count - len(operands))  # selects one of several platforms
        return [tf.identity(whole(value)) for value in self._call("main", [*platform, *operands])]

    def _call(self, name: str, operands: Sequence[Any]) -> list[Any]:
        return self._block(self._functions[name].regions[0].blocks[0], operands, {})

    def _block(self, block: Any, operands: Sequence[Any], outer: Mapping[Any, Any]) -> list[Any]:
        """Return a block's results; it sees the values around it."""
        values = {**outer, **dict(zip(block.arguments, operands, strict=True))}
        for op in block.operations:
            operation = op.operation
            given = [values[operand] for operand in operation.operands]
            if operation.name in ("func.return", "stablehlo.return"):
                return given
            results = self._results(operation, given, values)
            values.update(zip(operation.results, results, strict=True))
        return []

    def _results(self, op: Any, operands: list[Any], values: Mapping[Any, Any]) -> Sequence[Any]:
        name = op.name.removeprefix("stablehlo.")
        if name in ("func.call", "call"):
            return self._call(attribute(op, "callee"), operands)
        if name == "composite":
            known = _COMPOSITES.get(attribute(op, "name"))
            return [known(*map(whole, operands))] if known else self._call(attribute(op, "decomposition"), operands)
        if name == "while":
            return self._loop(op, operands, values)
        if name in ("case", "if"):
            return self._branch(op, operands, values, is_case=name == "case")
        if name == "custom_call":
            return self._custom(op, operands)
        rule = _RULES.get(name)
        if rule is None:
            raise ConversionError(f"{self._node}: no TensorFlow operator is known for {op.name}")
        # Compute constants eagerly, outside the traced graph.
        with tf.init_scope() if all(map(is_known, operands)) else nullcontext():
            try:
                result = rule(op, *operands)
            except NotImplementedError as error:
                raise ConversionError(f"{self._node}: {op.name} {error}") from error
            except (TypeError, ValueError) as error:
                types = ", ".join(str(operand.type) for operand in op.operands)
                raise ConversionError(
                    f"{self._node}: {op.name} of {types} has no form in TensorFlow's operators; convert the operands "
                    f"to float32 or int32, of known shapes, in the JAX function (TensorFlow: {error})"
                ) from error
        results = result if isinstance(result, list) else [result]
        for value, told in zip(results, op.results, strict=True):
            _refine(value, told.type)
        return results

    def _loop(self, op: Any, operands: list[Any], values: Mapping[Any, Any]) -> Sequence[Any]:
        condition, body = (region.blocks[0] for region in op.regions)
        return tf.while_loop(  # type: ignore[no-any-return]
            lambda *state: whole(self._block(condition, state, values)[0]),
            lambda *state: [whole(value) for value in self._block(body, state, values)],
            [whole(value) for value in operands],
            parallel_iterations=1,
        )

    def _branch(self, op: Any, operands: list[Any], values: Mapping[Any, Any], *, is_case: bool) -> Sequence[Any]:
        def run(block: Any) -> Any:
            return lambda: [tf.identity(whole(value)) for value in self._block(block, [], values)]

        branches = [run(region.blocks[0]) for region in op.regions]
        choice = whole(operands[0])
        # An out-of-range case runs the last branch, in TensorFlow as in StableHLO.
        results = tf.switch_case(choice, branches) if is_case else tf.cond(choice, *branches)
        return list(results) if isinstance(results, list | tuple) else [results]

    def _custom(self, op: Any, operands: list[Any]) -> Sequence[Any]:
        target = attribute(op, "call_target_name")
        if target in _IDENTITIES or (target == "shape_assertion" and not op.results):
            return operands[: len(op.results)]
        raise ConversionError(f"{self._node}: it calls {target!r}, which is XLA's own code")


def _refine(value: Any, type_: Any) -> None:
    """Set a tensor's shape from its type, since TensorFlow may have lost it."""
    if isinstance(value, tf.Tensor) and not is_known(value) and value.shape.rank is not None:
        value.set_shape([None if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)])
