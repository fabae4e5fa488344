"""Resource variables: VAR_HANDLE, READ_VARIABLE and ASSIGN_VARIABLE.

A handle is a scalar object array that holds the variable's name, under which ``Context.resources`` keeps its value.
"""

from dataclasses import dataclass

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Context, ControlOp, Inputs, NoOptions, Op, Specs
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class VarHandleOptions:
    container: str = ""
    shared_name: str = ""


def handle(name: str) -> Array:
    """Return a handle to a resource."""
    return np.array(name, np.object_)


def _infer_handle(options: VarHandleOptions, inputs: Specs) -> list[TensorSpec]:
    return [TensorSpec(TensorType.RESOURCE, ())]


def _run_handle(options: VarHandleOptions, inputs: Inputs) -> list[Array]:
    return [handle(f"{options.container}/{options.shared_name}")]


def _infer_read(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    require.present(inputs, 1)
    return [TensorSpec(TensorType.FLOAT32, None)]


def _run_read(options: NoOptions, inputs: Inputs, context: Context) -> list[Array]:
    (variable,) = require.arrays(inputs, 1)
    name = variable.item()
    if name not in context.resources:
        raise ModelError(f"variable {name!r} was never assigned")
    return [context.resources[name]]


def _infer_assign(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    require.present(inputs, 2)
    return []


def _run_assign(options: NoOptions, inputs: Inputs, context: Context) -> list[Array]:
    variable, value = require.arrays(inputs, 2)
    limits.replace(context.resources.get(variable.item()), value)
    context.resources[variable.item()] = value
    return []


VAR_HANDLE = Op("VAR_HANDLE", options=VarHandleOptions, infer=_infer_handle, run=_run_handle, pure=False)
READ_VARIABLE = ControlOp("READ_VARIABLE", options=NoOptions, infer=_infer_read, run=_run_read, declared_types=True)
ASSIGN_VARIABLE = ControlOp("ASSIGN_VARIABLE", options=NoOptions, infer=_infer_assign, run=_run_assign)
