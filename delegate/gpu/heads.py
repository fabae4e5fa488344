"""Layouts of attention's operands on a GPU, which reads and writes tokens in the layers' order.

A layer writes all heads of a token side by side, [.., tokens, heads, depth]; attention reads all tokens of a head,
[.., heads, tokens, depth]. The transposition is part of attention (the pass ``heads``).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litecl.delegate.cl_op import Call, Lowering, Operand, Record, Step
from litecl.delegate.kit.claims import bits
from litecl.delegate.kit.strided import copy, view
from litecl.delegate.matmul.attention import Attention, AttentionOptions, mask_starts
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, Shape


@dataclass(frozen=True)
class LocalAttention(Record):
    """Arguments of attention_local.cl: elements from a query, a key, a value and a result to the next, and from one
    element of a key and of a value to the next.
    """

    sizes: Attention
    query_step: int
    key_step: int
    depth_step: int
    value_step: int
    column_step: int
    out_step: int


@dataclass(frozen=True)
class LocalAttentionBegin(Record):
    """The offsets of the operands of a product, in elements."""

    queries: int
    keys: int
    values: int
    mask: int
    out: int


@dataclass(frozen=True, eq=False)
class Views:
    """Operands as views, [.., queries, depth], [.., keys, depth], [.., keys, columns] and [.., queries, columns]."""

    queries: Array
    keys: Array
    values: Array
    out: Array

    def record(self, sizes: Attention) -> LocalAttention:
        """Return the kernel's arguments."""
        key_step, depth_step = self.keys.strides[-2:]
        rows = (*self.values.strides[-2:], self.out.strides[-2])
        return LocalAttention(sizes, self.queries.strides[-2], key_step, depth_step, *rows)

    def begins(self, plain: Call) -> tuple[LocalAttentionBegin, ...]:
        """Return where each product's operands begin; operands that broadcast repeat."""
        o: AttentionOptions = plain.options
        batch = self.out.shape[:-2]
        scored = (*(_begins(x, o.batch) for x in (self.queries, self.keys)), mask_starts(plain))
        q, k, mask = (np.broadcast_to(starts.reshape(o.seen), batch) for starts in scored)
        columns = (q, k, _begins(self.values, batch), mask, _begins(self.out, batch))
        return tuple(LocalAttentionBegin(*(int(n) for n in row)) for row in zip(*map(np.ravel, columns), strict=True))


def plain_and_views(call: Call) -> tuple[Call, Views]:
    """Return a call as if its operands were already transposed, and views of where they really are."""
    o: AttentionOptions = call.options
    turns, out = o.turns, call.outputs[0]
    read = [_turned(view(call.input(i).shape), turn) for i, turn in enumerate(turns[:3])]
    written = _turned(view(out.shape), [turns[3].index(axis) for axis in range(len(turns[3]))])
    inputs = [_as(call.input(i), x.shape, turns[i]) for i, x in enumerate(read)]
    plain = replace(
        call,
        options=replace(o, turns=((),) * 4),
        inputs=[*inputs, *call.inputs[3:]],
        outputs=[_as(out, written.shape, turns[3])],
    )
    queries, keys, values = read
    by_key = keys if o.keys_in_rows else keys.swapaxes(-1, -2)
    by_value = values if o.values_in_rows else values.swapaxes(-1, -2)
    return plain, Views(queries, by_key, by_value, written)


def by_copies(call: Call, lower: Lowering) -> list[Step]:
    """Lower a call by transposing its operands in separate launches."""
    plain, _ = plain_and_views(call)
    turns, target = call.options.turns, call.target
    before: list[Step] = []
    for i, turn in enumerate(turns[:3]):
        if turn:
            x, turned = call.input(i), plain.input(i)
            before.append(copy(x, view(x.shape).transpose(turn), turned, view(turned.shape), bits(x.spec), target))
    after: list[Step] = []
    if turns[3]:
        result, out = plain.outputs[0], call.outputs[0]
        after.append(copy(result, view(result.shape).transpose(turns[3]), out, view(out.shape), bits(out.spec), target))
    return [*before, *lower(plain), *after]


def _turned(x: Array, turn: Sequence[int]) -> Array:
    return x.transpose(turn) if len(turn) else x


def _as(operand: Operand, shape: Shape, turn: Sequence[int]) -> Operand:
    """Return an operand, or if it is turned a new one of the turned shape."""
    return Operand(replace(operand.spec, shape=tuple(shape))) if turn else operand


def _begins(x: Array, batch: Shape) -> Array:
    """Return where each product's matrix begins in a view whose first dimensions broadcast to ``batch``."""
    starts = np.zeros(x.shape[:-2], np.int64)
    for axis, (size, stride) in enumerate(zip(x.shape[:-2], x.strides[:-2], strict=True)):
        along = np.arange(size, dtype=np.int64) * stride
        starts += along.reshape(size, *(1,) * (starts.ndim - axis - 1))
    return np.broadcast_to(starts, batch)
