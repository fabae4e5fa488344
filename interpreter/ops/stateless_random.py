"""Random numbers determined by a seed, exactly TensorFlow's: litecl's own operators.

They come from consecutive Philox blocks, from a counter on, as in TensorFlow's CPU kernels.
"""

from collections.abc import Callable

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.kit.own import Result, operator
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import random
from litecl.interpreter.schema import TensorType

_UINT64, _FLOAT32 = TensorType.UINT64, TensorType.FLOAT32
_MIXING_KEY = (0x3EC8F720, 0x02461E29)
_WORD, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)
_APART = 256  # blocks between groups of four numbers, each of which takes as many as it needs
_TRIED = 16  # blocks drawn at once for such a group
_PHILOX = (1, 3)


@dataclass(frozen=True)
class DrawOptions:
    dtype: int = int(_FLOAT32)


def _blocks(key: Array, counter: Array, starts: Array, count: int) -> Array:
    """Return ``count`` blocks [starts, count, 4] from each of some distances to a counter."""
    limits.temporary("blocks of random numbers", (starts.size, count, 4), 32)
    low, high = np.asarray(counter).view(np.uint64)
    counts = (starts.astype(np.uint64)[:, None] + np.arange(count, dtype=np.uint64)).reshape(-1)
    first = counts + low
    second = high + (first < low).astype(np.uint64)
    words = np.stack([first & _WORD, first >> _SHIFT, second & _WORD, second >> _SHIFT], 1)
    mixed = np.uint64(np.asarray(key).reshape(-1)[0])
    return random.philox((int(mixed & _WORD), int(mixed >> _SHIFT)), words).reshape(starts.size, count, 4)


def _mixed(options: NoOptions, seed: Array) -> list[Array]:
    """Return the key and the counter of a seed of two numbers."""
    numbers = seed.astype(np.int64).view(np.uint64)
    words = np.stack([numbers & _WORD, numbers >> _SHIFT], 1).reshape(1, 4)
    (mixed,) = random.philox(_MIXING_KEY, words)
    return [mixed[:1] | mixed[1:2] << _SHIFT, np.array([0, mixed[2] | mixed[3] << _SHIFT], np.uint64)]


def _sequence(key: Array, counter: Array, words: int) -> Array:
    return _blocks(key, counter, np.zeros(1, np.uint64), -(-words // 4)).reshape(-1, 4)


def _wide(words: Array) -> Array:
    pairs = words.reshape(-1, 2)
    return np.asarray(pairs[:, 0] | pairs[:, 1] << _SHIFT)


def _drawn(take: Callable[[Array, Array, int, type], Array]) -> Callable[..., Array]:
    """Return the kernel that fills a shape with numbers; ``take`` makes as many as requested, or some more."""

    def run(options: DrawOptions, shape: Array, key: Array, counter: Array, algorithm: Array, *limits_: Array) -> Array:
        if int(algorithm) not in _PHILOX:
            raise ModelError(f"expected Philox, the algorithm 1, got {int(algorithm)}")
        size, dtype = require.elements(shape.tolist()), TensorType(options.dtype).dtype
        numbers = take(key, counter, size, dtype.type)[:size]
        if limits_:
            low, high = (int(x) for x in limits_)
            if low >= high:
                raise ModelError(f"expected a number below the limit {high}, got {low}")
            numbers = (numbers % np.asarray(high - low, numbers.dtype)).astype(dtype) + dtype.type(low)
        return numbers.astype(dtype, copy=False).reshape(shape.tolist())

    return run


def _bits(key: Array, counter: Array, size: int, dtype: type) -> Array:
    if np.dtype(dtype).itemsize == 8:
        return _wide(_sequence(key, counter, 2 * size))
    return _sequence(key, counter, size).reshape(-1).astype(np.uint32)


def _uniform(key: Array, counter: Array, size: int, dtype: type) -> Array:
    return random.uniform(_sequence(key, counter, size)).reshape(-1)


def _normal(key: Array, counter: Array, size: int, dtype: type) -> Array:
    return random.normal(_sequence(key, counter, size)).reshape(-1)


def _truncated(key: Array, counter: Array, size: int, dtype: type) -> Array:
    """Return each group's first four numbers between -2 and 2; groups have blocks of their own."""
    groups = np.arange(-(-size // 4), dtype=np.uint64)
    numbers = random.normal(_blocks(key, counter, groups * np.uint64(_APART), _TRIED).reshape(-1, 4))
    rows = numbers.reshape(groups.size, 4 * _TRIED)
    order = np.argsort(np.abs(rows) >= 2, axis=1, kind="stable")[:, :4]
    return np.take_along_axis(rows, order, 1).reshape(-1)


def _multinomial(options: DrawOptions, logits: Array, count: Array, key: Array, counter: Array) -> Array:
    size = len(logits) * int(count)
    numbers = random.doubles(_sequence(key, counter, 2 * size).reshape(-1, 2))[:size]
    chosen = random.chosen(logits, numbers.reshape(len(logits), -1))
    return chosen.astype(TensorType(options.dtype).dtype)


def _of_shape(options: DrawOptions, inputs: list[TensorSpec]) -> list[Result]:
    shape = require.integers(inputs[0])
    return [(TensorType(options.dtype), None if shape is None else tuple(shape))]


def _of_seed(options: NoOptions, inputs: list[TensorSpec]) -> list[Result]:
    return [(_UINT64, (1,)), (_UINT64, (2,))]


def _draws(name: str, take: Callable[[Array, Array, int, type], Array]) -> Op:
    return operator(name, DrawOptions, _drawn(take), _of_shape)


STATELESS_KEY = operator("litecl.StatelessKey", NoOptions, _mixed, _of_seed)
STATELESS_UNIFORM = _draws("litecl.StatelessUniform", _uniform)
STATELESS_NORMAL = _draws("litecl.StatelessNormal", _normal)
STATELESS_TRUNCATED_NORMAL = _draws("litecl.StatelessTruncatedNormal", _truncated)
STATELESS_INTEGERS = _draws("litecl.StatelessIntegers", _bits)
STATELESS_MULTINOMIAL = operator(
    "litecl.StatelessMultinomial", DrawOptions, _multinomial, lambda o, i: [(TensorType(o.dtype), None)]
)
