"""Float activations and integer weights: rows quantized at run time (kernels_cl/quantize_rows.cl), and weights."""

from collections.abc import Sequence

import numpy as np

from litecl.delegate.cl_op import Arg, Launch, Operand, Refusal, Scratch, Target
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import Chunks, chunks, pieces
from litecl.interpreter.arithmetic import hybrid
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.schema import TensorType

_SHORT = 512  # elements of rows whose ranges are computed side by side
_NEAREST = {"NEAREST": 1}
_WORD = 4  # bytes that are multiplied at once


def applies(inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> bool:
    """Return whether an operand, other than the first, of a node with a float result is constant integer weights."""
    known = any(spec is not None and spec.data is not None and spec.type in hybrid.INTEGERS for spec in inputs[1:])
    return known and outputs[0].type == TensorType.FLOAT32


def claim(inputs: claims.Specs, *positions: int) -> Refusal | None:
    """Refuse all but constant integer weights with scales at these positions (the second operand if none are named)."""
    return next((refusal for i in positions or (1,) if (refusal := claim_weights(claims.given(inputs, i)))), None)


def claim_weights(weights: TensorSpec, *, blocks: bool = False) -> Refusal | None:
    """Refuse all but constant integer weights with scales. blocks: allow scales of blocks along the last dimension."""
    quantization = weights.quantization
    if weights.data is None or weights.type not in hybrid.INTEGERS:
        return Refusal(f"integer weights together with weights of type {weights.type.name}")
    if quantization is None or not quantization.scale.size:
        return Refusal("integer weights without scales")
    if quantization.block_size and not blocks:
        return Refusal("weights with a scale for every block")
    size = quantization.block_size
    if size and (size % _WORD or weights.static_shape[-1] % size):
        return Refusal(f"weights with a scale for every block of {size}")
    return Refusal("sparse integer weights") if weights.sparsity is not None else None


def integers(weights: Operand) -> Array:
    """Return the weights as signed bytes."""
    return weights.value.view(np.int8)


def dequantized(weights: Operand) -> Operand:
    """Return the floats that weights represent."""
    quantization = weights.spec.quantization
    assert quantization is not None
    along = [1] * len(weights.shape)
    along[quantization.quantized_dimension] = -1
    values = integers(weights).astype(np.float32) * quantization.scale.astype(np.float32).reshape(along)
    return Operand(TensorSpec(TensorType.FLOAT32, weights.shape, weights.spec.name, values))


@dataclass(frozen=True, eq=False)
class Rows:
    """Quantized rows: unsigned bytes, and a zero point and a scale for each row."""

    values: Scratch
    zeros: Scratch
    scales: Scratch


def quantized_rows(x: Operand, count: int, target: Target, kind: int) -> tuple[Rows, list[Launch]]:
    """Return ``x`` as ``count`` rows of bytes, and the launches that compute them. kind: a ``RowKind``."""
    rows = Rows(Scratch(x.spec.size), Scratch(4 * count), Scratch(4 * count))
    arrays = (rows.values, rows.zeros, rows.scales)
    length = x.spec.size // count
    if kind == hybrid.RowKind.NEAREST and count >= target.vector_width and length <= _SHORT:
        share = chunks("quantize_rows", count, target, step=target.vector_width, work=length)
        sizes = (*share.args, np.int32(length))
        return rows, [share.launch("quantize_short_rows", (x, *arrays, *sizes), _NEAREST, x.spec.size)]
    return rows, _launches("quantize_rows", x, arrays, count, target, kind)


def rounded_rows(x: Operand, count: int, target: Target, kind: int) -> tuple[Operand, list[Launch]]:
    """Return the floats that ``count`` quantized rows of ``x`` represent, and the launches that compute them."""
    rounded = Operand(TensorSpec(x.spec.type, x.shape, x.spec.name))
    return rounded, _launches("round_rows", x, (rounded,), count, target, kind)


def _launches(entry: str, x: Operand, arrays: tuple[Arg, ...], count: int, target: Target, kind: int) -> list[Launch]:
    length = x.spec.size // count
    share, parts, part_length = _parts(count, length, target)
    ranges = Scratch(8 * share.n)
    defines = _NEAREST if kind == hybrid.RowKind.NEAREST else {}
    sizes = (*share.args, np.int32(length), np.int32(parts), np.int32(part_length))
    return [
        share.launch("find_ranges", (x, ranges, *sizes), {}, x.spec.size),
        share.launch(entry, (x, ranges, *arrays, *sizes, np.int32(kind)), defines, x.spec.size),
    ]


def _parts(count: int, length: int, target: Target) -> tuple[Chunks, int, int]:
    """Return how parts of ``count`` rows are distributed, the parts per row, and the length of a part."""
    width = target.vector_width
    part_length = -(-length // (pieces("quantize_rows", target, count, length) * width)) * width
    parts = -(-length // part_length)
    return chunks("quantize_rows", count * parts, target, work=part_length), parts, part_length
