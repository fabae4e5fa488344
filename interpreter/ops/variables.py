"""Resource variables: VAR_HANDLE, READ_VARIABLE and ASSIGN_VARIABLE.

A handle is a scalar object array with the variable's name, under which the executor keeps its value. It is known before
the model runs, so shape propagation follows it into subgraphs, to the nodes that read and write the variable.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Context, ControlOp, ControlRun, Inputs, NoOptions, Op, Specs
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class VarHandleOptions:
    container: str = ""
    shared_name: str = ""


@cache
def handle(name: str) -> Array:
    """Return the handle to a resource, always the same array for one name."""
    array = np.array(name, np.object_)
    array.flags.writeable = False
    return array


def _infer_handle(options: VarHandleOptions, inputs: Specs) -> list[TensorSpec]:
    return [TensorSpec(TensorType.RESOURCE, (), data=handle(_name(options)))]


def _run_handle(options: VarHandleOptions, inputs: Inputs) -> list[Array]:
    return [handle(_name(options))]


def _name(options: VarHandleOptions) -> str:
    return f"{options.container}/{options.shared_name}"


def name_of(handle: Array) -> str:
    """Return the name of a handle's resource. Raises ShapeError for an array that is not one handle."""
    if handle.size != 1:
        raise ShapeError(f"expected one handle, got {handle.size} (shape {list(handle.shape)})")
    return str(handle.item())


def check_handle(spec: TensorSpec) -> None:
    """Raise ShapeError for a tensor that is not one handle."""
    if spec.size != 1:
        raise ShapeError(f"expected one handle as {spec.name!r}, got {spec.size} (shape {list(spec.static_shape)})")


def _infer_read(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    """Leave shape and type to the model; shape propagation ensures that they are those of assigned values."""
    check_handle(require.present(inputs, 1)[0])
    return [TensorSpec(TensorType.FLOAT32, None)]


def _run_read(options: NoOptions, inputs: Inputs, context: Context) -> list[Array]:
    (variable,) = require.arrays(inputs, 1)
    return [context.read(name_of(variable))]


def _bind_read(options: NoOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> ControlRun | None:
    """Return a kernel that refuses a value of another shape or type than the model was prepared for."""
    (spec,) = outputs
    if spec.shape is None:
        return None

    def run(options: NoOptions, inputs: Inputs, context: Context) -> list[Array]:
        (value,) = _run_read(options, inputs, context)
        if value.shape != spec.shape or value.dtype != spec.dtype:
            expected, got = f"{spec.dtype}{list(spec.static_shape)}", f"{value.dtype}{list(value.shape)}"
            raise ShapeError(f"variable of tensor {spec.name!r}: expected {expected}, got {got}: allocate tensors anew")
        return [value]

    return run


def _infer_assign(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    check_handle(require.present(inputs, 2)[0])
    return []


def _run_assign(options: NoOptions, inputs: Inputs, context: Context) -> list[Array]:
    variable, value = require.arrays(inputs, 2)
    context.assign(name_of(variable), value)
    return []


VAR_HANDLE = Op("VAR_HANDLE", options=VarHandleOptions, infer=_infer_handle, run=_run_handle, pure=False)
READ_VARIABLE = ControlOp(
    "READ_VARIABLE",
    options=NoOptions,
    infer=_infer_read,
    run=_run_read,
    bind=_bind_read,
    declared_types=True,
)
ASSIGN_VARIABLE = ControlOp("ASSIGN_VARIABLE", options=NoOptions, infer=_infer_assign, run=_run_assign)
