"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: interleaved grids of a tensor to batches, and back."""

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import lowest, require
from litecl.interpreter.op import Inputs, NoOptions, Op, Run, Specs
from litecl.interpreter.ops.pad import bind_zero_point

Borders = list[tuple[int, int]]


def _operands(inputs: Specs) -> tuple[TensorSpec, list[int] | None, Borders | None]:
    x, block, borders = require.present(inputs, 3)
    spatial = require.rank(x, at_least=3, at_most=4) - 2
    if block.static_shape != (spatial,) or borders.static_shape != (spatial, 2):
        raise ShapeError(
            f"expected block shape [{spatial}] and borders [{spatial}, 2], got "
            f"{list(block.static_shape)} and {list(borders.static_shape)}"
        )
    values, flat = require.integers(block), require.integers(borders)
    return x, values, None if flat is None else list(zip(flat[::2], flat[1::2], strict=True))


def _check(ok: bool, shape: Shape, block: list[int], borders: Borders) -> None:
    if not ok or min(block, default=1) < 1:
        raise ShapeError(f"shape {list(shape)} does not fit blocks {block} with borders {borders}")


def _infer_to_batch(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, block, pads = _operands(inputs)
    if block is None or pads is None:
        return [TensorSpec(x.type, None)]
    batches, *spatial, depth = x.static_shape
    padded = [before + size + after for size, (before, after) in zip(spatial, pads, strict=True)]
    fits = all(size % b == 0 for size, b in zip(padded, block, strict=True))
    _check(fits, x.static_shape, block, pads)
    sizes = [size // b for size, b in zip(padded, block, strict=True)]
    return [TensorSpec(x.type, (batches * int(np.prod(block)), *sizes, depth))]


def _to_batch(zero: int) -> Run:
    def run(options: NoOptions, inputs: Inputs) -> list[Array]:
        x, block_, pads = require.arrays(inputs, 3)
        block = block_.tolist()
        count = len(block)
        padded = np.pad(x, [(0, 0), *pads.tolist(), (0, 0)], constant_values=zero)
        batches, *spatial, depth = padded.shape
        sizes = [size // b for size, b in zip(spatial, block, strict=True)]
        split = [n for pair in zip(sizes, block, strict=True) for n in pair]
        grids = padded.reshape(batches, *split, depth)
        inner, outer = range(2, 2 * count + 1, 2), range(1, 2 * count, 2)
        moved = grids.transpose(*inner, 0, *outer, 2 * count + 1)
        return [moved.reshape(batches * int(np.prod(block)), *sizes, depth)]

    return run


def _infer_to_space(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, block, crops = _operands(inputs)
    if block is None or crops is None:
        return [TensorSpec(x.type, None)]
    batches, *spatial, depth = x.static_shape
    sizes = [size * b - sum(crop) for size, b, crop in zip(spatial, block, crops, strict=True)]
    fits = batches % max(1, int(np.prod(block))) == 0 and min(sizes) >= 0
    _check(fits, x.static_shape, block, crops)
    return [TensorSpec(x.type, (batches // int(np.prod(block)), *sizes, depth))]


def _run_to_space(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, block_, crops = require.arrays(inputs, 3)
    block = block_.tolist()
    count = len(block)
    batches, *spatial, depth = x.shape
    batches //= int(np.prod(block))
    grids = x.reshape(*block, batches, *spatial, depth)
    order = [axis for i in range(count) for axis in (count + 1 + i, i)]
    sizes = [size * b for size, b in zip(spatial, block, strict=True)]
    whole = grids.transpose(count, *order, 2 * count + 1).reshape(batches, *sizes, depth)
    kept = [slice(first, size - last) for size, (first, last) in zip(sizes, crops.tolist(), strict=True)]
    return [whole[(slice(None), *kept)].copy()]


SPACE_TO_BATCH_ND = Op(
    "SPACE_TO_BATCH_ND",
    options=NoOptions,
    infer=_infer_to_batch,
    run=_to_batch(0),
    bind=bind_zero_point(_to_batch),
    versions=range(1, 5),
    integers=MOVING,
    lowest=lowest.most(lowest.is_4d(3), lowest.integers(2, 4)),
)
BATCH_TO_SPACE_ND = Op(
    "BATCH_TO_SPACE_ND",
    options=NoOptions,
    infer=_infer_to_space,
    run=_run_to_space,
    versions=range(1, 5),
    integers=MOVING,
    lowest=lowest.most(lowest.is_4d(3), lowest.integers(2, 4)),
)
