"""Networks that people convert, as rows of the table of conversions."""

from collections.abc import Callable, Iterator
from typing import Any

import keras

from support.conversion_rows import Row, keras_rows
from support.keras_models import randomise, stack

L = keras.layers
_A = keras.applications


def _unet() -> Any:
    x = inputs = keras.Input((32, 32, 3))
    skips = []
    for filters in (8, 16):
        x = L.LeakyReLU()(L.BatchNormalization()(L.Conv2D(filters, 3, padding="same")(x)))
        skips.append(x)
        x = L.MaxPooling2D()(x)
    x = L.Conv2D(32, 3, padding="same", dilation_rate=2, activation="relu")(x)
    for filters, skip in zip((16, 8), reversed(skips), strict=True):
        x = L.Conv2DTranspose(filters, 3, strides=2, padding="same")(x)
        x = L.Conv2D(filters, 3, padding="same", activation="relu")(L.Concatenate()([x, skip]))
    return keras.Model(inputs, L.Conv2D(2, 1)(L.UpSampling2D(2, interpolation="bilinear")(x)))


def _transformer() -> Any:
    x = inputs = keras.Input((12,), dtype="int32")
    x = L.Embedding(50, 16)(x)
    for _ in range(2):
        x = L.LayerNormalization()(L.Add()([x, L.MultiHeadAttention(2, 8)(x, x)]))
        x = L.LayerNormalization()(L.Add()([x, L.Dense(16)(L.Dense(32, activation="gelu")(x))]))
    return keras.Model(inputs, L.Dense(3)(L.GlobalAveragePooling1D()(x)))


def _classifier() -> Any:
    return stack(
        L.Embedding(50, 8),
        L.Bidirectional(L.LSTM(8, return_sequences=True)),
        L.Bidirectional(L.LSTM(8)),
        L.Dense(16, activation="relu"),
        L.Dense(2),
        shape=(20,),
        dtype="int32",
    )


def _preprocessing() -> Any:
    return stack(
        L.Resizing(24, 24),
        L.Rescaling(1 / 127.5, -1),
        L.CenterCrop(16, 16),
        L.Normalization(mean=[0.1, 0.2, 0.3], variance=[1.0, 2.0, 3.0]),
        L.ZeroPadding2D(1),
        L.AveragePooling2D(2),
        shape=(40, 30, 3),
    )


def _image(make: Callable[..., Any], size: int) -> Callable[[], Any]:
    return lambda: make(weights=None, input_shape=(size, size, 3), classes=10, classifier_activation=None)


_ZOO: dict[str, Callable[[], Any]] = {
    "MobileNetV2": _image(_A.MobileNetV2, 96),
    "MobileNetV3Small": _image(_A.MobileNetV3Small, 96),
    "ResNet50": _image(_A.ResNet50, 64),
    "EfficientNetB0": _image(_A.EfficientNetB0, 64),
    "DenseNet121": _image(_A.DenseNet121, 64),
    "InceptionV3": _image(_A.InceptionV3, 96),
    "ConvNeXtTiny": _image(_A.ConvNeXtTiny, 64),
    "U-Net": _unet,
    "transformer of two blocks": _transformer,
    "Bidirectional LSTM classifier": _classifier,
    "preprocessing": _preprocessing,
}


def zoo(batches: tuple[int | None, ...] = (None, 1)) -> Iterator[Row]:
    """Every network with an open batch and with a batch of one."""
    for name, build in _ZOO.items():
        model = randomise(build())
        for batch in batches:
            fixed = model if batch is None else _with_batch(model, batch)
            yield from keras_rows(fixed, f"{name}, batch {batch}", (1, 2) if batch is None else (1,), export=False)
        keras.backend.clear_session()


def _with_batch(model: Any, batch: int) -> Any:
    x = keras.Input(model.inputs[0].shape[1:], batch_size=batch, dtype=model.inputs[0].dtype)
    return keras.Model(x, model(x))
