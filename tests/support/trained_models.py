"""Keras models that are trained for a minute on synthetic data, so that their accuracy is meaningful."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from litecl.interpreter.graph import Array

L = keras.layers
_CLASSES = 8
_EDGE, _SMALL = 48, 32


@dataclass(frozen=True)
class Task:
    """A model to train, and what it learns.

    data: of a generator and a number, that many samples and their classes. warm: the steps in which the rate rises.
    norm: what gradients are clipped to. smoothing, decay: of classes and of weights, which keep what a model computes
    from growing. calibrated: how many samples ranges are measured on.
    """

    name: str
    build: Callable[[], Any]
    data: Callable[[np.random.Generator, int], tuple[Array, Array]]
    steps: int
    batch: int = 32
    rate: float = 1e-3
    warm: int = 0
    norm: float | None = None
    smoothing: float = 0.0
    decay: float = 0.0
    calibrated: int = 64


@dataclass(frozen=True)
class Trained:
    """A trained model with samples to calibrate on, samples to test on, and the classes of those."""

    task: Task
    model: Any
    calibration: Array
    images: Array
    classes: Array


def train(task: Task, tested: int, seed: int = 7) -> Trained:
    """Return a task's trained model, with data that it has not seen."""
    keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    model = task.build()
    loss = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=task.smoothing)
    model.compile(keras.optimizers.AdamW(_schedule(task), task.decay, global_clipnorm=task.norm), loss)
    x, y = task.data(rng, task.steps * task.batch)
    model.fit(x, np.eye(_CLASSES, dtype=np.float32)[y], batch_size=task.batch, epochs=1, verbose=0)
    images, classes = task.data(np.random.default_rng(seed + 1), tested)
    return Trained(task, model, x[: task.calibrated], images, classes)


def _schedule(task: Task) -> Any:
    if not task.warm:
        return keras.optimizers.schedules.CosineDecay(task.rate, task.steps)
    return keras.optimizers.schedules.CosineDecay(
        task.rate / 20, task.steps - task.warm, warmup_target=task.rate, warmup_steps=task.warm
    )


def _gratings(
    rng: np.random.Generator, count: int, edge: int = _EDGE, fewest: int = 4, most: int = 8
) -> tuple[Array, Array]:
    """Return images of stripes in noise: the direction of the stripes, between two numbers of them, is the class."""
    classes = rng.integers(0, _CLASSES, count)
    down, across = np.mgrid[:edge, :edge] / edge
    angle = (classes + rng.normal(0, 0.16, count)) * np.pi / _CLASSES
    along = np.cos(angle)[:, None, None] * across + np.sin(angle)[:, None, None] * down
    waves = np.sin(
        2 * np.pi * (rng.uniform(fewest, most, count)[:, None, None] * along + rng.random(count)[:, None, None])
    )
    images = waves[..., None] * rng.uniform(0.3, 1, (count, 1, 1, 3)) + rng.normal(0, 0.4, (count, edge, edge, 3))
    return images.astype(np.float32), classes.astype(np.int32)


def _pixels(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Return smaller images of fewer stripes, as numbers from 0 to 255."""
    images, classes = _gratings(rng, count, _SMALL, 2, 5)
    return np.clip(images * 64 + 128, 0, 255), classes


def _signals(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Return signals of 32 steps and 4 channels: the class says how often they swing, with noise and drift."""
    classes = rng.integers(0, _CLASSES, count)
    step = np.arange(32)[None, :, None]
    often = (classes[:, None, None] + 2 + rng.normal(0, 0.15, (count, 1, 1))) / 40
    signal = np.sin(2 * np.pi * (often * step + rng.random((count, 1, 4)))) + rng.normal(0, 0.8, (count, 32, 4))
    return (signal + rng.normal(0, 0.02, (count, 1, 4)) * step).astype(np.float32), classes.astype(np.int32)


def _tokens(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Return sentences of 24 tokens: the class is the one of the first 8 tokens that is there most often."""
    tokens = rng.integers(_CLASSES, 32, (count, 24))
    classes, others = rng.integers(0, _CLASSES, count), rng.integers(0, _CLASSES, (count, 3))
    places = rng.random((count, 24)).argsort(-1)[:, :7]
    planted = np.concatenate([np.repeat(classes[:, None], 3, 1), np.repeat(others[:, :2], 2, 1)], 1)
    np.put_along_axis(tokens, places, planted, 1)
    wrong = rng.random(count) < 0.04
    return tokens.astype(np.int32), np.where(wrong, others[:, 2], classes).astype(np.int32)


def _network(
    make: Callable[..., Any], edge: int = _EDGE, momentum: float = 0.8, dropout: float = 1.0
) -> Callable[[], Any]:
    """Return what builds a network for images of an edge, whose statistics settle within a minute.

    dropout: the share of the usual dropout, of whole blocks too, that is left.
    """

    def build() -> Any:
        model = make(weights=None, input_shape=(edge, edge, 3), classes=_CLASSES, classifier_activation=None)
        for layer in model._flatten_layers():
            if isinstance(layer, L.BatchNormalization):
                layer.momentum = momentum
            if isinstance(layer, L.Dropout):
                layer.rate *= dropout
        return model

    return build


def _lstm() -> Any:
    return keras.Sequential([keras.Input((32, 4)), L.LSTM(32), L.Dense(_CLASSES)])


def _stacked_lstms() -> Any:
    layers = [L.Bidirectional(L.LSTM(24, return_sequences=True)), L.LSTM(48)]
    return keras.Sequential([keras.Input((32, 4)), *layers, L.Dense(32, activation="relu"), L.Dense(_CLASSES)])


def _cnn() -> Any:
    layers: list[Any] = [keras.Input((_SMALL, _SMALL, 3))]
    for channels in (32, 64, 128):
        layers += [L.Conv2D(channels, 3, padding="same", activation="relu"), L.BatchNormalization(), L.MaxPooling2D()]
    return keras.Sequential([*layers, L.Flatten(), L.Dense(128, activation="relu"), L.Dense(_CLASSES)])


def _vit() -> Any:
    """Return a vision transformer: patches of 8 by 8 pixels, three blocks of 64 channels."""
    image = keras.Input((_SMALL, _SMALL, 3))
    x = L.Reshape((16, 64))(L.Conv2D(64, 8, 8)(L.Rescaling(1 / 64, -2.0)(image)))
    x = x + L.Embedding(16, 64)(keras.ops.arange(16, dtype="int32"))
    for _ in range(3):
        y = L.LayerNormalization()(x)
        x = x + L.MultiHeadAttention(4, 16)(y, y)
        x = x + L.Dense(64)(L.Dense(128, activation="gelu")(L.LayerNormalization()(x)))
    return keras.Model(image, L.Dense(_CLASSES)(L.GlobalAveragePooling1D()(L.LayerNormalization()(x))))


def _transformer() -> Any:
    tokens = keras.Input((24,), dtype="int32")
    places = keras.ops.arange(24, dtype="int32")
    x = L.Embedding(32, 32)(tokens) + L.Embedding(24, 32)(places)
    for _ in range(2):
        y = L.LayerNormalization()(x)
        x = x + L.MultiHeadAttention(4, 8)(y, y)
        x = x + L.Dense(32)(L.Dense(64, activation="relu")(L.LayerNormalization()(x)))
    return keras.Model(tokens, L.Dense(_CLASSES)(L.GlobalMaxPooling1D()(L.LayerNormalization()(x))))


_A = keras.applications


def _mobile_net_v3(**options: Any) -> Any:
    return _A.MobileNetV3Small(minimalistic=False, **options)


TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        Task("MobileNetV2", _network(_A.MobileNetV2), _gratings, 200),
        Task("ResNet50", _network(_A.ResNet50), _gratings, 100),
        Task(
            "EfficientNetB0",
            _network(_A.EfficientNetB0, _SMALL, 0.9, dropout=0.0),
            _pixels,
            400,
            warm=50,
            norm=1.0,
            smoothing=0.1,
            decay=0.3,
            calibrated=256,
        ),
        Task("LSTM", _lstm, _signals, 900, batch=64, rate=6e-3),
        Task("LSTMs", _stacked_lstms, _signals, 500, batch=64, rate=4e-3),
        Task("CNN", _cnn, _pixels, 250),
        Task("MobileNetV3", _network(_mobile_net_v3, _SMALL, 0.9, dropout=0.0), _pixels, 250, warm=30, norm=1.0),
        Task("ViT", _vit, _pixels, 700, rate=2e-3, warm=50),
        Task("transformer", _transformer, _tokens, 1200, rate=2e-3),
    )
}
