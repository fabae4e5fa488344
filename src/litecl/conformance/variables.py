"""A resource variable that a subgraph sets once, and that the model returns and then replaces, of several types.

No node computes anything, so that devices have nothing to run.
"""

from functools import partial

import numpy as np

from litecl.interpreter.graph import Array, Model, Node, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.control import CALL_ONCE, CallOnceOptions
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, VAR_HANDLE, VarHandleOptions
from litecl.interpreter.schema import TensorType
from litecl.perf.models.build import Graph, model
from litecl.verify.check import Check, Step
from litecl.verify.scenarios.scenario import scenario

_SHAPE = (3, 25)
_TYPES = TensorType.FLOAT32, TensorType.INT8, TensorType.INT16, TensorType.INT32
_OPS = CALL_ONCE, VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE


def _replaced(type_: TensorType) -> Model:
    g, first = Graph(), Graph("first")
    x = g.input(_SHAPE, type_)
    g.nodes.append(Node(CALL_ONCE, (), (), CallOnceOptions(1)))
    _assign(first, _handle(first), first.const(_values(type_, 0)))
    kept = _handle(g)
    before = _read(g, kept, type_)
    _assign(g, kept, x)
    return model(g.build(before, _read(g, kept, type_)), first.build())


def _handle(g: Graph) -> int:
    return g.node(VAR_HANDLE, (), [TensorSpec(TensorType.RESOURCE, ())], VarHandleOptions("", "kept"))[0]


def _read(g: Graph, handle: int, type_: TensorType) -> int:
    return g.node(READ_VARIABLE, (handle,), [TensorSpec(type_, _SHAPE)], NoOptions())[0]


def _assign(g: Graph, handle: int, value: int) -> None:
    g.nodes.append(Node(ASSIGN_VARIABLE, (handle, value), (), NoOptions()))


def _values(type_: TensorType, seed: int) -> Array:
    values = np.random.default_rng(seed).normal(0, 40, _SHAPE)
    return values.clip(-128, 127).astype(type_.dtype)


def _steps(type_: TensorType) -> list[Step]:
    """Return invokes without a reset, which sets variables to 0 in tflite-micro and leaves them in LiteRT."""
    return [Step([_values(type_, seed)]) for seed in range(1, 4)]


CHECKS: tuple[Check, ...] = tuple(
    scenario(f"set once, {type_.name}", op.name, partial(_replaced, type_), partial(_steps, type_))
    for op in _OPS
    for type_ in _TYPES
)
