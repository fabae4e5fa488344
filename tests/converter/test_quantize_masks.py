"""Masks of attention in integers: what hides scores must leave them their precision."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

keras = pytest.importorskip("keras")

from litecl.converter import Converter, Quantization  # noqa: E402
from litecl.converter.quantization.masks import with_near_masks  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.schema import TensorType  # noqa: E402
from support.conversion import invoke, runtimes  # noqa: E402
from support.keras_models import randomise, stack  # noqa: E402

L, ops = keras.layers, keras.ops
_LENGTH = 6


class _Added(L.Layer):  # type: ignore[misc]
    """Self-attention with a causal mask that is added to, or subtracted from, the scores."""

    def __init__(self, number: float, *, subtract: bool = False, activation: Any = None) -> None:
        super().__init__()
        self.number, self.subtract, self.activation = number, subtract, activation

    def call(self, x: Any) -> Any:
        bias = np.linspace(-1, 1, _LENGTH, dtype=np.float32)  # not all else in the constant is zero
        mask = np.where(np.tri(_LENGTH, dtype=bool), bias, np.float32(-self.number))
        scores = ops.matmul(x, ops.swapaxes(x, 1, 2))
        masked = scores - -mask if self.subtract else scores + mask
        weights = ops.softmax(masked if self.activation is None else self.activation(masked))
        return ops.matmul(weights, x)


class _Self(L.Layer):  # type: ignore[misc]
    """An attention layer of Keras, with a causal mask."""

    def __init__(self, layer: Any, *, as_list: bool) -> None:
        super().__init__()
        self.layer, self.as_list = layer, as_list

    def call(self, x: Any) -> Any:
        return self.layer([x, x], use_causal_mask=True) if self.as_list else self.layer(x, x, use_causal_mask=True)


_MASKED: dict[str, Callable[[], Any]] = {
    "selected": lambda: _Self(L.MultiHeadAttention(2, 4), as_list=False),
    "selected where lowered": lambda: _Self(L.Attention(), as_list=True),
    "added": lambda: _Added(1e9),
    "added infinity": lambda: _Added(np.inf),
    "added half": lambda: _Added(65504.0),
    "subtracted": lambda: _Added(1e9, subtract=True),
    "several": lambda: keras.Sequential([_Added(1e9), _Self(L.Attention(), as_list=True), _Added(1e5)]),
}


def _model(layer: Any) -> Any:
    return randomise(stack(layer, shape=(_LENGTH, 8)))


def _data() -> list[list[Any]]:
    random = np.random.default_rng(3)
    return [[random.standard_normal((1, _LENGTH, 8)).astype(np.float32)] for _ in range(8)]


@pytest.mark.parametrize(("activations", "tolerance"), [("int8", 0.05), ("int16", 0.02)])  # weights have 8 bits
@pytest.mark.parametrize("make", _MASKED.values(), ids=_MASKED)
def test_scores_keep_their_precision(make: Callable[[], Any], activations: Any, tolerance: float) -> None:
    model, data = _model(make()), _data()
    content = Converter.from_keras_model(
        model,
        input_shapes={model.inputs[0].name: (1, _LENGTH, 8)},
        quantize=Quantization(activations=activations, data=data),
    ).convert()
    for runtime in runtimes(content):
        for (x,) in data:
            wanted = np.asarray(model(x))
            np.testing.assert_allclose(invoke(runtime, [x])[0], wanted, atol=tolerance * np.abs(wanted).max())


@pytest.mark.parametrize("outputs", [False, True], ids=["before relu", "returned too"])
def test_what_else_is_huge_stays(outputs: bool) -> None:
    x = keras.Input((_LENGTH, _LENGTH))
    masked = x + np.where(np.tri(_LENGTH, dtype=bool), 0, np.float32(-1e9))
    masked = masked if outputs else ops.relu(masked)  # what is hidden becomes zero, and counts
    model = Converter.from_keras_model(
        keras.Model(x, [ops.softmax(masked), masked] if outputs else ops.softmax(masked))
    ).convert_to_model()
    (signature,) = model.signatures
    (name,) = signature.inputs
    sample = np.random.default_rng(3).standard_normal((1, _LENGTH, _LENGTH)).astype(np.float32)
    assert with_near_masks(model, TensorType.INT8, [(signature, {name: sample})]) is model


@pytest.mark.parametrize("beyond", [20.0, -20.0])
def test_masks_of_biased_scores_hide_as_before(beyond: float) -> None:
    """Scores that a first mask moves are on the same side of what a second one hides as before."""
    x = keras.Input((_LENGTH, _LENGTH))
    causal = np.where(np.tri(_LENGTH, dtype=bool), beyond, -1e9).astype(np.float32)
    scores = ops.where(np.arange(_LENGTH) != 2, x + causal, np.float32(-1e9))
    model = Converter.from_keras_model(keras.Model(x, ops.softmax(scores))).convert_to_model()
    (signature,) = model.signatures
    (name,) = signature.inputs
    sample = np.random.default_rng(3).standard_normal((1, _LENGTH, _LENGTH)).astype(np.float32)
    near = with_near_masks(model, TensorType.INT8, [(signature, {name: sample})])
    assert near is not model
    wanted, got = (Interpreter(each).get_signature_runner()(**{name: sample}) for each in (model, near))
    np.testing.assert_allclose([*got.values()], [*wanted.values()], atol=1 / 512)
