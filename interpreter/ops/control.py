"""Operators that run subgraphs: IF, WHILE, CALL, CALL_ONCE and STABLEHLO_COMPOSITE."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Context, ControlOp, Inputs, Specs


@dataclass(frozen=True)
class IfOptions:
    then_subgraph_index: int = 0
    else_subgraph_index: int = 0


@dataclass(frozen=True)
class WhileOptions:
    cond_subgraph_index: int = 0
    body_subgraph_index: int = 0


@dataclass(frozen=True)
class CallOptions:
    subgraph: int = 0


@dataclass(frozen=True)
class CallOnceOptions:
    init_subgraph_index: int = 0


@dataclass(frozen=True)
class StableHLOCompositeOptions:
    name: str = ""
    decomposition_subgraph_index: int = 0
    composite_attributes: bytes = b""
    composite_attributes_format: int = 0
    version: int = 0


def predicate(value: Array | None, *, grown: bool = False) -> bool:
    """The one boolean that decides; of a condition that has ``grown`` with its loop the first one, as in TFLite."""
    if value is None or value.dtype != np.bool_ or value.size == 0 or (value.size > 1 and not grown):
        got = "nothing" if value is None else f"{value.dtype}{list(value.shape)}"
        raise ShapeError(f"expected one boolean as condition, got {got}")
    return bool(value.flat[0])


def _infer(options: Any, inputs: Specs) -> list[TensorSpec]:
    """Types and shapes follow from the subgraphs, which shape propagation walks."""
    return []


def _infer_while(options: WhileOptions, inputs: Specs) -> list[TensorSpec]:
    return [TensorSpec(spec.type, None) for spec in inputs if spec is not None]


def _run_if(options: IfOptions, inputs: Inputs, context: Context) -> list[Array]:
    condition, *arguments = inputs
    branch = options.then_subgraph_index if predicate(condition) else options.else_subgraph_index
    return context.call(branch, arguments)


def _run_while(options: WhileOptions, inputs: Inputs, context: Context) -> list[Array]:
    """The body runs as long as the condition holds; with no iteration the outputs are the inputs."""
    state: list[Any] = list(inputs)
    goes_on = predicate(*context.call(options.cond_subgraph_index, state))
    while goes_on:
        state = context.call(options.body_subgraph_index, state)
        goes_on = predicate(*context.call(options.cond_subgraph_index, state), grown=True)
    return state


def _run_call(options: CallOptions, inputs: Inputs, context: Context) -> list[Array]:
    return context.call(options.subgraph, inputs)


def _run_once(options: CallOnceOptions, inputs: Inputs, context: Context) -> list[Array]:
    done = f"CALL_ONCE {options.init_subgraph_index}"
    if done not in context.resources:
        context.call(options.init_subgraph_index, ())
        context.resources[done] = True
    return []


def _run_composite(options: StableHLOCompositeOptions, inputs: Inputs, context: Context) -> list[Array]:
    return context.call(options.decomposition_subgraph_index, inputs)


IF = ControlOp(
    "IF",
    options=IfOptions,
    infer=_infer,
    run=_run_if,
    callees=lambda options: (options.then_subgraph_index, options.else_subgraph_index),
)
WHILE = ControlOp(
    "WHILE",
    options=WhileOptions,
    infer=_infer_while,
    run=_run_while,
    callees=lambda options: (options.cond_subgraph_index, options.body_subgraph_index),
)
CALL = ControlOp("CALL", options=CallOptions, infer=_infer, run=_run_call, callees=lambda options: (options.subgraph,))
CALL_ONCE = ControlOp(
    "CALL_ONCE",
    options=CallOnceOptions,
    infer=_infer,
    run=_run_once,
    callees=lambda options: (options.init_subgraph_index,),
)
STABLEHLO_COMPOSITE = ControlOp(
    "STABLEHLO_COMPOSITE",
    options=StableHLOCompositeOptions,
    infer=_infer,
    run=_run_composite,
    callees=lambda options: (options.decomposition_subgraph_index,),
)
