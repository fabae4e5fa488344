"""Finds weight scales with a small squared error, clipping large weights if the others gain more."""

from typing import Literal

import numpy as np

from litecl.interpreter.graph import Array

_SMALLEST = float(np.finfo(np.float32).tiny) * 2.0**23  # keeps quotients of scales finite
_RATIOS = np.linspace(0.2, 1.0, 41)[::-1]  # of the largest magnitude, which is tried first and wins ties
_FINER = np.linspace(-0.02, 0.02, 9)
_ROUNDS = 20  # of Newton's method, which converges in fewer than ten


def nearest(rows: Array, last: int, method: Literal["mse", "octav"], masses: Array | None = None) -> Array:
    """Return a float32 scale for each of ``rows`` [n, size], for integers from ``-last`` to ``last``.

    masses: weights of the squared errors, [n or 1, size].
    """
    largest = np.abs(rows).max(axis=1, initial=0.0)
    clip = _searched(rows, largest, last, masses) if method == "mse" else _octav(np.abs(rows), largest, last)
    return np.where(largest == 0, 1.0, np.maximum(clip / last, _SMALLEST)).astype(np.float32)


def _searched(rows: Array, largest: Array, last: int, masses: Array | None) -> Array:
    """Return the candidate clipping magnitudes with the smallest squared error."""
    best = largest.copy()
    least = _errors(rows, best, last, masses)
    for factor in _RATIOS[1:]:
        best, least = _better(rows, largest * factor, last, masses, best, least)
    coarse = best.copy()
    for shift in _FINER:
        best, least = _better(rows, np.minimum(coarse + shift * largest, largest), last, masses, best, least)
    return best


def _better(
    rows: Array, clip: Array, last: int, masses: Array | None, best: Array, least: Array
) -> tuple[Array, Array]:
    errors = _errors(rows, clip, last, masses)
    closer = errors < least
    return np.where(closer, clip, best), np.where(closer, errors, least)


def _errors(rows: Array, clip: Array, last: int, masses: Array | None) -> Array:
    """Return the squared error of each row after rounding and clipping."""
    step = np.maximum(clip / last, _SMALLEST)[:, None]
    rest = rows - np.rint(rows / step).clip(-last, last) * step
    rest *= rest
    return np.asarray(rest.sum(axis=1) if masses is None else (rest * masses).sum(axis=1))


def _octav(magnitudes: Array, largest: Array, last: int) -> Array:
    """Return the clipping magnitudes of OCTAV (Sakr et al., 2022, equation 6), by Newton's method.

    As in the paper, rounding noise assumes a step of ``2 * clip / 2**bits``.
    """
    noise, size = 1 / (12 * (last + 1) ** 2), magnitudes.shape[1]
    clip = magnitudes.mean(axis=1)
    for _ in range(_ROUNDS):
        above = magnitudes > clip[:, None]
        count = above.sum(axis=1)
        clip = (magnitudes * above).sum(axis=1) / np.maximum(noise * (size - count) + count, _SMALLEST)
        clip = np.minimum(clip, largest)
    return np.asarray(clip)
