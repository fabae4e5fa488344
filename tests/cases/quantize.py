"""Cases of QUANTIZE, DEQUANTIZE and FAKE_QUANT."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import EDGES, Random, unfit
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.quantize import DEQUANTIZE, FAKE_QUANT, QUANTIZE, FakeQuantOptions
from litecl.interpreter.schema import TensorType as T

_random = Random(37)


def affine(scale: float | list[float], zero_point: int | list[int], axis: int = 0) -> Quantization:
    """Quantization parameters, per tensor or along ``axis``."""
    return Quantization(
        np.atleast_1d(np.asarray(scale, np.float32)), np.atleast_1d(np.asarray(zero_point, np.int64)), axis
    )


def _quantize(name: str, x: Array, to: T, how: Quantization) -> Case:
    outputs = (TensorSpec(to, None, quantization=how),)
    device = "scales along an axis" if how.scale.size > 1 else None
    return Case(name, QUANTIZE, NoOptions(), [x], outputs=outputs, device=device)


def _dequantize(name: str, q: Array, type_: T, how: Quantization, constant: bool = False) -> Case:
    constants = frozenset({0} if constant else ())
    device = "constant" if constant else ("scales along an axis" if how.scale.size > 1 else None)
    return Case(name, DEQUANTIZE, NoOptions(), [q], constants, {0: type_}, {0: how}, device=device)


def _fake(name: str, low: float, high: float, bits: int) -> Case:
    return Case(name, FAKE_QUANT, FakeQuantOptions(low, high, bits), [EDGES])


_halves = np.arange(-5, 6, dtype=np.float32) / 4
_int8 = _random.integers(3, 4, low=-128, high=128, dtype=np.int8)
_half = _random.normal(3, 4).astype(np.float16)

CASES = (
    _quantize("int8", _random.normal(3, 4), T.INT8, affine(0.05, 3)),
    _quantize("int8 halves", _halves, T.INT8, affine(0.5, 0)),
    _quantize("int8 saturates", EDGES, T.INT8, affine(0.1, -7)),
    _quantize("uint8", EDGES, T.UINT8, affine(0.2, 128)),
    _quantize("int16", EDGES, T.INT16, affine(0.001, 0)),
    _quantize("int8 per channel", _random.normal(2, 3), T.INT8, affine([0.1, 0.05, 0.2], [0, 3, -4], 1)),
    _quantize("rank 0", np.array(0.3, np.float32), T.INT8, affine(0.1, 0)),
    _dequantize("int8", _int8, T.INT8, affine(0.05, 3)),
    _dequantize("uint8", _random.integers(3, 4, low=0, high=256, dtype=np.uint8), T.UINT8, affine(0.2, 128)),
    _dequantize("int16", _random.integers(3, 4, low=-999, high=999, dtype=np.int16), T.INT16, affine(0.01, 0)),
    _dequantize("int8 per channel", _int8, T.INT8, affine([0.1, 0.05, 0.2], [0, 3, -4], 0)),
    _dequantize("int4", _random.integers(3, 4, low=-8, high=8, dtype=np.int8), T.INT4, affine(0.5, 0), True),
    _dequantize("constant", _int8, T.INT8, affine(0.05, 3), True),
    Case("float16", DEQUANTIZE, NoOptions(), [_half], device=unfit(_half)),
    Case("float16 constant", DEQUANTIZE, NoOptions(), [_half], frozenset({0}), device="constant"),
    _fake("8 bits", -1.0, 1.0, 8),
    _fake("a half that a division would round the other way", -0.5, 2.5, 8),
    _fake("asymmetric", -0.3, 2.5, 8),
    _fake("4 bits", 0.0, 6.0, 4),
    _fake("16 bits", -30.0, 30.0, 16),
)
