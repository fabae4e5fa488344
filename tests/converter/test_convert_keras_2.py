"""Models of Keras 2 handed over as objects, and quantization-aware ones of tfmot. Neither package is required."""

import os
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("tf_keras", reason="needs tf_keras, which is no requirement of the tests")

from litecl.converter import Converter  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.file.reader import read  # noqa: E402
from litecl.interpreter.graph import Model  # noqa: E402
from support.conversion import assert_all_close, invoke, litert  # noqa: E402


def _functional() -> Any:
    layers = keras.layers
    image = keras.Input((12, 12, 3))
    x = layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same", use_bias=False)(image))
    x = layers.MaxPooling2D()(layers.ReLU(6.0)(layers.DepthwiseConv2D(3)(layers.ReLU()(x))))
    x = layers.GlobalAveragePooling2D()(layers.Add()([x, layers.Conv2D(8, 1)(x)]))
    return keras.Model(image, layers.Dense(4, activation="softmax")(x))


class Subclassed(keras.Model):  # type: ignore[misc]
    """A model whose inputs are known once it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(4)

    def call(self, x: Any, training: bool = False) -> Any:
        """Add noise only in training."""
        return self.dense(tf.reduce_mean(x, (1, 2))) + (1.0 if training else 0.0)


def _x() -> Any:
    return np.random.default_rng(1).standard_normal((2, 12, 12, 3)).astype(np.float32)


@pytest.mark.parametrize("build", [_functional, Subclassed])
def test_models(build: Any) -> None:
    model = build()
    wanted = model(_x()).numpy()
    content = Converter.from_keras_model(model).convert()
    for runtime in (litert(content), Interpreter(model_content=content)):
        assert_all_close(invoke(runtime, [_x()]), [wanted])


def _integers(model: Model) -> list[Any]:
    """Return operators, constants, and the scales of results."""
    rows = []
    for graph in model.subgraphs:
        for node in graph.nodes:
            operands = [graph.tensors[t] for t in node.inputs if t >= 0]
            constants = [(s.type, s.data.shape, s.data.tobytes()) for s in operands if s.data is not None]
            results = [graph.tensors[t].quantization for t in node.outputs]
            scales = [None if q is None else (q.scale.tolist(), q.zero_point.tolist()) for q in results]
            rows.append((node.op.name, constants, scales))
    return rows


@pytest.mark.skipif(os.environ.get("TF_USE_LEGACY_KERAS") != "1", reason="tfmot needs TF_USE_LEGACY_KERAS=1")
def test_a_quantization_aware_model_has_the_integers_of_tensorflow() -> None:
    tfmot = pytest.importorskip("tensorflow_model_optimization", reason="needs tensorflow-model-optimization")
    keras.utils.set_random_seed(0)
    model = tfmot.quantization.keras.quantize_model(_functional())
    model.compile("adam", "categorical_crossentropy")
    random = np.random.default_rng(0)
    x, y = random.standard_normal((32, 12, 12, 3)), np.eye(4)[random.integers(0, 4, 32)]
    model.fit(x, y, batch_size=16, verbose=0)
    peer = tf.lite.TFLiteConverter.from_keras_model(model)
    peer.optimizations = [tf.lite.Optimize.DEFAULT]
    content = Converter.from_keras_model(model, quantize="int8").convert()
    assert _integers(read(content)) == _integers(read(peer.convert()))
    wanted = invoke(litert(content, "reference"), [_x()])
    np.testing.assert_array_equal(invoke(Interpreter(model_content=content), [_x()]), wanted)
