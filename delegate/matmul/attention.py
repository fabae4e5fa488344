"""An attention, softmax(scale * queries keys^T + mask) values: its sizes, and the offsets of its operands."""

import math
from collections.abc import Sequence

import numpy as np

from litecl.delegate.cl_op import Call, Launch, Operand, Record, Scratch
from litecl.delegate.kit.claims import bits
from litecl.delegate.kit.strided import copy, view
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, Shape

_EXP_FLOPS = 20  # of an exponential, in additions and multiplications
_VANISHES = 110.0  # exp(-104) is 0 as a float
_LEAST_ADDED = -(2.0**97)  # a mask of twice as much, or less, hides: products of the size of either are not expected


@dataclass(frozen=True)
class AttentionOptions:
    """How the operands are laid out.

    scale: of the scores. keys_in_rows: whether keys are [.., keys, depth], not [.., depth, keys]. values_in_rows: the
    same of values, [.., keys, columns]. batch: dimensions of the scores before the last two, and seen: the same as the
    product with the values sees them, which may group them in another way. turns: permutations that make queries, keys
    and values of what is read, and what is written of the result; empty for none. On GPUs only. shown: the value of a
    mask of booleans that shows a key, whose score is ``fill`` otherwise; None for a mask of floats, which is added.
    """

    scale: float
    keys_in_rows: bool
    values_in_rows: bool
    batch: Shape
    seen: Shape
    turns: tuple[Shape, ...] = ((), (), (), ())
    shown: bool | None = None
    fill: float = 0.0


@dataclass(frozen=True)
class Attention(Record):
    """Arguments of attention.cl: of each product, ``rows`` queries and ``keys`` keys of ``depth``, and values of
    ``columns``.

    mask_rows: of the mask, which are those of the first queries, of the next ones, and so on. mask_row, mask_step:
    elements of the mask from one row, and from one key, to the next; 0 where it repeats. item_rows: queries of a
    work-item, or on a GPU of a group. shown, fill: as of ``AttentionOptions``. least: beside a score above it, the
    weight of a key that the mask hides is 0.
    """

    products: int
    rows: int
    keys: int
    depth: int
    columns: int
    has_mask: int
    mask_rows: int
    mask_row: int
    mask_step: int
    item_rows: int
    shown: int
    scale: float
    fill: float
    least: float


@dataclass(frozen=True)
class AttentionBegin(Record):
    """The offsets of the operands of a product, in elements."""

    queries: int
    keys: int
    values: int
    mask: int


def attention(call: Call, item_rows: int = 1) -> Attention:
    """Return the arguments for a call whose inputs are queries, keys, values and, where there is one, a mask."""
    o: AttentionOptions = call.options
    (rows, depth), keys = call.input(0).shape[-2:], call.input(1).shape
    shape = _mask(call)
    return Attention(
        products=math.prod(call.outputs[0].shape[:-2]),
        rows=rows,
        keys=keys[-2] if o.keys_in_rows else keys[-1],
        depth=depth,
        columns=call.outputs[0].shape[-1],
        has_mask=int(len(call.inputs) > 3),
        mask_rows=shape[-2],
        mask_row=shape[-1] if shape[-2] > 1 else 0,
        mask_step=int(shape[-1] > 1),
        item_rows=item_rows,
        shown=int(bool(o.shown)),
        scale=o.scale,
        fill=o.fill,
        least=_LEAST_ADDED if o.shown is None else o.fill + _VANISHES,
    )


def begins(call: Call, keys_size: int | None = None) -> tuple[AttentionBegin, ...]:
    """Return where the operands of every product begin, those that broadcast again and again.

    keys_size: elements of a product's keys, if they are packed.
    """
    o: AttentionOptions = call.options
    batch = call.outputs[0].shape[:-2]
    scored = [_starts(x.shape, size, o.batch) for x, size in ((call.input(0), None), (call.input(1), keys_size))]
    q, k, mask = (np.broadcast_to(starts.reshape(o.seen), batch) for starts in (*scored, mask_starts(call)))
    columns = (q, k, _starts(call.input(2).shape, None, batch), mask)
    return tuple(AttentionBegin(*(int(n) for n in row)) for row in zip(*map(np.ravel, columns), strict=True))


def mask_starts(call: Call) -> Array:
    """Return where the mask of each product of queries and keys begins, in elements."""
    return _starts(_mask(call), None, call.options.batch)


def flops(a: Attention) -> int:
    """Return the arithmetic operations."""
    return a.products * a.rows * a.keys * (2 * a.depth + 2 * a.columns + _EXP_FLOPS)


def booleans(options: AttentionOptions) -> dict[str, int]:
    """Return the macro of kernels for a mask of booleans."""
    return {} if options.shown is None else {"BOOLEANS": 1}


def values_in_rows(call: Call) -> tuple[Operand | Scratch, list[Launch]]:
    """Return the values with a key's in a row, and the launches that put them there."""
    values = call.input(2)
    if call.options.values_in_rows:
        return values, []
    columns_by_keys = view((values.spec.size // math.prod(values.shape[-2:]), *values.shape[-2:]))
    transposed, rows = Scratch(4 * values.spec.size), columns_by_keys.swapaxes(1, 2)
    to = view(rows.shape)
    return transposed, [copy(values, rows, transposed, to, bits(values.spec), call.target)]


def _mask(call: Call) -> Shape:
    """Return the shape of the mask, of at least two dimensions."""
    shape: Sequence[int] = call.input(3).shape if len(call.inputs) > 3 else ()
    return (*(1,) * (2 - len(shape)), *shape)


def _starts(shape: Shape, size: int | None, batch: Shape) -> Array:
    """Return where the matrix of each product begins, of an operand whose first dimensions broadcast to ``batch``."""
    own, size = shape[:-2], shape[-2] * shape[-1] if size is None else size
    return np.broadcast_to(np.arange(np.prod(own, dtype=np.int64)).reshape(own) * size, batch)
