"""Models of quantization-aware training: their integers are TFLiteConverter's, and their numbers those of training."""

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from litecl.converter import Converter, Quantization  # noqa: E402
from litecl.interpreter.file.reader import read  # noqa: E402
from litecl.interpreter.ops.quantize import dequantize, quantize  # noqa: E402
from litecl.interpreter.schema import TensorType  # noqa: E402
from support import oracle  # noqa: E402


class _Trained(tf.Module):  # type: ignore[misc]
    """A model of quantization-aware training, as its tools write it."""

    def __init__(self, normalized: bool) -> None:
        rng = np.random.default_rng(3)
        self.normalized = normalized
        self.kernel, self.point, self.depth, self.dense = (
            tf.Variable((rng.standard_normal(s) / np.sqrt(np.prod(s[:-1]))).astype(np.float32))
            for s in ((3, 3, 3, 8), (1, 1, 8, 8), (3, 3, 8, 1), (128, 10))
        )
        factor = rng.uniform(0.5, 1.5, 8) * np.where(np.arange(8) == 3, -1, 1)
        self.factor = tf.Variable(factor.astype(np.float32))
        self.offset = tf.Variable((rng.standard_normal(8) * 0.2).astype(np.float32))

    def _by_channel(self, weights: Any) -> Any:
        most = 0.9 * tf.reduce_max(tf.abs(weights), axis=[0, 1, 2])
        return tf.quantization.fake_quant_with_min_max_vars_per_channel(weights, -most, most, narrow_range=True)

    def _by_tensor(self, weights: Any) -> Any:
        most = 0.9 * tf.reduce_max(tf.abs(weights))
        return tf.quantization.fake_quant_with_min_max_vars(weights, -most, most, narrow_range=True)

    @tf.function(input_signature=[tf.TensorSpec([1, 8, 8, 3])])  # type: ignore[untyped-decorator]
    def call(self, x: Any) -> Any:
        rounded = tf.quantization.fake_quant_with_min_max_vars
        x = tf.nn.conv2d(rounded(x, -2.9, 3.1), self._by_channel(self.kernel), 1, "SAME")
        x = x * self.factor + self.offset if self.normalized else x + self.offset
        x = rounded(tf.nn.relu(x), 0.0, 2.7)
        y = tf.nn.depthwise_conv2d(x, self._by_tensor(self.depth), [1, 1, 1, 1], "SAME")
        y = tf.quantization.fake_quant_with_min_max_args(tf.nn.relu6(y), 0.0, 5.9)
        z = rounded(tf.nn.conv2d(x, self._by_channel(self.point), 1, "SAME"), -3.0, 3.3)
        x = tf.reshape(tf.nn.max_pool2d(rounded(y + z, -2.0, 6.4), 2, 2, "SAME"), [1, 128])
        return tf.nn.softmax(rounded(tf.matmul(x, self._by_tensor(self.dense)), -6.5, 7.0))


@pytest.mark.parametrize("normalized", [False, True])
def test_a_model_trained_for_quantization(normalized: bool) -> None:
    """The integers are those of TFLiteConverter's file, and without quantization the numbers those of training."""
    model = _Trained(normalized)
    function = model.call.get_concrete_function()
    peer = tf.lite.TFLiteConverter.from_concrete_functions([function], model)
    converter = Converter.from_concrete_functions([function], model)
    for either in (peer, converter):
        either.optimizations = [tf.lite.Optimize.DEFAULT]
    content, wanted = converter.convert(), peer.convert()
    assert {node.op.name for node in read(content).subgraphs[0].nodes if "FAKE" in node.op.name} == set()
    plain = Converter.from_concrete_functions([function], model).convert()
    rng = np.random.default_rng(0)
    for x in (rng.standard_normal((1, 8, 8, 3)).astype(np.float32) for _ in range(6)):
        np.testing.assert_array_equal(oracle.run(content, [x])[0], oracle.run(wanted, [x])[0])
        np.testing.assert_allclose(oracle.run(plain, [x])[0], function(x), atol=2e-2)  # halves may round either way


@pytest.mark.parametrize(
    ("bits", "narrow", "weights"),
    [
        (4, True, "int8"),
        (4, False, "int8"),
        (2, True, "int8"),
        (6, False, "int8"),
        (7, True, "int8"),
        (4, True, "int4"),
    ],
)
def test_weights_trained_to_few_bits_keep_their_numbers(bits: int, narrow: bool, weights: Any) -> None:
    rng, most = np.random.default_rng(3), 9.0
    least = -most if narrow else -most - 2 * most / (2**bits - 2)
    given = (3 * rng.standard_normal((40, 30))).astype(np.float32)
    rounded = tf.quantization.fake_quant_with_min_max_args(given, least, most, bits, narrow)

    @tf.function(input_signature=[tf.TensorSpec([1, 40])], autograph=False)  # type: ignore[untyped-decorator]
    def function(x: Any) -> Any:
        return tf.matmul(x, tf.quantization.fake_quant_with_min_max_args(given, least, most, bits, narrow))

    data = [[rng.standard_normal((1, 40)).astype(np.float32)] for _ in range(3)]
    activations: dict[str, Any] = {} if weights == "int4" else {"activations": "int8", "data": data}
    how = Quantization(weights=weights, **activations)
    converter = Converter.from_concrete_functions([function.get_concrete_function()], quantize=how)
    stored = [spec for spec in read(converter.convert()).subgraphs[0].tensors if spec.shape == (30, 40)]
    (kernel,) = [spec for spec in stored if spec.data is not None and spec.quantization is not None]
    numbers = kernel.data.astype(np.float64) * kernel.quantization.scale.astype(np.float64)[:, None]
    np.testing.assert_allclose(numbers, np.transpose(rounded), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("bits", "narrow"), [(4, True), (4, False), (6, True), (8, False)])
def test_activations_trained_to_few_bits_keep_their_numbers(bits: int, narrow: bool) -> None:
    """They are rounded in float; integers hold the numbers exactly, of whatever range the data was."""
    kind: Any = "int16" if bits == 8 else "int8"
    rng = np.random.default_rng(3)
    weights = rng.standard_normal((6, 5)).astype(np.float32)

    @tf.function(input_signature=[tf.TensorSpec([1, 6])], autograph=False)  # type: ignore[untyped-decorator]
    def function(x: Any) -> Any:
        return tf.matmul(tf.quantization.fake_quant_with_min_max_args(x, -9.0, 7.0, bits, narrow), weights)

    data = [[rng.uniform(-5, 5, (1, 6)).astype(np.float32)] for _ in range(4)]
    how = Quantization(activations=kind, data=data)
    converter = Converter.from_concrete_functions([function.get_concrete_function()], quantize=how)
    tensors = read(converter.convert()).subgraphs[0].tensors
    steps = tf.quantization.fake_quant_with_min_max_args(np.linspace(-9, 7, 999), -9.0, 7.0, bits, narrow).numpy()
    (integers,) = [spec for spec in tensors if spec.shape == (1, 6) and spec.type == TensorType[kind.upper()]]
    assert integers.quantization is not None
    held = dequantize(quantize(steps, integers.quantization, integers.type), integers.quantization)
    np.testing.assert_allclose(held, steps, rtol=1e-5, atol=1e-5)
