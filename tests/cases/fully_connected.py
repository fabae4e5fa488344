"""Cases of FULLY_CONNECTED."""

import numpy as np

from cases import Case, rng
from litecl.interpreter.graph import Array, Quantization
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import ActivationFunctionType, TensorType

_random = rng(26)


def _f(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def _case(name: str, x: tuple[int, ...], weights: tuple[int, int], bias: bool = True, **options: object) -> Case:
    inputs = [_f(*x), _f(*weights), *([_f(weights[0])] if bias else [])]
    constants = frozenset({1, 2}) if bias else frozenset({1})
    return Case(name, FULLY_CONNECTED, FullyConnectedOptions(**options), inputs, constants)  # type: ignore[arg-type]


def _hybrid(
    name: str,
    x: Array,
    weights: tuple[int, int],
    per_channel: bool,
    bits: int = 8,
    bias: bool = True,
    **options: object,
) -> Case:
    """Float inputs with integer weights of 8 or 4 bits."""
    top = 2 ** (bits - 1) - 1
    integers = _random.integers(-top, top + 1, weights).astype(np.int8)
    scales = _random.uniform(0.01, 0.1, weights[0] if per_channel else 1).astype(np.float32)
    quantization = Quantization(scales, np.zeros(len(scales), np.int64))
    return Case(
        name,
        FULLY_CONNECTED,
        FullyConnectedOptions(**options),  # type: ignore[arg-type]
        [x, integers, *([_f(weights[0])] if bias else [])],
        constants=frozenset({1, 2}) if bias else frozenset({1}),
        types={1: TensorType.INT8 if bits == 8 else TensorType.INT4},
        quantization={1: quantization},
        version=9,
    )


def _rows_and_zeros() -> Array:
    x = _f(4, 32)
    x[2] = 0
    return x


CASES = (
    _case("rank 2", (3, 16), (8, 16)),
    _case("one row", (1, 640), (128, 640)),
    _case("one unit", (4, 20), (1, 20)),
    _case("one element a row", (5, 1), (3, 1)),
    _case("rank 4 flattened", (2, 3, 4, 5), (7, 60)),
    _case("rows that the depth divides", (2, 3, 8), (5, 16)),
    _case("rank 1", (12,), (5, 12)),
    _case("rank 3, dimensions kept", (2, 3, 16), (5, 16), keep_num_dims=True),
    _case("rank 4, dimensions kept", (1, 2, 3, 17), (9, 17), keep_num_dims=True),
    _case("rank 1, dimensions kept", (6,), (4, 6), keep_num_dims=True),
    _case("no bias", (3, 16), (8, 16), bias=False),
    _case("RELU", (3, 16), (8, 16), fused_activation_function=ActivationFunctionType.RELU),
    _case("RELU6", (3, 16), (8, 16), fused_activation_function=ActivationFunctionType.RELU6),
    _case("RELU_N1_TO_1", (3, 16), (8, 16), fused_activation_function=ActivationFunctionType.RELU_N1_TO_1),
    Case("weights that are not constant", FULLY_CONNECTED, FullyConnectedOptions(), [_f(3, 16), _f(8, 16), _f(8)]),
    _hybrid("8 bits, one scale", _f(4, 32), (8, 32), per_channel=False),
    _hybrid("8 bits, a scale a unit", _f(4, 32), (8, 32), per_channel=True),
    _hybrid("8 bits, a row of zeros", _rows_and_zeros(), (8, 32), per_channel=True, asymmetric_quantize_inputs=True),
    _hybrid("8 bits, asymmetric", _f(4, 32) + 2, (8, 32), per_channel=True, asymmetric_quantize_inputs=True),
    _hybrid("8 bits, all positive", np.abs(_f(4, 32)) + 1, (8, 32), False, asymmetric_quantize_inputs=True),
    _hybrid("8 bits, RELU, no bias", _f(2, 3, 16), (8, 16), True, bias=False,
            fused_activation_function=ActivationFunctionType.RELU, keep_num_dims=True),
    _hybrid("4 bits, one scale", _f(4, 32), (8, 32), per_channel=False, bits=4),
    _hybrid("4 bits, a scale a unit", _f(4, 34), (7, 34), per_channel=True, bits=4),
    _hybrid("4 bits, asymmetric", _f(4, 32), (8, 32), True, bits=4, asymmetric_quantize_inputs=True),
)
