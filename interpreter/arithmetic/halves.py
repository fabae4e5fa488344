"""Operators on FLOAT16 tensors: their float32 kernels compute in float32, and the results are rounded once."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from litecl.interpreter.arithmetic import exact
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.schema import TensorType

_REAL = (TensorType.FLOAT32, TensorType.FLOAT16)


def also(op: Op, *, x: int = 0, loose: Collection[int] = ()) -> Op:
    """Return an operator of float32 tensors that takes FLOAT16 ones too.

    x: the input whose type the float outputs have, and all float inputs except those at ``loose`` (a bias).
    Raises ShapeError for others beside halves, and for integers with scales, which no kernel multiplies by halves.
    """

    def infer(options: object, inputs: Specs) -> list[TensorSpec]:
        if not any(map(is_half, inputs)):
            return op.infer(options, inputs)
        (main,) = require.at(inputs, (x,))
        require.types(main, _REAL)
        for i, spec in enumerate(inputs):
            if spec is not None and _clashes(main, spec, i in loose):
                raise ShapeError(f"input {i} ({spec.name!r}): expected type {main.type.name}, got {spec.type.name}")
        return [_of_type(spec, main.type) for spec in op.infer(options, list(map(_widened, inputs)))]

    def bind(options: object, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
        if not any(map(is_half, inputs)):
            return op.bind(options, inputs, outputs) if op.bind else None
        wide = [_of_type(spec, TensorType.FLOAT32) for spec in outputs]
        run = op.bind(options, list(map(_widened, inputs)), wide) if op.bind else None
        return _rounded(run or op.run, inputs, outputs)

    return replace(op, infer=infer, bind=bind)


def is_half(spec: TensorSpec | None) -> bool:
    """Return whether a tensor is FLOAT16."""
    return spec is not None and spec.type == TensorType.FLOAT16


def _clashes(x: TensorSpec, spec: TensorSpec, loose: bool) -> bool:
    if is_half(x) and require.is_quantized(spec):
        return True
    return spec.type in _REAL and spec.type != x.type and not loose


def _widened(spec: TensorSpec | None) -> TensorSpec | None:
    if spec is None or not is_half(spec):
        return spec
    return replace(spec, type=TensorType.FLOAT32, data=None if spec.data is None else spec.data.astype(np.float32))


def _of_type(spec: TensorSpec, type_: TensorType) -> TensorSpec:
    return replace(spec, type=type_) if spec.type in _REAL else spec


def _rounded(run: Run, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    """Return the kernel on inputs of these types; values beyond the largest half become infinite."""
    widen = [exact.once([spec], _wide) if is_half(spec) else lambda value: value for spec in inputs]

    def rounded(options: object, values: Inputs) -> list[Array]:
        wide = [function(value) for function, value in zip(widen, values, strict=True)]
        with np.errstate(over="ignore"):
            return [result.astype(spec.dtype) for result, spec in zip(run(options, wide), outputs, strict=False)]

    return rounded


def _wide(value: Array | None) -> Array | None:
    return None if value is None else value.astype(np.float32)
