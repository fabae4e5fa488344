"""SpaceToBatchND and BatchToSpaceND, composed of other operators for ranks that TFLite's don't support."""

import math
from collections.abc import Sequence

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.expression import Expression
from litecl.converter.lower.shape_gradients import padded
from litecl.converter.records import Dims
from litecl.interpreter.op import Op
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.space_to_batch_nd import BATCH_TO_SPACE_ND, SPACE_TO_BATCH_ND


def _lowering(op: Op, compose: Lowering) -> Lowering:
    def lower(b: Builder) -> Value | Sequence[Value]:
        rank, blocks = b.node.input(0).rank, b.node.input(1).shape
        if rank is None or blocks is None or (rank in (3, 4) and blocks == (rank - 2,)):
            return b.op(op, [b.node.input(0), b.int32(b.node.input(1)), b.int32(b.node.input(2))])
        return compose(b)

    return lower


def _space_to_batch(b: Builder) -> Value:
    block, pads = b.known(1, "block shape").tolist(), b.known(2, "paddings").tolist()
    x = padded(Expression(b, b.node.input(0)), [(0, 0), *pads, *_untouched(b, block)])
    batch, inner, rest = _parts(b, x.value, block)
    cells = [d // n for d, n in zip(inner, block, strict=True)]
    split = (batch, *(size for pair in zip(cells, block, strict=True) for size in pair), rest)
    count = len(block)
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), 2 * count + 1]
    moved = _reshaped(x, split).transpose(order)
    result = (None if batch is None else batch * math.prod(block), *cells, *b.shape(x.value)[1 + count :])
    return _reshaped(moved, result).value


def _batch_to_space(b: Builder) -> Value:
    block, crops = b.known(1, "block shape").tolist(), b.known(2, "crops").tolist()
    x = Expression(b, b.node.input(0))
    batch, inner, rest = _parts(b, x.value, block)
    count, fewer = len(block), None if batch is None else batch // math.prod(block)
    order = [count, *(i for d in range(count) for i in (count + 1 + d, d)), 2 * count + 1]
    moved = _reshaped(x, (*block, fewer, *inner, rest)).transpose(order)
    whole = [d * n for d, n in zip(inner, block, strict=True)]
    result = (fewer, *whole, *b.shape(x.value)[1 + count :])
    joined = _reshaped(moved, result)
    if not any(map(any, crops)):
        return joined.value
    begins = [0, *(begin for begin, _ in crops), *(0 for _ in _untouched(b, block))]
    kept = [d - sum(crop) for d, crop in zip(whole, crops, strict=True)]
    sizes = [-1, *kept, *(-1 for _ in _untouched(b, block))]
    return b.op(SLICE, [joined.value, b.const(begins, np.int32), b.const(sizes, np.int32)])


def _untouched(b: Builder, block: Sequence[int]) -> list[tuple[int, int]]:
    return [(0, 0)] * (len(b.shape(b.node.input(0))) - 1 - len(block))


def _parts(b: Builder, x: Value, block: Sequence[int]) -> tuple[int | None, list[int], int]:
    """Return the batch size, the dimensions that have blocks, and the number of elements in the others."""
    batch, *dims = b.shape(x)
    known = [d for d in dims if d is not None]
    if len(known) < len(dims):
        raise b.error("all its dimensions but the batch must be known; give input_shapes")
    return batch, known[: len(block)], math.prod(known[len(block) :])


def _reshaped(x: Expression, dims: Dims) -> Expression:
    return x.reshape([-1 if d is None else d for d in dims], dims)


LOWERINGS: dict[str, Lowering] = {
    "SpaceToBatchND": _lowering(SPACE_TO_BATCH_ND, _space_to_batch),
    "BatchToSpaceND": _lowering(BATCH_TO_SPACE_ND, _batch_to_space),
}
