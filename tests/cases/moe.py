"""Cases of moe, a mixture of experts."""

from typing import Any

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random
from litecl.interpreter.graph import Array, Shape
from litecl.interpreter.ops.moe import MOE, MoeOptions
from litecl.interpreter.schema import TensorType

_random = Random(131)
_FED = 3
_TWICE = np.array([[-1, 3], [0, 0], [-4, 1], [2, 2], [3, -2]], np.int32)


def _scales(rows: int, groups: int) -> Array:
    return _random.positive(rows, groups) * np.float32(0.02)


def _packed(values: Array) -> Array:
    """Two integers of 4 bits in each byte, the first in its lower half."""
    low, high = values.reshape(-1, 2).T
    return ((high << 4) | (low & 15)).astype(np.int8)


def _matrix(shape: Shape, stored: str, groups: int) -> list[Array]:
    if stored == "fp32":
        return [_random.normal(*shape, scale=0.3)]
    low, high = (-127, 128) if stored == "int8" else (-8, 8)
    values = _random.integers(*shape, low=low, high=high, dtype=np.int8)
    rows = _scales(shape[0] * shape[1], groups)
    return [_packed(values) if stored == "packed" else values, rows.reshape(-1) if groups == 1 else rows]


def _case(
    name: str,
    *,
    tokens: Shape = (1, 5),
    sizes: tuple[int, int, int, int] = (4, 2, 8, 6),
    stored: str = "fp32",
    groups: int = 1,
    experts: Array | None = None,
    **options: Any,
) -> Case:
    """sizes: experts, active experts, numbers of a token, and hidden ones. groups: of a row, each with its scale."""
    count, active, model, hidden = sizes
    routes = int(np.prod(tokens)), active
    chosen = _random.integers(*routes, low=0, high=count) if experts is None else experts
    fed = [_random.normal(*tokens, model), _random.positive(*routes), chosen]
    inner = (hidden, count, model)
    weights = [part for shape in (inner, inner, inner[::-1]) for part in _matrix(shape, stored, groups)]
    inputs = [*fed, *weights, _random.positive(count)]
    type_ = "int4" if stored == "packed" else stored
    types = {_FED + 2 * i: TensorType.INT4 for i in range(3)} if stored == "int4" else {}
    chosen_options = MoeOptions(*sizes, weight_type=type_, **options)
    constants = frozenset(range(_FED, len(inputs)))
    # Of LiteRT's resolvers, XNNPACK alone knows the operator.
    return Case(name, MOE, chosen_options, inputs, constants, types=types, kernels="default")


CASES = (
    _case("floats"),
    _case("floats, tanh", activation="gelu_tanh"),
    _case("one expert of one", sizes=(1, 1, 3, 5), tokens=(2, 3)),
    _case("all experts", sizes=(3, 3, 16, 4), tokens=(7,)),
    _case("experts counted from the end, and twice", experts=_TWICE),
    _case("weights as given", renormalized_top_weights=False),
    _case("8 bits", stored="int8"),
    _case("8 bits, tanh", stored="int8", activation="gelu_tanh", sizes=(5, 2, 12, 10), tokens=(1, 9)),
    _case("4 bits", stored="int4"),
    _case("4 bits, groups", stored="int4", groups=2, sizes=(4, 2, 8, 8)),
    _case("4 bits, packed", stored="packed"),
    _case("4 bits, packed, groups", stored="packed", groups=4, sizes=(3, 1, 16, 8)),
)
