"""Trains a convolution, a pool and a dense layer with numpy: Adam on the cross-entropy."""

from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from litecl.interpreter.graph import Array
from litecl.sample.digits import SIDE, Images

FILTERS, WINDOW, POOL = 12, 3, 2
_CLASSES, _CHANNELS = 10, 3
_BATCH, _EPOCHS, _RATE = 64, 16, 0.008
_MOMENTS, _TINY = (0.9, 0.999), 1e-8  # Kingma and Ba, Adam, 2015, algorithm 1


@dataclass(frozen=True)
class Weights:
    """The trained weights: filters [27, 12] and dense [192, 10] with their biases."""

    filters: Array
    filter_bias: Array
    dense: Array
    dense_bias: Array


def train(images: Images, seed: int) -> Weights:
    """Train on images of digits. seed: for initial weights and the order of images."""
    rng = np.random.default_rng(seed)
    cells, taps = FILTERS * (SIDE // POOL) ** 2, WINDOW * WINDOW * _CHANNELS
    values = [
        rng.normal(0, (2 / taps) ** 0.5, (taps, FILTERS)),
        np.zeros(FILTERS),
        rng.normal(0, (1 / cells) ** 0.5, (cells, _CLASSES)),
        np.zeros(_CLASSES),
    ]
    first, second = ([np.zeros_like(value) for value in values] for _ in range(2))
    windows, steps = _windows(images.pixels), 0
    with threadpool_limits(1):  # more threads slow products this small down, most on a busy machine
        for _ in range(_EPOCHS):
            for chosen in np.array_split(rng.permutation(len(windows)), len(windows) // _BATCH):
                steps += 1
                slopes = _slopes(windows[chosen], images.digits[chosen], *values)
                for value, slope, mean, square in zip(values, slopes, first, second, strict=True):
                    _follow(value, slope, mean, square, steps)
    return Weights(*(value.astype(np.float32) for value in values))


def _windows(pixels: Array) -> Array:
    """Return the filter window around each pixel, [n, 8, 8, 27], ordered by row, column and channel."""
    edge = WINDOW // 2
    padded = np.pad(pixels, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
    shifted = [padded[:, y : y + SIDE, x : x + SIDE] for y in range(WINDOW) for x in range(WINDOW)]
    return np.concatenate(shifted, axis=-1)


def _slopes(windows: Array, digits: Array, filters: Array, bias: Array, dense: Array, last: Array) -> list[Array]:
    """Return the gradients of the mean cross-entropy, in the order of the weights."""
    count, side = len(windows), SIDE // POOL
    seen = windows @ filters + bias
    pooled = np.maximum(seen, 0).reshape(count, side, POOL, side, POOL, FILTERS).mean((2, 4)).reshape(count, -1)
    scores = pooled @ dense + last
    wrong = np.exp(scores - scores.max(1, keepdims=True))
    wrong /= wrong.sum(1, keepdims=True)
    wrong[np.arange(count), digits] -= 1
    wrong /= count
    back = (wrong @ dense.T).reshape(count, side, 1, side, 1, FILTERS) / POOL**2
    spread = np.broadcast_to(back, (count, side, POOL, side, POOL, FILTERS)).reshape(seen.shape) * (seen > 0)
    flat = spread.reshape(-1, FILTERS)
    return [windows.reshape(len(flat), -1).T @ flat, flat.sum(0), pooled.T @ wrong, wrong.sum(0)]


def _follow(value: Array, slope: Array, mean: Array, square: Array, steps: int) -> None:
    """Apply an Adam step in place."""
    mean += (1 - _MOMENTS[0]) * (slope - mean)
    square += (1 - _MOMENTS[1]) * (slope**2 - square)
    corrected = np.sqrt(square / (1 - _MOMENTS[1] ** steps)) + _TINY
    value -= _RATE * mean / (1 - _MOMENTS[0] ** steps) / corrected
