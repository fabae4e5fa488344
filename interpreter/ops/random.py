"""RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL and STABLEHLO_RNG_BIT_GENERATOR: counter-based random numbers.

The generators are Philox 4x32-10 and Threefry 2x32-20 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
2011), used as TensorFlow does. A node with seeds continues its sequence from invoke to invoke.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.schema import TensorType

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF
_THREEFRY_TURNS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY = 0x1BD11BDA

_ALGORITHMS = {0: 4, 1: 4, 2: 2}
"""Words per block of the default (Philox), Philox and Threefry."""

_BITS = (TensorType.INT32, TensorType.UINT32, TensorType.INT64, TensorType.UINT64)


@dataclass(frozen=True)
class RandomOptions:
    seed: int = 0
    seed2: int = 0


@dataclass(frozen=True)
class StablehloRngBitGeneratorOptions:
    algorithm: int = 0


def philox(key: Sequence[int], counter: Array) -> Array:
    """Return four words [n, 4] per counter [n, 4], as uint64 that hold 32 bits."""
    words = [counter[:, i].astype(np.uint64) for i in range(4)]
    first, second = (int(k) for k in key)
    for _ in range(10):
        low, high = words[0] * np.uint64(_MULTIPLIERS[0]), words[2] * np.uint64(_MULTIPLIERS[1])
        words = [
            (high >> np.uint64(32)) ^ words[1] ^ np.uint64(first),
            high & np.uint64(_WORD),
            (low >> np.uint64(32)) ^ words[3] ^ np.uint64(second),
            low & np.uint64(_WORD),
        ]
        first, second = (first + _KEY_STEPS[0]) & _WORD, (second + _KEY_STEPS[1]) & _WORD
    return np.stack(words, axis=1)


def threefry(key: Sequence[int], counter: Array) -> Array:
    """Return two words [n, 2] per counter [n, 2], as uint64 that hold 32 bits."""
    keys = [int(key[0]), int(key[1]), int(key[0]) ^ int(key[1]) ^ _THREEFRY_PARITY]
    word = np.uint64(_WORD)
    a, b = ((counter[:, i].astype(np.uint64) + np.uint64(keys[i])) & word for i in range(2))
    for group in range(5):
        for turn in _THREEFRY_TURNS[group % 2]:
            a = (a + b) & word
            b = (((b << np.uint64(turn)) | (b >> np.uint64(32 - turn))) & word) ^ a
        a = (a + np.uint64(keys[(group + 1) % 3])) & word
        b = (b + np.uint64(keys[(group + 2) % 3]) + np.uint64(group + 1)) & word
    return np.stack([a, b], axis=1)


class _Generator:
    """Consecutive Philox blocks: the first seed is the key, the second the upper half of the counter."""

    def __init__(self, options: RandomOptions) -> None:
        # TFLite takes 32 bits of each seed, and their sign.
        seeds = [((seed & _WORD) ^ (1 << 31)) - (1 << 31) for seed in (options.seed, options.seed2)]
        if not any(seeds):
            seeds = [int.from_bytes(os.urandom(8), "little") for _ in range(2)]
        self._key, self._high = (((seed & _WORD), (seed >> 32) & _WORD) for seed in seeds)
        self._next = 0

    def blocks(self, count: int, skip: int | None = None) -> Array:
        """Return the next blocks [count, 4]. skip: how many blocks then count as used, by default ``count``."""
        low = np.arange(count, dtype=np.uint64) + np.uint64(self._next & (2**64 - 1))
        high = [np.full(count, word, np.uint64) for word in self._high]
        counter = np.stack([low & np.uint64(_WORD), low >> np.uint64(32), *high], axis=1)
        self._next += count if skip is None else skip
        return philox(self._key, counter)


def uniform(words: Array) -> Array:
    """Return numbers of [0, 1) from the lower 23 bits of each word."""
    bits = (words & np.uint64(0x7FFFFF)).astype(np.uint32) | np.uint32(127 << 23)
    return bits.view(np.float32) - np.float32(1)


def normal(words: Array) -> Array:
    """Return pairs of normal numbers, by the Box-Muller transform."""
    numbers = uniform(words)
    radius = np.sqrt(np.float32(-2) * np.log(np.maximum(numbers[:, ::2], np.float32(1e-7))))
    angle = np.float32(2 * np.pi) * numbers[:, 1::2]
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], axis=-1)


def _random(name: str, distribution: Callable[[Array], Array]) -> Op:
    def infer(options: RandomOptions, inputs: Specs) -> list[TensorSpec]:
        (shape,) = require.present(inputs, 1)
        require.types(shape, (TensorType.INT32,))
        require.rank(shape, exactly=1)
        values = require.integers(shape)
        if values is not None and min(values, default=0) < 0:
            raise ShapeError(f"dimensions must not be negative, got {values}")
        return [TensorSpec(TensorType.FLOAT32, None if values is None else tuple(values))]

    def bind(options: RandomOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
        generator = _Generator(options)

        def run(options: RandomOptions, inputs: Inputs) -> list[Array]:
            (shape,) = require.arrays(inputs, 1)
            size = require.elements(shape.tolist())
            words = generator.blocks(-(-size // 4))
            return [distribution(words).reshape(-1)[:size].reshape(shape.tolist())]

        return run

    return Op(name, options=RandomOptions, infer=infer, run=require.unbound, bind=bind, pure=False)


def _infer_multinomial(options: RandomOptions, inputs: Specs) -> list[TensorSpec]:
    logits, count = require.present(inputs, 2)
    require.types(logits, types.FLOAT)
    require.rank(logits, exactly=2)
    if logits.static_shape[1] == 0:
        raise ShapeError("expected at least one class, got none")
    samples = require.integer(count)
    if samples is not None and samples < 0:
        raise ShapeError(f"expected at least 0 samples, got {samples}")
    return [TensorSpec(TensorType.INT64, None if samples is None else (logits.static_shape[0], samples))]


def _bind_multinomial(options: RandomOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    type_ = require.types(outputs[0], types.INDEX)
    generator = _Generator(options)

    def run(options: RandomOptions, inputs: Inputs) -> list[Array]:
        logits, count = require.arrays(inputs, 2)
        batches, samples = len(logits), int(count.item())
        size = require.elements([batches, samples])
        words = generator.blocks(-(-size // 2), skip=batches * (-(-samples // 4) * 4) * 2 * 256)
        numbers = doubles(words.reshape(-1, 2))[:size].reshape(batches, samples)
        return [chosen(logits, numbers).astype(type_.dtype)]

    return run


def chosen(logits: Array, numbers: Array) -> Array:
    """Return the classes [batch, samples] that numbers of [0, 1) choose, by the chances of logits [batch, n]."""
    finite = np.isfinite(logits)
    wide = np.where(finite, logits, 0).astype(np.float64)
    largest = np.max(wide, axis=1, keepdims=True, where=finite, initial=types.limits(np.dtype(np.float32))[0])
    sums = np.cumsum(np.where(finite, np.exp(wide - largest), 0.0), axis=1)
    limits.temporary("chances", (*numbers.shape, sums.shape[1]), 16)
    below = sums[:, None, :] <= numbers[..., None] * sums[:, None, -1:]
    return np.asarray(np.count_nonzero(below, axis=2))


def doubles(words: Array) -> Array:
    """Return numbers of [0, 1) from 52 bits of two words."""
    bits = ((words[:, 0] & np.uint64(0xFFFFF)) << np.uint64(32)) | words[:, 1] | np.uint64(1023 << 52)
    return bits.view(np.float64) - 1.0


def _infer_bits(options: StablehloRngBitGeneratorOptions, inputs: Specs) -> list[TensorSpec]:
    (state,) = require.present(inputs, 1)
    require.types(state, (TensorType.UINT64,))
    words = _ALGORITHMS.get(options.algorithm)
    if words is None:
        raise ShapeError(f"expected an algorithm of 0 to 2, got {options.algorithm}")
    if state.static_shape not in (((2,), (3,)) if words == 4 else ((2,),)):
        raise ShapeError(f"state of shape {list(state.static_shape)}")
    return [TensorSpec(TensorType.UINT64, state.shape), TensorSpec(TensorType.UINT32, None)]


def _bind_bits(options: StablehloRngBitGeneratorOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    require.types(outputs[1], _BITS)
    dtype, shape = outputs[1].dtype, outputs[1].static_shape
    size = require.elements(shape) * (dtype.itemsize // 4)
    width = _ALGORITHMS[options.algorithm]

    def run(options: StablehloRngBitGeneratorOptions, inputs: Inputs) -> list[Array]:
        (state,) = require.arrays(inputs, 1)
        start = np.ascontiguousarray(state).view(np.uint32)
        count = -(-size // width)
        low = np.arange(count, dtype=np.uint64) + state[1:2]
        counter: list[Any] = [low & np.uint64(_WORD), low >> np.uint64(32)]
        rest = start[4:6] if state.size == 3 else start[:2]
        counter += [np.full(count, word, np.uint64) for word in rest] if width == 4 else []
        words = (philox if width == 4 else threefry)(start[:2].tolist(), np.stack(counter, axis=1))
        key = state.copy()
        key[1:2] += np.uint64(count)
        values = words.astype(np.uint32).reshape(-1)[:size]
        return [key, values.view(dtype).reshape(shape)]

    return run


RANDOM_UNIFORM = _random("RANDOM_UNIFORM", uniform)
RANDOM_STANDARD_NORMAL = _random("RANDOM_STANDARD_NORMAL", normal)
MULTINOMIAL = Op(
    "MULTINOMIAL",
    options=RandomOptions,
    infer=_infer_multinomial,
    run=require.unbound,
    bind=_bind_multinomial,
    pure=False,
    declared_types=True,
)
STABLEHLO_RNG_BIT_GENERATOR = Op(
    "STABLEHLO_RNG_BIT_GENERATOR",
    options=StablehloRngBitGeneratorOptions,
    infer=_infer_bits,
    run=require.unbound,
    bind=_bind_bits,
    declared_types=True,
    declared_shapes=True,
)
