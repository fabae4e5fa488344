"""Bias correction and equalization: what they leave as it was, and what they mend."""

from typing import Any

import numpy as np
import pytest

from litecl.converter.quantization.bias_correction import correct_biases
from litecl.converter.quantization.data import samples
from litecl.converter.quantization.equalization import equalize
from litecl.converter.quantization.options import Quantization
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.schema import ActivationFunctionType
from support.build import model, randn
from support.quantize_models import SHAPE, Net, assert_good, quantized, run, samples_of

_RELU = ActivationFunctionType.RELU


def _chain(activation: ActivationFunctionType = _RELU, *, outputs: int = 1) -> Model:
    """A convolution, a depthwise and a plain one, whose channels differ by orders of magnitude."""
    g, spread = Net(), np.geomspace(0.01, 10, 8).astype(np.float32)
    options = {"stride_w": 1, "stride_h": 1, "fused_activation_function": activation}
    weights = randn(g.rng, 8, 3, 3, 4, scale=0.2) * spread[:, None, None, None]
    bias = randn(g.rng, 8, scale=0.1) * spread
    x = g.op(CONV_2D, [g.input(SHAPE), g.const(weights), g.const(bias)], Conv2DOptions(**options))
    by_channel = DepthwiseConv2DOptions(depth_multiplier=1, **options)
    y = g.op(DEPTHWISE_CONV_2D, [x, g.const(randn(g.rng, 1, 3, 3, 8)), g.const(randn(g.rng, 8))], by_channel)
    last = randn(g.rng, 6, 1, 1, 8) / spread
    z = g.op(CONV_2D, [y, g.const(last), g.const(np.zeros(6, np.float32))], Conv2DOptions(stride_w=1, stride_h=1))
    return model(g.build(*(z, x)[:outputs]))


def _results(of: Model) -> list[Array]:
    return [value for sample in samples_of(of, 4, seed=3) for value in run(Interpreter(of), sample)]


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("activation", [_RELU, ActivationFunctionType.NONE, ActivationFunctionType.RELU6])
def test_equalization_changes_no_result(activation: ActivationFunctionType, outputs: int) -> None:
    of = _chain(activation, outputs=outputs)
    after = equalize(of)
    for got, wanted in zip(_results(after), _results(of), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())

    def spread(of: Model) -> float:
        data = of.subgraphs[0].tensors[of.subgraphs[0].nodes[0].inputs[1]].data
        assert data is not None
        largest = np.abs(data).max(axis=(1, 2, 3))
        return float(largest.max() / largest.min())

    moved = activation != ActivationFunctionType.RELU6 and outputs == 1
    assert spread(after) < spread(of) / 5 if moved else spread(after) == spread(of)


def _ratio(**options: Any) -> float:
    of = _chain()
    after, report = quantized(of, per_channel=False, **options)
    assert_good(of, after, least_db=0.0)
    return float(report.outputs[0].sqnr_db)


def test_equalization_helps_weights_of_one_scale() -> None:
    assert _ratio(equalize=True) > _ratio() + 10


def test_corrected_biases_have_no_mean_error() -> None:
    """The layer with rounded weights has the mean of the one in float, channel by channel, before the activation."""
    of = _chain(ActivationFunctionType.NONE)
    used = samples(Quantization(activations="int8", data=samples_of(of)), of)
    after = correct_biases(of, used, per_channel=False)
    first = of.subgraphs[0].nodes[0]
    weights, bias = (of.subgraphs[0].tensors[t].data for t in first.inputs[1:])
    mended = after.subgraphs[0].tensors[after.subgraphs[0].nodes[0].inputs[2]].data
    assert weights is not None and bias is not None and mended is not None
    step = np.abs(weights).max() / 127
    rounded = np.rint(weights / step) * step
    x = np.concatenate([value for sample in samples_of(of) for value in sample]).astype(np.float64)
    patches = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)]), (3, 3), (1, 2))
    mean = np.einsum("nyxcij,oijc->o", patches, weights - rounded) / np.prod(patches.shape[:3])
    assert np.abs(mean).max() > 1e-4
    np.testing.assert_allclose(mended - bias, mean, rtol=0, atol=1e-5)


def test_bias_correction_helps() -> None:
    assert _ratio(equalize=True, bias_correction=True) > _ratio(equalize=True) + 1


def test_they_need_integer_activations() -> None:
    with pytest.raises(ConversionError, match="bias_correction, equalize need activations"):
        Quantization(bias_correction=True, equalize=True)
