"""FULLY_CONNECTED of one row with weights that a file stores as integers and dequantizes, multiplied as stored.

No model file contains this operator; the pass ``weight_only`` creates it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Operand, Record, Refusal, Step, Target
from litecl.delegate.kit import claims
from litecl.delegate.kit.composed import composed
from litecl.delegate.kit.schedule import chunks, flops, rows_of
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.ops.fully_connected import FullyConnectedOptions
from litecl.interpreter.schema import TensorType

_BITS = {TensorType.INT8: 8, TensorType.INT4: 4}
_WIDEST = 32  # 4-bit elements that the widest vector takes at once; blocks are multiples of it


@dataclass(frozen=True)
class WeightOnly(Record):
    """Arguments of weight_only.cl: rows of ``depth`` weights in ``row_bytes``, with a scale for each of ``blocks``."""

    columns: int
    depth: int
    row_bytes: int
    blocks: int
    block: int


def suits(weights: TensorSpec) -> bool:
    """Return whether the kernel can multiply constant weights [columns, depth] as they are stored."""
    by, bits = weights.quantization, _BITS.get(weights.type)
    if by is None or bits is None or weights.data is None or weights.sparsity is not None or by.zero_point.any():
        return False
    if by.block_size:
        return (
            by.quantized_dimension == 1
            and by.block_size % _WIDEST == 0
            and by.scale.size * by.block_size == weights.size
        )
    return by.scale.size == 1 or (by.scale.size == weights.static_shape[0] and by.quantized_dimension == 0)


def _claim(options: Any, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return None if suits(claims.given(inputs, 1)) else Refusal("weights of another layout")


def _lower(call: Call) -> list[Step]:
    (x, matrix, bias), target = call.weighted, call.target
    columns, depth = matrix.shape
    by, bits = matrix.spec.quantization, _BITS[matrix.spec.type]
    assert by is not None
    block = by.block_size or depth
    scales = np.broadcast_to(by.scale.astype(np.float32).reshape(-1, depth // block), (columns, depth // block))
    weights, row_bytes = (matrix, depth) if bits == 8 else _halves(matrix, target)
    dots = rows_of("weight_only", target, columns)
    share = chunks("weight_only", columns, target, step=dots, work=depth)
    nothing = Const(np.zeros(1, np.float32))
    record = WeightOnly(columns, depth, row_bytes, scales.shape[1], block)
    operands: tuple[Arg, ...] = (x, weights, Const(np.ascontiguousarray(scales)), bias or nothing)
    operands = (*operands, call.residual or nothing, call.outputs[0], record)
    flags = (np.int32(bias is not None), np.int32(call.residual is not None))
    return [
        share.launch(
            "weight_only",
            (*operands, *share.args, *flags, *call.activation.bounds),
            call.activation.defines | {"MR": dots, "BITS": bits},
            flops(columns, depth),
        )
    ]


def _halves(matrix: Operand, target: Target) -> tuple[Const, int]:
    """Return weights of 4 bits as weight_only.cl reads them, and the bytes of a row."""
    width, (columns, depth) = target.vector_width, matrix.shape
    padded = np.zeros((columns, -(-depth // (2 * width)) * 2 * width), np.uint8)
    padded[:, :depth] = matrix.value.view(np.uint8) & 15
    low, high = padded.reshape(columns, -1, 2, width).transpose(2, 0, 1, 3)
    joined: Array = low | high << 4
    return Const(np.ascontiguousarray(joined)), padded.shape[1] // 2


WEIGHT_ONLY = ClOp(
    composed("WEIGHT_ONLY_FULLY_CONNECTED", FullyConnectedOptions),
    claim=_claim,
    lower=_lower,
    fuses_activation=True,
    fuses_residual=True,
)
