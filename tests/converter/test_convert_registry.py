"""Every operator that TensorFlow calls stateful, in a model: converted, or refused by name; never folded or dropped."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python.framework import op_def_registry  # noqa: E402

from litecl.converter.graph import Function, Module, Node, Value  # noqa: E402
from litecl.converter.importer.effects import effects_of, touches_state  # noqa: E402
from litecl.converter.importer.execute import infer_shapes  # noqa: E402
from litecl.converter.importer.reader import Reader  # noqa: E402
from litecl.converter.pipeline import Pipeline, Tools  # noqa: E402
from litecl.converter.traits import Effects  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402

# They run functions, of which other tests have models.
_CALLS = ("Case", "If", "While", "StatefulPartitionedCall")
# They hand their operand on, or are a constant.
_IDENTITIES = ("CheckNumerics", "CheckNumericsV2", "GuaranteeConst", "StatelessRandomGetAlg")
_KINDS = {"int": 1, "float": 1.0, "bool": False, "string": b"x"}


def _stateful() -> list[Any]:
    definitions = (op_def_registry.get(name) for name in sorted(tf.raw_ops.__dict__) if name[0] != "_")
    return [d for d in definitions if d is not None and touches_state(d) and d.name not in _CALLS]


def _nodes(definition: Any) -> tuple[list[Any], list[str]]:
    """Return a node of the operator on constants, where there are such of its operands' types, and its arguments."""
    node = tf.compat.v1.NodeDef(name="node", op=definition.name)
    for attr in definition.attr:
        _set(node.attr[attr.name], attr)
    operands, arguments = [], []
    for argument in definition.input_arg:
        enum = argument.type or node.attr[argument.type_attr].type or tf.float32.as_datatype_enum
        for _ in range(node.attr[argument.number_attr].i if argument.number_attr else 1):
            name = f"operand{len(operands)}"
            operands.append(_operand(name, tf.as_dtype(enum)))
            node.input.append(name)
            arguments += [name] if operands[-1].op == "Placeholder" else []
    return [*operands, node], arguments


def _set(value: Any, attr: Any) -> None:
    if attr.HasField("default_value"):
        value.CopyFrom(attr.default_value)
    elif attr.type == "type":
        allowed = list(attr.allowed_values.list.type)
        wanted = tf.float32.as_datatype_enum
        value.type = wanted if not allowed or wanted in allowed else allowed[0]
    elif attr.type == "list(type)":
        value.list.type.append(tf.float32.as_datatype_enum)
    elif attr.type in _KINDS:
        field = {"int": "i", "float": "f", "bool": "b", "string": "s"}[attr.type]
        setattr(value, field, max(attr.minimum, 1) if attr.type == "int" else _KINDS[attr.type])
    elif attr.type == "shape":
        value.shape.unknown_rank = True
    elif attr.type == "func":
        value.func.name = "function"
    elif attr.type == "tensor":
        value.tensor.CopyFrom(tf.make_tensor_proto(1.0))
    else:
        value.list.SetInParent()


def _operand(name: str, dtype: Any) -> Any:
    node = tf.compat.v1.NodeDef(name=name, op="Placeholder")
    node.attr["dtype"].type = dtype.base_dtype.as_datatype_enum
    node.attr["_output_shapes"].list.shape.add()
    if dtype.base_dtype in (tf.float32, tf.int32, tf.int64, tf.bool, tf.uint8) and not dtype._is_ref_dtype:
        node.op = "Const"
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.ones(2, dtype.as_numpy_dtype)))
    return node


def _never(nodes: Sequence[Node], wanted: Sequence[Value]) -> list[Any]:
    raise AssertionError(f"folded {', '.join(map(str, nodes))}")


def _run(definition: Any, *, read: bool) -> Function:
    """Return what is left of a model that has the operator and, where it is ``read``, gives its results."""
    definitions, arguments = _nodes(definition)
    main = Reader("main", definitions).function(arguments, [])
    values = [value for node in main.nodes if node.op == definition.name for value in node.outputs]
    main.outputs = values if read else []
    module = Module(main, arguments, [str(i) for i in range(len(main.outputs))])
    Pipeline(Tools(_never, infer_shapes)).run([module])
    return main


def test_every_stateful_operator_is_converted_or_refused_by_name() -> None:
    wrong = []
    definitions = _stateful()
    assert len(definitions) > 500
    for definition in definitions:
        effects = effects_of(definition)
        assert effects is not Effects.PURE, definition.name
        for read in (True, False):
            if read and not definition.output_arg:
                continue
            try:
                main = _run(definition, read=read)
            except ConversionError as error:
                if not any(
                    part in str(error) for part in (definition.name, "'node'", "which a .tflite file cannot hold")
                ):
                    wrong.append(f"{definition.name} read={read}: refused as {error}")
                continue
            except Exception as error:
                wrong.append(f"{definition.name} read={read}: {type(error).__name__} {error}")
                continue
            if not main.nodes and (read or effects is Effects.WRITES) and definition.name not in _IDENTITIES:
                wrong.append(f"{definition.name} read={read}: dropped")
    assert not wrong, "\n".join(wrong)
