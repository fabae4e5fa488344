"""Cases of pooling on quantized activations."""

from typing import Any

from litecl.cases import Case
from litecl.cases.integers import Integers, T, affine, unfit
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType

_integers = Integers(53)


def _pool(
    op: Op,
    type_: TensorType,
    name: str,
    shape: tuple[int, ...],
    window: tuple[int, int],
    stride: int = 1,
    zero_point: int = 0,
    **options: Any,
) -> Case:
    chosen = Pool2DOptions(
        **{"stride_w": stride, "stride_h": stride, "filter_height": window[0], "filter_width": window[1]} | options
    )
    quantization = affine(0.05, zero_point)
    return Case(
        f"{type_.name}, {name}",
        op,
        chosen,
        [_integers.full(type_, *shape)],
        frozenset(),
        {},
        {0: quantization},
        [TensorSpec(type_, None, quantization=quantization)],
        3,
        device=unfit(op, type_),
    )


def _family(op: Op, type_: TensorType, zero_point: int) -> tuple[Case, ...]:
    relu6 = {"fused_activation_function": ActivationFunctionType.RELU6}
    return (
        _pool(op, type_, "2x2", (2, 6, 6, 5), (2, 2), 2, zero_point),
        _pool(op, type_, "3x2, SAME, odd", (2, 7, 5, 3), (3, 2), 2, zero_point),
        _pool(op, type_, "3x3, stride 1, VALID", (1, 7, 5, 3), (3, 3), 1, zero_point, padding=Padding.VALID),
        _pool(op, type_, "RELU6", (1, 6, 6, 3), (2, 2), 1, zero_point, **relu6),
        _pool(op, type_, "whole image", (2, 7, 7, 3), (7, 7), 1, zero_point, padding=Padding.VALID),
        _pool(op, type_, "wider than the image, SAME", (1, 2, 3, 2), (5, 5), 1, zero_point),
    )


CASES = tuple(
    case
    for op in (AVERAGE_POOL_2D, MAX_POOL_2D)
    for type_, zero_point in ((T.INT8, -3), (T.UINT8, 120), (T.INT16, 0))
    for case in _family(op, type_, zero_point)
)
