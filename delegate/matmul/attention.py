"""Attention, softmax(scale * queries keys^T + mask) values: its sizes, and the offsets of its operands."""

import math
from collections.abc import Sequence

import numpy as np

from litecl.delegate.cl_op import Call, Launch, Operand, Record, Scratch
from litecl.delegate.kit.claims import bits
from litecl.delegate.kit.strided import copy, view
from litecl.delegate.matmul.product import starts
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, Shape

_EXP_FLOPS = 20  # additions and multiplications per exponential
_VANISHES = 110.0  # exp(-104) is 0 as a float
_LEAST_ADDED = -(2.0**97)  # a mask of twice this or less hides a key; products aren't expected to be this large


@dataclass(frozen=True)
class AttentionOptions:
    """How the operands are laid out.

    scale: of the scores. keys_in_rows: whether keys are [.., keys, depth], not [.., depth, keys]. values_in_rows: the
    same for values, [.., keys, columns]. batch: the scores' dimensions before the last two. seen: the same dimensions
    in the product with the values, which may group them differently. turns: permutations of queries, keys and values as
    they are read, and of the result before it is written; empty for none. GPUs only. shown: the value by which a
    boolean mask shows a key (other scores are ``fill``); None for a mask of floats, which is added.
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
    """Arguments of attention.cl: each product has ``rows`` queries and ``keys`` keys of ``depth``, and values of
    ``columns``.

    mask_rows: the mask's rows, which repeat over the queries. mask_row, mask_step: elements of the mask from one row,
    and from one key, to the next; 0 where it repeats. item_rows: queries of a work-item, or on a GPU of a group.
    shown, fill: see ``AttentionOptions``. least: once a score exceeds it, keys that the mask hides have weight 0.
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
    """Return where each product's operands begin; operands that broadcast repeat.

    keys_size: elements of a product's keys, if they are packed.
    """
    o: AttentionOptions = call.options
    batch = call.outputs[0].shape[:-2]
    scored = [_starts(x.shape, size, o.batch) for x, size in ((call.input(0), None), (call.input(1), keys_size))]
    q, k, mask = (np.broadcast_to(begin.reshape(o.seen), batch) for begin in (*scored, mask_starts(call)))
    columns = (q, k, _starts(call.input(2).shape, None, batch), mask)
    return tuple(AttentionBegin(*(int(n) for n in row)) for row in zip(*map(np.ravel, columns), strict=True))


def mask_starts(call: Call) -> Array:
    """Return where each product's mask begins, in elements."""
    return _starts(_mask(call), None, call.options.batch)


def flops(a: Attention) -> int:
    """Return the arithmetic operations."""
    return a.products * a.rows * a.keys * (2 * a.depth + 2 * a.columns + _EXP_FLOPS)


def booleans(options: AttentionOptions) -> dict[str, int]:
    """Return the macro of kernels for a boolean mask."""
    return {} if options.shown is None else {"BOOLEANS": 1}


def values_in_rows(call: Call) -> tuple[Operand | Scratch, list[Launch]]:
    """Return the values with one row per key, and the launches that transpose them if needed."""
    values = call.input(2)
    if call.options.values_in_rows:
        return values, []
    columns_by_keys = view((values.spec.size // math.prod(values.shape[-2:]), *values.shape[-2:]))
    transposed, rows = Scratch(4 * values.spec.size), columns_by_keys.swapaxes(1, 2)
    to = view(rows.shape)
    return transposed, [copy(values, rows, transposed, to, bits(values.spec), call.target)]


def _mask(call: Call) -> Shape:
    """Return the mask's shape, extended to at least two dimensions."""
    shape: Sequence[int] = call.input(3).shape if len(call.inputs) > 3 else ()
    return (*(1,) * (2 - len(shape)), *shape)


def _starts(shape: Shape, size: int | None, batch: Shape) -> Array:
    return starts(shape[:-2], math.prod(shape[-2:]) if size is None else size, batch)
