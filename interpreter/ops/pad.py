"""PAD, PADV2 and MIRROR_PAD: a border around a tensor, constant or mirrored."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import lowest, require
from litecl.interpreter.op import Bind, Inputs, NoOptions, Op, Run, Specs
from litecl.interpreter.schema import MirrorPadMode, TensorType

Borders = list[tuple[int, int]]

_BORDERS = (*require.COUNTS, TensorType.INT8, TensorType.BOOL)


@dataclass(frozen=True)
class MirrorPadOptions:
    mode: MirrorPadMode = MirrorPadMode.REFLECT


def _borders(x: TensorSpec, paddings: TensorSpec) -> Borders | None:
    """Return the elements before and after each dimension; None if they are not constant."""
    rank = require.rank(x)
    if paddings.static_shape != (rank, 2):
        raise ShapeError(f"expected paddings of shape [{rank}, 2], got {list(paddings.static_shape)}")
    values = require.integers(paddings, _BORDERS)
    if values is None:
        return None
    if any(value < 0 for value in values):
        raise ShapeError(f"paddings must not be negative, got {values}")
    return list(zip(values[::2], values[1::2], strict=True))


def _padded(x: TensorSpec, borders: Borders | None) -> list[TensorSpec]:
    if borders is None:
        return [TensorSpec(x.type, None)]
    sizes = (before + size + after for size, (before, after) in zip(x.static_shape, borders, strict=True))
    return [TensorSpec(x.type, tuple(sizes))]


def _infer_pad(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, paddings = require.present(inputs, 2)
    return _padded(x, _borders(x, paddings))


def _infer_padv2(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, paddings, value = require.present(inputs, 3)
    require.same_type(x, value)
    if value.size != 1:
        raise ShapeError(f"expected one padding value, got shape {list(value.static_shape)}")
    return _padded(x, _borders(x, paddings))


def _infer_mirror(options: MirrorPadOptions, inputs: Specs) -> list[TensorSpec]:
    x, paddings = require.present(inputs, 2)
    borders = _borders(x, paddings)
    inset = 1 if options.mode == MirrorPadMode.REFLECT else 0
    for size, border in zip(x.static_shape, borders or (), strict=False):
        if max(border) > size - inset:
            raise ShapeError(f"{options.mode.name} border {border} is wider than a dimension of {size} has")
    return _padded(x, borders)


def _bordered(x: Array, paddings: Array, **how: Any) -> Array:
    """Apply ``np.pad``, which takes no scalars."""
    return np.pad(x, paddings.astype(np.int64), **how) if x.ndim else x.copy()


def _pad_with(value: int) -> Run:
    def run(options: NoOptions, inputs: Inputs) -> list[Array]:
        x, paddings = require.arrays(inputs, 2)
        return [_bordered(x, paddings, constant_values=value)]

    return run


def bind_zero_point(kernel: Callable[[int], Run]) -> Bind:
    """Return a ``bind`` that pads quantized tensors with their zero point. kernel: makes one that pads with a value."""

    def bind(options: NoOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
        quantization = outputs[0].quantization
        if quantization is None or quantization.zero_point.size != 1:
            return None
        return kernel(int(quantization.zero_point.item()))

    return bind


def _run_padv2(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, paddings, value = require.arrays(inputs, 3)
    return [_bordered(x, paddings, constant_values=value.item())]


def _run_mirror(options: MirrorPadOptions, inputs: Inputs) -> list[Array]:
    x, paddings = require.arrays(inputs, 2)
    mode: Any = "reflect" if options.mode == MirrorPadMode.REFLECT else "symmetric"
    return [_bordered(x, paddings, mode=mode)]


PAD = Op(
    "PAD",
    options=NoOptions,
    infer=_infer_pad,
    run=_pad_with(0),
    bind=bind_zero_point(_pad_with),
    versions=range(1, 7),
    integers=MOVING,
    lowest=lowest.most(lowest.beyond_4(4), lowest.integers(2, 3)),
)
PADV2 = Op(
    "PADV2",
    options=NoOptions,
    infer=_infer_padv2,
    run=_run_padv2,
    versions=range(1, 7),
    integers=MOVING,
    lowest=lowest.most(lowest.beyond_4(4), lowest.integers(2, 3)),
)
MIRROR_PAD = Op(
    "MIRROR_PAD",
    options=MirrorPadOptions,
    infer=_infer_mirror,
    run=_run_mirror,
    versions=range(1, 4),
    integers=MOVING,
    lowest=lowest.integers(2, 3),
)
