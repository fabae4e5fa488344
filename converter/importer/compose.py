"""Replaces operators that TFLite lacks by compositions written in TensorFlow.

A composition is traced for the operands' types and shapes; constant operands stay constants.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from litecl.converter.graph import Function, Node
from litecl.converter.importer.compositions import composition_of
from litecl.converter.importer.compositions.kit import Composition, Unfit
from litecl.converter.importer.graphdef import import_function
from litecl.converter.importer.types import tf_type
from litecl.converter.passes.calls.bodies import own_bodies
from litecl.converter.passes.calls.inline import inline_calls
from litecl.converter.passes.splice import splice
from litecl.converter.passes.tensorflow.precision import DOUBLES, use_float32
from litecl.converter.records import Dims
from litecl.interpreter.errors import ConversionError

_MAX_DEPTH = 8


def compose(function: Function) -> bool:
    """Replace all such operators of a function; return whether there were any.

    Raises ConversionError that names a node which its composition doesn't cover.
    """
    return _compose(function, 0)


def _compose(function: Function, depth: int) -> bool:
    replaced = False
    for node in list(function.nodes):
        composition = _composition(node)
        body = None if composition is None else _traced(node, composition)
        if body is None:
            continue
        if depth < _MAX_DEPTH:
            for part in body.walk():
                _compose(part, depth + 1)
        node.rewire([value for value in node.inputs if value is not None and value.data is None])
        splice(function, node, body)
        replaced = True
    if replaced:
        function.tidy()
    return replaced


def _composition(node: Node) -> Composition | None:
    if node.bodies or not isinstance(node.op, str):
        return None
    first = node.inputs[0] if node.inputs else None
    return composition_of(node.op, None if first is None else first.type)


def _traced(node: Node, composition: Composition) -> Function | None:
    """Return a function from a node's non-constant operands to its results; None to keep the node."""
    operands = [value for value in node.inputs if value is not None]
    specs = [tf.TensorSpec(value.shape, tf_type(value.type)) for value in operands if value.data is None]
    with context.eager_mode(), tf.device("CPU:0"):
        try:
            traced = tf.function(_applied(node, composition), autograph=False).get_concrete_function(*specs)
        except Unfit as error:
            raise ConversionError(f"{node}: {error}") from None
    if not traced.outputs:
        return None
    module = import_function(traced, [], [])
    use_float32(module, DOUBLES)
    inline_calls(module)
    own_bodies(module)
    for value, wanted in zip(module.main.outputs, node.outputs, strict=True):
        assert value.type == wanted.type, f"{node}: {value} for {wanted}"
        value.shape = _merged(value.shape, wanted.shape)
    return module.main


def _merged(traced: Dims | None, known: Dims | None) -> Dims | None:
    """Return the shape that two descriptions of one tensor give together."""
    if traced is None or known is None:
        return known if traced is None else traced
    return tuple(b if a is None else a for a, b in zip(traced, known, strict=True))


def _applied(node: Node, composition: Composition) -> Callable[..., Any]:
    def apply(*given: Any) -> Any:
        rest = iter(given)
        operands = [next(rest) if value.data is None else tf.constant(value.data) for value in node.inputs if value]
        results = composition(node.attrs, *operands)
        return [] if results is None else tf.nest.flatten(results)

    return apply
