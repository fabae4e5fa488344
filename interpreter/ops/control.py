"""Operators that run subgraphs: IF, WHILE, CALL, CALL_ONCE and STABLEHLO_COMPOSITE."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.kit.specs import common, same
from litecl.interpreter.op import Context, ControlOp, Inputs, Shapes, Specs
from litecl.interpreter.options import flexbuffer_map
from litecl.interpreter.schema import TensorType


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

    def attributes(self) -> dict[str, Any]:
        """Return the attributes by name. Raises ModelError if the bytes hold something else."""
        data = bytes(self.composite_attributes)
        return flexbuffer_map(data, "composite attributes") if data else {}


def predicate(value: Array | None, *, grown: bool = False) -> bool:
    """Return the boolean that decides; for a condition that has ``grown`` with its loop the first one, as in TFLite."""
    if value is None or value.dtype != np.bool_ or value.size == 0 or (value.size > 1 and not grown):
        got = "nothing" if value is None else f"{value.dtype}{list(value.shape)}"
        raise ShapeError(f"expected one boolean as condition, got {got}")
    return bool(value.flat[0])


def infer_nothing(options: Any, inputs: Specs) -> list[TensorSpec]:
    """Return no outputs: they follow from subgraphs, through ``propagate``."""
    return []


def _infer_while(options: WhileOptions, inputs: Specs) -> list[TensorSpec]:
    return [TensorSpec(spec.type, None) for spec in inputs if spec is not None]


def propagate_branches(branches: Sequence[int], inputs: Specs, shapes: Shapes) -> list[TensorSpec]:
    """Return what all branches' outputs have in common; the first input chooses, the others are the branches'."""
    given = require.present(inputs, len(inputs))[1:]
    results = [shapes.call(branch, given) for branch in branches]
    for branch, outputs in zip(branches, results, strict=True):
        _same_types(branch, outputs, results[0], f"as of subgraph {branches[0]}")
    return [reduce(common, outputs) for outputs in zip(*results, strict=True)]


def _propagate_if(options: IfOptions, inputs: Specs, shapes: Shapes) -> list[TensorSpec]:
    return propagate_branches((options.then_subgraph_index, options.else_subgraph_index), inputs, shapes)


def _propagate_while(options: WhileOptions, inputs: Specs, shapes: Shapes) -> list[TensorSpec]:
    """Widen what is known of the variables until an iteration changes nothing; only constant ones keep their values."""
    body = options.body_subgraph_index
    given = require.present(inputs, len(inputs))
    constant = shapes.handed_on(body)
    _same_count(body, len(constant), len(given))
    state = [spec if fixed else replace(spec, data=None) for spec, fixed in zip(given, constant, strict=True)]
    while True:
        shapes.call(options.cond_subgraph_index, state)
        results = shapes.call(body, state)
        _same_types(body, results, state, "as of the loop variable")
        widened = [
            spec if fixed else replace(common(spec, result), data=None)
            for spec, result, fixed in zip(state, results, constant, strict=True)
        ]
        if all(map(same, state, widened)):
            return state
        state = widened


def _propagate_call(options: CallOptions, inputs: Specs, shapes: Shapes) -> Sequence[TensorSpec]:
    return shapes.call(options.subgraph, require.present(inputs, len(inputs)))


def _propagate_once(options: CallOnceOptions, inputs: Specs, shapes: Shapes) -> Sequence[TensorSpec]:
    return shapes.call(options.init_subgraph_index, require.present(inputs, len(inputs)))


def _propagate_composite(options: StableHLOCompositeOptions, inputs: Specs, shapes: Shapes) -> Sequence[TensorSpec]:
    return shapes.call(options.decomposition_subgraph_index, require.present(inputs, len(inputs)))


def propagate_body(body: int, type_: TensorType, shapes: Shapes) -> None:
    """Prepare a subgraph that combines two elements for calls with arrays of any shape.

    Raises ModelError if it returns anything but one tensor of the type.
    """
    elements = TensorSpec(type_, None)
    _same_types(body, shapes.call(body, [elements, elements]), [elements], "as of its inputs")


def _same_types(subgraph: int, got: Sequence[TensorSpec], expected: Sequence[TensorSpec], why: str) -> None:
    _same_count(subgraph, len(got), len(expected))
    for index, (output, wanted) in enumerate(zip(got, expected, strict=True)):
        if output.type != wanted.type:
            where = f"output {index} of subgraph {subgraph} ({output.name!r})"
            raise ModelError(f"{where}: expected type {wanted.type.name}, {why}, got {output.type.name}")


def _same_count(subgraph: int, got: int, expected: int) -> None:
    if got != expected:
        raise ModelError(f"expected {expected} outputs of subgraph {subgraph}, got {got}")


def _run_if(options: IfOptions, inputs: Inputs, context: Context) -> list[Array]:
    condition, *arguments = inputs
    branch = options.then_subgraph_index if predicate(condition) else options.else_subgraph_index
    return context.call(branch, arguments)


def _run_while(options: WhileOptions, inputs: Inputs, context: Context) -> list[Array]:
    """Run the body as long as the condition holds; without iterations the outputs are the inputs."""
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
    infer=infer_nothing,
    run=_run_if,
    propagate=_propagate_if,
    callees=lambda options: (options.then_subgraph_index, options.else_subgraph_index),
)
WHILE = ControlOp(
    "WHILE",
    options=WhileOptions,
    infer=_infer_while,
    run=_run_while,
    propagate=_propagate_while,
    callees=lambda options: (options.cond_subgraph_index, options.body_subgraph_index),
)
CALL = ControlOp(
    "CALL",
    options=CallOptions,
    infer=infer_nothing,
    run=_run_call,
    propagate=_propagate_call,
    callees=lambda options: (options.subgraph,),
)
CALL_ONCE = ControlOp(
    "CALL_ONCE",
    options=CallOnceOptions,
    infer=infer_nothing,
    run=_run_once,
    propagate=_propagate_once,
    callees=lambda options: (options.init_subgraph_index,),
)
STABLEHLO_COMPOSITE = ControlOp(
    "STABLEHLO_COMPOSITE",
    options=StableHLOCompositeOptions,
    infer=infer_nothing,
    run=_run_composite,
    propagate=_propagate_composite,
    callees=lambda options: (options.decomposition_subgraph_index,),
)
