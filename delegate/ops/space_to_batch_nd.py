"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: strided copies, through a padded image where there are borders."""

from litecl.delegate.cl_op import Call, ClOp, Scratch, Step
from litecl.delegate.kit.claims import bits, integers, moves_by
from litecl.delegate.kit.strided import box, copy, fill, view
from litecl.delegate.quantized.integers import padding
from litecl.interpreter.graph import Array, Shape
from litecl.interpreter.ops.space_to_batch_nd import BATCH_TO_SPACE_ND, SPACE_TO_BATCH_ND


def _grids(images: int, spatial: list[int], depth: int, block: list[int]) -> Array:
    """Return a view of [images, *spatial, depth] in the order of batches: [*block, images, *spatial / block, depth]."""
    count = len(block)
    split = [size for length, b in zip(spatial, block, strict=True) for size in (length // b, b)]
    return view((images, *split, depth)).transpose(
        *range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), 2 * count + 1
    )


def _inside(shape: Shape, borders: list[int]) -> Array:
    """Return a view of an image [n, *spatial, c] without its borders (before and after, for every spatial
    dimension).
    """
    pairs = zip(shape[1:-1], borders[::2], borders[1::2], strict=True)
    return box(view(shape), [slice(None), *(slice(before, size - after) for size, before, after in pairs)])


def _lower_to_batch(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    block, pads = integers(call.input(1).data), integers(call.input(2).data)
    images, *spatial, depth = x.shape
    padded = [b + size + a for size, b, a in zip(spatial, pads[::2], pads[1::2], strict=True)]
    at = _grids(images, padded, depth, block)
    kind = bits(x.spec)
    if not any(pads):
        return [copy(x, at, y, view(at.shape), kind, call.target)]
    border = Scratch(at.size * x.spec.dtype.itemsize)
    return [
        fill(border, at.size, padding(x.spec), kind, call.target),
        copy(x, view(x.shape), border, _inside((images, *padded, depth), pads), kind, call.target),
        copy(border, at, y, view(at.shape), kind, call.target),
    ]


def _lower_to_space(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    block, crops = integers(call.input(1).data), integers(call.input(2).data)
    images, *kept, depth = y.shape
    whole = [b + size + a for size, b, a in zip(kept, crops[::2], crops[1::2], strict=True)]
    to = _grids(images, whole, depth, block)
    kind = bits(x.spec)
    if not any(crops):
        return [copy(x, view(to.shape), y, to, kind, call.target)]
    uncropped = Scratch(to.size * x.spec.dtype.itemsize)
    return [
        copy(x, view(to.shape), uncropped, to, kind, call.target),
        copy(uncropped, _inside((images, *whole, depth), crops), y, view(y.shape), kind, call.target),
    ]


CL_OPS = (
    ClOp(SPACE_TO_BATCH_ND, claim=moves_by(block=1, paddings=2), lower=_lower_to_batch),
    ClOp(BATCH_TO_SPACE_ND, claim=moves_by(block=1, crops=2), lower=_lower_to_space),
)
