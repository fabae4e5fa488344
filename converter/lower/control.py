"""Branches, loops, variables, and in-place updates of tensors."""

from collections.abc import Callable, Sequence

import numpy as np

from litecl.converter.graph import Node, Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.binary import ADD, SUB
from litecl.interpreter.ops.compare import NOT_EQUAL
from litecl.interpreter.ops.control import IF, WHILE
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, VAR_HANDLE, VarHandleOptions
from litecl.interpreter.schema import TensorType


def _with_bodies(b: Builder, op: ControlOp, inputs: Sequence[Value | None]) -> Sequence[Value]:
    bodies, b.node.bodies = b.node.bodies, ()
    return b.add(Node(op, inputs, b.like(), op.options(), b.node.name, bodies)).outputs


def _if(b: Builder) -> Sequence[Value]:
    condition, *arguments = b.node.inputs
    assert condition is not None
    return _with_bodies(b, IF, [_boolean(b, condition), *arguments])


def _while(b: Builder) -> Sequence[Value]:
    return _with_bodies(b, WHILE, b.node.inputs)


def _boolean(b: Builder, condition: Value) -> Value:
    """Return a condition as a boolean; TensorFlow accepts numbers too."""
    if condition.type == TensorType.BOOL:
        return condition
    zero = b.const(np.zeros((), condition.type.dtype))
    return b.op(NOT_EQUAL, [condition, zero], type=TensorType.BOOL, shape=())


def _handle(b: Builder) -> Value:
    variable = b.node.input(0).variable
    if variable is None:
        raise b.error("its variable is unknown at conversion")
    return b.op(VAR_HANDLE, [], VarHandleOptions("", variable.key or variable.name), type=TensorType.RESOURCE, shape=())


def _read(b: Builder) -> Value:
    return b.op(READ_VARIABLE, [_handle(b)])


def _assign(b: Builder) -> Sequence[Value]:
    b.write(ASSIGN_VARIABLE, [_handle(b), b.node.input(1)])
    return ()


def _assign_result(op: Op) -> Callable[[Builder], Sequence[Value]]:
    def lower(b: Builder) -> Sequence[Value]:
        handle, change = _handle(b), b.node.input(1)
        variable = b.node.input(0).variable
        assert variable is not None
        shape = variable.data.shape
        before = b.op(READ_VARIABLE, [handle], type=change.type, shape=shape)
        b.write(ASSIGN_VARIABLE, [handle, b.op(op, [before, change], type=change.type, shape=shape)])
        return ()

    return lower


def lower_update_slice(b: Builder) -> Value:
    """Lower to DYNAMIC_UPDATE_SLICE."""
    return b.op(DYNAMIC_UPDATE_SLICE, b.node.inputs)


LOWERINGS: dict[str, Lowering] = {
    "If": _if,
    "While": _while,
    "ReadVariableOp": _read,
    "AssignVariableOp": _assign,
    "AssignAddVariableOp": _assign_result(ADD),
    "AssignSubVariableOp": _assign_result(SUB),
}
