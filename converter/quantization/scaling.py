"""Activation-aware scaling: scales up important channels before their weights are rounded.

A dense layer's weights are multiplied by a factor per input channel, and its input is divided by it. The search is
AWQ's (Lin et al., 2024, equation 4), with errors for the measured inputs.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litecl.converter.quantization.formats import Format, stored, widened
from litecl.converter.quantization.gptq import Moments
from litecl.interpreter.graph import Array, TensorSpec

_POWERS = np.linspace(0.0, 1.0, 11)
_GAIN = 0.98  # of the error without: a smaller gain isn't worth a product per row


def factors(layers: Sequence[tuple[TensorSpec, Format]], moments: Moments) -> Array | None:
    """Return float32 factors [depth] for weights [units, depth] of layers that read one input; None if none help."""
    ones = np.ones(len(moments.products))
    best, bound = None, sum(_error(spec, form, moments, ones) for spec, form in layers) * _GAIN
    weights = np.concatenate([spec.data for spec, _ in layers if spec.data is not None]).astype(np.float64)
    for scale in _candidates(weights, np.diag(moments.products)):
        error = sum(_error(spec, form, moments, scale) for spec, form in layers)
        if error < bound:
            best, bound = scale.astype(np.float32), error
    return best


def scaled(spec: TensorSpec, scale: Array, moments: Moments) -> tuple[TensorSpec, Moments]:
    """Return the weights times the factors of their channels, and the moments of the inputs divided by these."""
    assert spec.data is not None
    return replace(spec, data=(spec.data * scale).astype(np.float32)), Moments(
        moments.products / np.outer(scale, scale)
    )


def _candidates(weights: Array, squares: Array) -> Sequence[Array]:
    sizes = np.sqrt(np.maximum(squares, squares.max(initial=0.0) * 1e-8 + 1e-30))
    peaks = np.maximum(np.abs(weights).max(axis=0), np.abs(weights).max(initial=0.0) * 1e-4 + 1e-30)
    scales = [sizes**power / peaks ** (1 - power) for power in _POWERS] + [sizes**power for power in _POWERS[1:]]
    scales += [np.sqrt(sizes / peaks), np.sqrt(np.sqrt(sizes / peaks))]
    return [np.clip(scale / np.exp(np.log(scale).mean()), 1e-4, 1e4) for scale in scales]


def _error(spec: TensorSpec, form: Format, moments: Moments, scale: Array) -> float:
    """Return the mean squared error of the layer's results: the trace of ``e @ moments @ e.T``."""
    assert spec.data is not None
    plain = replace(form, method="minmax") if form.method == "gptq" else form
    changed, divided = scaled(spec, scale.astype(np.float32), moments)
    rest = (widened(stored(changed, plain, divided)) / scale - spec.data).astype(np.float64)
    return float(((rest @ moments.products) * rest).sum())
