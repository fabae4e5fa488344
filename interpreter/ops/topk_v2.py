"""TOPK_V2: the k largest elements of the last axis in descending order, and their positions."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import lowest, require
from litecl.interpreter.op import Inputs, NoOptions, Op, Run, Specs
from litecl.interpreter.schema import TensorType


def _infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, k = require.present(inputs, 2)
    require.rank(x, at_least=1)
    count = require.integer(k)
    if count is None:
        return [TensorSpec(x.type, None), TensorSpec(TensorType.INT32, None)]
    *outer, size = x.static_shape
    if not 0 <= count <= size:
        raise ShapeError(f"k {count} out of range for dimension {size}")
    return [TensorSpec(x.type, (*outer, count)), TensorSpec(TensorType.INT32, (*outer, count))]


def _run(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, k = require.arrays(inputs, 2)
    # A stable sort of the reversed axis, reversed again, puts the first of equal elements first.
    backwards = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    order = (x.shape[-1] - 1 - backwards)[..., : int(k.item())]
    return [np.take_along_axis(x, order, -1), order.astype(np.int32)]


def _bind(options: NoOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    """Return a kernel with positions in the declared type, which may be int16."""
    if len(outputs) < 2 or outputs[1].type == TensorType.INT32:
        return None

    def run(options: NoOptions, inputs: Inputs) -> list[Array]:
        values, indices = _run(options, inputs)
        return [values, indices.astype(outputs[1].dtype)]

    return run


TOPK_V2 = Op(
    "TOPK_V2",
    options=NoOptions,
    infer=_infer,
    run=_run,
    bind=_bind,
    versions=range(1, 4),
    declared_types=True,
    integers=MOVING,
    lowest=lowest.integers(2, 3),
)
