"""Cases of the matrix products on quantized activations."""

from dataclasses import replace
from typing import Any

import numpy as np

from litecl.cases import Case
from litecl.cases.integers import Integers, T, affine, limits, positive, weighted_case, with_ties
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import ActivationFunctionType, FullyConnectedOptionsWeightsFormat, TensorType

_integers = Integers(52)
_RELU, _RELU6 = ActivationFunctionType.RELU, ActivationFunctionType.RELU6


def _dense(
    name: str,
    x: tuple[int, ...],
    units: int,
    *,
    types: tuple[TensorType, TensorType] = (T.INT8, T.INT8),
    zeros: tuple[int, int, int] = (3, 0, -5),
    version: int = 13,
    depth: int | None = None,
    spread: dict[str, Any] | None = None,
    **options: Any,
) -> Case:
    """zeros: the zero points of input, weights and output."""
    columns = x[-1] if depth is None else depth
    return weighted_case(
        _integers,
        f"{types[0].name} x {types[1].name}, {name}",
        FULLY_CONNECTED,
        FullyConnectedOptions(**options),
        (types[0], x, zeros[0]),
        (types[1], (units, columns), zeros[1]),
        axis=0,
        depth=columns,
        zero_point=zeros[2],
        version=version,
        **spread or {},
    )


def _shuffled(name: str, rows: int, units: int, depth: int, **options: Any) -> Case:
    """Weights that are stored in blocks; the second output is TensorFlow Lite's workspace."""
    shuffled = FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8
    case = _dense(
        name,
        (rows, depth),
        units,
        types=(T.UINT8, T.UINT8),
        zeros=(128, 128, 0),
        weights_format=shuffled,
        version=2,
        spread={"output": T.INT16, "per_channel": False, "step": 0.0003},
        **options,
    )
    assert case.outputs is not None
    workspace = TensorSpec(T.UINT8, None)
    return replace(case, outputs=[*case.outputs, workspace], device="shuffled weights")


def _batch(
    name: str,
    x: tuple[int, ...],
    y: tuple[int, ...],
    *,
    types: tuple[TensorType, TensorType, TensorType] = (T.INT8, T.INT8, T.INT8),
    zeros: tuple[int, int, int] = (3, -7, -5),
    constant: bool = False,
    gain: float = 1.0,
    scales: tuple[float, float] = (0.03, 0.02),
    **options: Any,
) -> Case:
    depth = x[-2] if options.get("adj_x") else x[-1]
    x_scale, y_scale = scales
    deviation = np.prod(np.array([limits(type_)[1] / 3**0.5 for type_ in types[:2]])) * depth**0.5
    step = x_scale * y_scale * deviation / (gain * 0.5 * limits(types[2])[1])
    quantization = {0: affine(x_scale, zeros[0]), 1: affine(y_scale, zeros[1])}
    is_known = types[2] == types[0]
    is_wide = types[0] == T.INT16 and (depth > (255 if types[1] == T.INT16 else 65535) or gain > 100)
    device = "types" if not is_known else "sums of more than 38 bits" if is_wide else None
    output = TensorSpec(types[2], None, quantization=None if types[2] == T.INT32 else affine(step, zeros[2]))
    return Case(
        f"{types[0].name} x {types[1].name}, {name}",
        BATCH_MATMUL,
        BatchMatMulOptions(**options),
        [_integers.full(types[0], *x), _integers.full(types[1], *y)],
        frozenset({1} if constant else ()),
        dict(enumerate(types[:2])),
        quantization,
        [output],
        3,
        device=device,
    )


_UINT8: dict[str, Any] = {"types": (T.UINT8, T.UINT8), "zeros": (120, 131, 117), "spread": {"per_channel": False}}
_INT16: dict[str, Any] = {"types": (T.INT16, T.INT8), "zeros": (0, 0, 0)}
_WORDS: dict[str, Any] = {"types": (T.INT16, T.INT16), "zeros": (0, 0, 0)}
_WIDE: dict[str, Any] = {"bias": T.INT64, "step": 0.0003}
_ALL_WORDS: dict[str, Any] = {"types": (T.INT16, T.INT16, T.INT16), "zeros": (0, 0, 0)}
_WORDS_BY_BYTES: dict[str, Any] = {"types": (T.INT16, T.INT8, T.INT16), "zeros": (0, 0, 0)}
_MATRICES: tuple[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ("one y for all", (2, 5, 16), (16, 6), {}),
    ("rank 2, odd depth", (5, 17), (17, 6), {}),
    ("deep", (3, 1500), (1500, 7), {}),
    ("one column", (2, 9, 16), (16, 1), {}),
    ("one row, many columns", (1, 33), (33, 133), {}),
    ("rank 3", (3, 5, 16), (3, 16, 6), {}),
    ("adjoint y", (2, 5, 16), (6, 16), {"adj_y": True}),
    ("adjoint x and y", (3, 18, 5), (3, 33, 18), {"adj_x": True, "adj_y": True}),
    ("one x for all", (5, 31), (4, 31, 9), {}),
    ("both broadcast", (3, 1, 5, 16), (2, 16, 6), {}),
    ("saturated", (2, 5, 16), (16, 6), {"gain": 30}),
)


def _near_ties() -> Case:
    """Sums that are scaled by just less than a half, which rounding the product of the scales to float32 would make."""
    a = np.float32(1.1)
    b = next(b for b in np.linspace(0.03, 0.04, 99, dtype=np.float32) if float(a) * float(b) < float(a * b))
    return Case(
        "UINT8 x UINT8, sums near halves",
        FULLY_CONNECTED,
        FullyConnectedOptions(),
        [np.arange(16, dtype=np.uint8)[:, None], np.arange(60, 76, dtype=np.uint8)[:, None]],
        frozenset({1}),
        {0: T.UINT8, 1: T.UINT8},
        {0: affine(float(a)), 1: affine(b, 67)},
        [TensorSpec(T.UINT8, None, quantization=affine(float(2 * a * b), 128))],
        version=13,
    )


_FEW = ((1, 1000), (2, 257), (3, 64), (5, 63), (16, 640), (1, 3))  # columns of one row, which are summed up across it

CASES = (
    _near_ties(),
    _dense("one scale", (4, 32), 8, spread={"per_channel": False}),
    _dense("per channel", (4, 32), 8),
    _dense("zero points at the ends", (4, 32), 8, zeros=(-128, 0, 127)),
    _dense("weights with a zero point", (4, 32), 8, zeros=(127, 9, -128), spread={"per_channel": False}),
    _dense("RELU, keeps the dimensions", (2, 3, 16), 5, fused_activation_function=_RELU, keep_num_dims=True),
    _dense("RELU6, flattens", (2, 3, 16), 5, fused_activation_function=_RELU6, zeros=(3, 0, -100)),
    _dense("rows across dimensions", (2, 3, 16), 5, depth=32),
    _dense("no bias", (3, 16), 5, spread={"bias": None}),
    _dense("saturates", (3, 16), 9, spread={"gain": 30}),
    _dense("deep", (2, 3000), 6),
    _dense("rank 1", (16,), 6),
    _dense("per channel", (4, 33), 7, types=(T.INT8, T.INT4)),
    _dense("one scale", (4, 32), 8, types=(T.INT8, T.INT4), spread={"per_channel": False}),
    _dense("per channel", (4, 32), 8, types=(T.INT8, T.INT2)),
    positive(
        _dense(
            "32-bit sums that overflow",
            (4, 3000),
            8,
            quantized_bias_type=T.INT32,
            **_INT16,
            spread={"bias": T.INT32, "step": 0.0003, "per_channel": False, "gain": 0.1},
        )
    ),
    with_ties(_dense("halves", (4, 16), 9, types=(T.INT8, T.INT2))),
    _dense("64-bit bias", (4, 32), 8, spread=_WIDE, **_INT16),
    _dense("32-bit bias", (4, 32), 8, quantized_bias_type=T.INT32, spread=_WIDE | {"bias": T.INT32}, **_INT16),
    _dense("one scale", (4, 32), 8, spread=_WIDE | {"per_channel": False}, **_INT16),
    _dense("no bias", (4, 32), 8, spread=_WIDE | {"bias": None}, **_INT16),
    _dense("4 bits", (4, 32), 8, spread=_WIDE, types=(T.INT16, T.INT4), zeros=(0, 0, 0)),
    _dense("64-bit bias", (4, 32), 8, spread=_WIDE, version=14, quantized_bias_type=T.INT64, **_WORDS),
    _dense("32-bit bias", (4, 32), 8, spread=_WIDE | {"bias": T.INT32}, version=14, **_WORDS),
    _dense(
        "one scale",
        (4, 32),
        8,
        spread=_WIDE | {"per_channel": False},
        version=14,
        quantized_bias_type=T.INT64,
        **_WORDS,
    ),
    _dense("one scale", (4, 32), 8, **_UINT8),
    _dense("RELU", (4, 32), 8, fused_activation_function=_RELU, **_UINT8),
    _dense(
        "zero points at the ends",
        (4, 32),
        8,
        types=(T.UINT8, T.UINT8),
        zeros=(0, 255, 255),
        spread={"per_channel": False, "gain": 0.2},
    ),
    _dense(
        "to INT16",
        (4, 32),
        8,
        types=(T.UINT8, T.UINT8),
        zeros=(120, 131, 0),
        spread={"per_channel": False, "output": T.INT16, "step": 0.0003},
    ),
    with_ties(_dense("halves", (4, 5), 9, types=(T.UINT8, T.UINT8), zeros=(255, 255, 0)), 2.0**-8),
    _shuffled("shuffled, one row", 1, 8, 32),
    _shuffled("shuffled, four rows, RELU", 4, 12, 48, fused_activation_function=_RELU),
    _batch("a product of scales that float32 does not hold", (3, 5), (5, 7), scales=(1e20, 1e20), gain=1e30),
    _batch("steps too large for any sum", (2, 3, 8), (2, 8, 5), gain=1e-6),
    _batch("rank 3", (2, 5, 16), (2, 16, 6)),
    _batch("broadcast", (3, 1, 5, 16), (2, 16, 6)),
    _batch("zero points at the ends", (2, 5, 16), (2, 16, 6), zeros=(-128, -127, -128), gain=0.2),
    _batch("adjoint y", (2, 5, 16), (2, 6, 16), adj_y=True),
    _batch("adjoint x, constant y", (2, 16, 5), (2, 16, 6), adj_x=True, constant=True),
    _batch("rank 2", (5, 16), (16, 6)),
    _batch("rank 5", (1, 2, 1, 3, 7), (2, 1, 3, 7, 4)),
    _batch("deep", (2, 1500), (1500, 3)),
    _batch("many columns", (2, 9, 17), (2, 17, 133)),
    _batch("adjoint y, many columns", (3, 33, 18), (3, 70, 18), adj_y=True),
    _batch("adjoint x and y", (3, 18, 5), (3, 33, 18), adj_x=True, adj_y=True),
    _batch("one x for all", (5, 16), (4, 16, 6)),
    _batch("one y for all", (4, 5, 16), (16, 6)),
    _batch("no zero points", (4, 5, 16), (4, 16, 6), zeros=(0, 0, 0)),
    _batch("sums", (2, 5, 16), (2, 16, 6), types=(T.INT8, T.INT8, T.INT32)),
    _batch("rank 3", (2, 5, 16), (2, 16, 6), **_ALL_WORDS),
    _batch("results beyond 32 bits", (2, 64), (64, 5), gain=1e6, **_ALL_WORDS),
    _batch("adjoint y", (2, 3, 5, 64), (2, 3, 21, 64), adj_y=True, **_ALL_WORDS),
    _batch("adjoint x, one y for all", (4, 16, 5), (16, 6), adj_x=True, **_ALL_WORDS),
    _batch("one x for all", (5, 255), (3, 255, 9), **_ALL_WORDS),
    _batch("sums of 39 bits", (2, 256), (256, 5), **_ALL_WORDS),
    _batch("both broadcast", (2, 1, 5, 16), (3, 16, 6), **_ALL_WORDS),
    _batch("both broadcast, adjoint x and y", (1, 3, 16, 5), (2, 1, 6, 16), adj_x=True, adj_y=True, **_ALL_WORDS),
    _batch("x broadcast, adjoint", (3, 1, 16, 5), (3, 2, 16, 6), adj_x=True),
    _batch("y broadcast, adjoint", (3, 2, 5, 16), (2, 6, 16), adj_y=True),
    _batch("both broadcast, constant y", (3, 1, 5, 16), (2, 16, 6), constant=True),
    _batch("one x for all, constant y", (5, 16), (4, 16, 6), constant=True),
    _batch("few columns, constant y", (40, 5, 16), (16, 3), constant=True, zeros=(3, 0, -5)),
    *(
        _batch(
            f"{'constant' if constant else 'variable'}, {name}", x, y, constant=constant, **options, **_WORDS_BY_BYTES
        )
        for constant in (False, True)
        for name, x, y, options in _MATRICES
    ),
    *(_dense(f"{units} columns of one row", (1, depth), units) for units, depth in _FEW),
    *(_dense(f"{units} columns of one row", (1, depth), units, **_UINT8) for units, depth in _FEW[:2]),
    *(_dense(f"{units} columns of one row", (1, depth), units, spread=_WIDE, **_INT16) for units, depth in _FEW[:2]),
    _dense("two columns of one row", (1, 300), 2, types=(T.INT8, T.INT4)),
    with_ties(_dense("halves, two columns of one row", (1, 300), 2), 2.0**-6),
    with_ties(_dense("halves", (4, 16), 9), 2.0**-4),
)
