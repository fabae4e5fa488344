"""Models with signatures to train, infer, save and restore, as TensorFlow's guide to on-device training has them."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from litecl.interpreter.graph import Array

CLASSES = 10


def dense() -> Any:
    """The network of the guide."""
    layers = [keras.layers.Flatten(), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(CLASSES)]
    return keras.Sequential([keras.Input((28, 28)), *layers])


def convolutional() -> Any:
    """Convolutions, with separate channels too, batch normalization and both pools.

    A bias before batch normalization has a gradient of zero, whose rounding errors Adam would scale to whole steps.
    """
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((12, 11, 1)),
            layers.Conv2D(4, 3, strides=2, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(6.0),
            layers.DepthwiseConv2D(3, padding="same", activation="relu"),
            layers.MaxPooling2D(2, padding="same"),
            layers.Conv2D(8, 2, activation="gelu"),
            layers.AveragePooling2D(2, strides=1),
            layers.Flatten(),
            layers.Dense(CLASSES),
        ]
    )


def small() -> Any:
    """A convolution, a pool and a layer."""
    layers = keras.layers
    first = layers.Conv2D(3, 3, strides=2, padding="same", activation="relu")
    rest = [layers.MaxPooling2D(2), layers.Flatten(), layers.Dense(CLASSES)]
    return keras.Sequential([keras.Input((7, 6, 1)), first, *rest])


class Trained(tf.Module):
    """A Keras model with an optimizer, and the signatures ``train``, ``infer``, ``save`` and ``restore``."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        super().__init__()
        model.compile(optimizer, keras.losses.CategoricalCrossentropy(from_logits=True))
        model.optimizer.build(model.trainable_variables)
        self.model = model
        image = tf.TensorSpec([None, *model.input_shape[1:]], name="x")
        label, path = tf.TensorSpec([None, CLASSES], name="y"), tf.TensorSpec([], tf.string)
        signatures = {"train": [image, label], "infer": [image], "save": [path], "restore": [path]}
        self.functions = {
            key: tf.function(getattr(self, key), specs, autograph=False) for key, specs in signatures.items()
        }

    def train(self, x: Any, y: Any) -> Any:
        """Make a step on a batch."""
        with tf.GradientTape() as tape:
            loss = self.model.loss(y, self.model(x, training=True))
        variables = self.model.trainable_variables
        self.model.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return {"loss": loss}

    def infer(self, x: Any) -> Any:
        """Compute logits."""
        logits = self.model(x)
        return {"output": tf.nn.softmax(logits), "logits": logits}

    def save(self, checkpoint_path: Any) -> Any:
        """Write all weights."""
        weights = self.model.weights
        tf.raw_ops.Save(
            filename=checkpoint_path, tensor_names=[w.path for w in weights], data=[w.value for w in weights]
        )
        return {"checkpoint_path": checkpoint_path}

    def restore(self, checkpoint_path: Any) -> Any:
        """Read them."""
        for w in self.model.weights:
            value = tf.raw_ops.Restore(file_pattern=checkpoint_path, tensor_name=w.path, dt=w.dtype)
            w.assign(tf.ensure_shape(value, w.shape))
        return {"checkpoint_path": checkpoint_path}


def batches(shape: tuple[int, ...], count: int = 5, size: int = 8) -> list[tuple[Array, Array]]:
    """Images and the classes that they were made of."""
    random = np.random.default_rng(3)
    classes = random.integers(0, CLASSES, (count, size))
    images = random.random((count, size, *shape), np.float32) + 0.1 * classes.reshape(count, size, *[1] * len(shape))
    return list(zip(images.astype(np.float32), np.eye(CLASSES, dtype=np.float32)[classes], strict=True))
