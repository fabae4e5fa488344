"""Cases of FULLY_CONNECTED."""

import numpy as np

from litecl.cases import Case, rng
from litecl.cases.values import unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import ActivationFunctionType

_random = rng(26)


def _f(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def _case(name: str, x: tuple[int, ...], weights: tuple[int, int], bias: bool = True, **options: object) -> Case:
    inputs = [_f(*x), _f(*weights), *([_f(weights[0])] if bias else [])]
    constants = frozenset({1, 2}) if bias else frozenset({1})
    chosen = FullyConnectedOptions(**options)  # type: ignore[arg-type]
    return Case(name, FULLY_CONNECTED, chosen, inputs, constants, device=unfit(*inputs))


CASES = (
    _case("rank 2", (3, 16), (8, 16)),
    _case("one row", (1, 640), (128, 640)),
    _case("one row, deep, few units", (1, 1003), (10, 1003), fused_activation_function=ActivationFunctionType.RELU),
    _case("one unit", (4, 20), (1, 20)),
    _case("one element a row", (5, 1), (3, 1)),
    _case("rank 4 flattened", (2, 3, 4, 5), (7, 60)),
    _case("rows that the depth divides", (2, 3, 8), (5, 16)),
    _case("rank 1", (12,), (5, 12)),
    _case("rank 3, dimensions kept", (2, 3, 16), (5, 16), keep_num_dims=True),
    _case("rank 4, dimensions kept", (1, 2, 3, 17), (9, 17), keep_num_dims=True),
    _case("no rows, dimensions kept", (0, 2, 6), (4, 6), keep_num_dims=True),
    _case("rank 1, dimensions kept", (6,), (4, 6), keep_num_dims=True),
    _case("no bias", (3, 16), (8, 16), bias=False),
    _case("RELU", (3, 16), (8, 16), fused_activation_function=ActivationFunctionType.RELU),
    _case("RELU6", (3, 16), (8, 16), fused_activation_function=ActivationFunctionType.RELU6),
    _case("RELU_N1_TO_1", (3, 16), (8, 16), fused_activation_function=ActivationFunctionType.RELU_N1_TO_1),
    Case("weights that are not constant", FULLY_CONNECTED, FullyConnectedOptions(), [_f(3, 16), _f(8, 16), _f(8)]),
)
