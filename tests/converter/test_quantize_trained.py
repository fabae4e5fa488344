"""Models of quantization-aware training: their integers are TFLiteConverter's, and their numbers those of training."""

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from litecl.converter import Converter, Quantization  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.file.reader import read  # noqa: E402
from litecl.interpreter.graph import Array  # noqa: E402
from litecl.interpreter.ops.quantize import dequantize, quantize  # noqa: E402
from litecl.interpreter.schema import TensorType  # noqa: E402
from support import oracle  # noqa: E402
from support.trained_layers import KINDS, Trained, trained  # noqa: E402


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


def _run(content: bytes, x: Array) -> Array:
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


def _converted(of: Trained, quantize: Any) -> bytes:
    return Converter.from_concrete_functions([of.function], quantize=quantize).convert()


def _steps_off(content: bytes, of: Trained) -> float:
    """Return the largest difference from TensorFlow, in steps of the output, by litecl and by LiteRT."""
    operators = {node.op.name for node in read(content).subgraphs[0].nodes}
    optimised = operators & {"ELU", "TILE", "DEPTH_TO_SPACE"}  # LiteRT has no reference kernel of int8
    kernels = oracle.RESOLVERS["optimised" if optimised else "reference"]
    got = [(_run(content, x), oracle.run(content, [x], kernels)[0], of.function(x).numpy()) for x in of.inputs]
    return max(float(np.abs(value - expected).max()) for *values, expected in got for value in values) / of.step


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_layer_keeps_the_ranges_of_training(name: str) -> None:
    """The ranges cut off a part of what a layer reads and of what it makes, whether it has an integer kernel or not."""
    of = trained(KINDS[name])
    assert _steps_off(_converted(of, "int8"), of) < 2.01


_SOME = (
    "nothing",
    "sigmoid",
    "softmax",
    "swish",
    "sqrt",
    "conv",
    "dense_gelu",
    "average_pool",
    "split",
    "concatenation",
)


@pytest.mark.parametrize("name", _SOME)
def test_narrow_ranges_are_kept(name: str) -> None:
    of = trained(KINDS[name], narrow=True)
    assert _steps_off(_converted(of, "int8"), of) < 2.01


@pytest.mark.parametrize("bits", [4, 8, 16])
@pytest.mark.parametrize("quantize", [None, "float16", "int4", "int8"])
@pytest.mark.parametrize("name", ["nothing", "conv_swish", "dense_gelu", "average_pool"])
def test_ranges_of_any_bits_are_kept_next_to_floats_and_integers(bits: int, quantize: Any, name: str) -> None:
    of = trained(KINDS[name], bits=bits)
    halves = 5e-4 if quantize == "float16" else 0.0  # weights in halves are not exactly those of training
    assert _steps_off(_converted(of, quantize), of) * of.step < 2.01 * of.step + halves


@pytest.mark.parametrize("name", [*_SOME, "log", "layer_norm", "resize_bilinear", "transposed_conv"])
@pytest.mark.parametrize("activations", ["int8", "int16"])
def test_data_does_not_widen_the_ranges_of_training(name: str, activations: Any) -> None:
    of = trained(KINDS[name])
    how = Quantization(activations=activations, data=[[x] for x in of.inputs], bias_correction=True, equalize=True)
    assert _steps_off(_converted(of, how), of) < 3.01


@pytest.mark.parametrize("name", ["conv", "conv_relu", "depthwise", "concatenation", "relu6"])
def test_sixteen_bits_keep_ranges_without_a_zero_point(name: str) -> None:
    """A range of 16 bits is symmetric; one that is not stays a node, unless nothing lies on its other side."""
    of = trained(KINDS[name], bits=16)
    assert _steps_off(_converted(of, Quantization(activations="int16")), of) < 6


@pytest.mark.parametrize("name", ["conv_relu", "two_dense", "average_pool", "max_pool", "concatenation"])
def test_layers_that_stay_in_float_have_their_ranges(name: str) -> None:
    of = trained(KINDS[name])
    layers = ("CONV_2D", "FULLY_CONNECTED", "AVERAGE_POOL_2D", "MAX_POOL_2D", "CONCATENATION", "REVERSE_V2")
    for skip in layers:
        if skip in {node.op.name for node in read(_converted(of, None)).subgraphs[0].nodes}:
            assert _steps_off(_converted(of, Quantization(activations="int8", skip=(skip,))), of) < 2.01
    of_file = Converter.from_tflite(_converted(of, None), quantize="int8").convert()
    assert _steps_off(of_file, of) < 2.01


@pytest.mark.parametrize("name", ["nothing", "conv_swish", "u_net", "efficient_net"])
def test_inputs_and_outputs_in_integers_have_the_scales_of_training(name: str) -> None:
    of = trained(KINDS[name])
    content = _converted(of, Quantization(activations="int8", input_type="int8", output_type="uint8"))
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    for x in of.inputs:
        scale, zero = given["quantization"]
        steps = np.clip(np.floor(x / scale + 0.5) + zero, -128, 127).astype(np.int8)
        interpreter.set_tensor(given["index"], steps)
        interpreter.invoke()
        scale, zero = made["quantization"]
        got = (interpreter.get_tensor(made["index"]).astype(np.float64) - zero) * scale
        assert np.abs(got - of.function(x).numpy()).max() / of.step < 2.01


@pytest.mark.parametrize("quantize", [None, "int8"])
def test_a_range_of_zero_makes_zeros(quantize: Any) -> None:
    """A channel that training has switched off has such a range."""

    @tf.function(input_signature=[tf.TensorSpec([2, 6])], autograph=False)  # type: ignore[untyped-decorator]
    def function(x: Any) -> Any:
        x = tf.quantization.fake_quant_with_min_max_vars(x, -1.0, 1.0)
        return x + tf.quantization.fake_quant_with_min_max_vars(tf.nn.relu(x), 0.0, 0.0)

    x = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
    content = Converter.from_concrete_functions([function.get_concrete_function()], quantize=quantize).convert()
    for got in (_run(content, x), oracle.run(content, [x])[0]):
        np.testing.assert_allclose(got, function(x), atol=1e-6)
