"""Files that pages take to be their reader's own: models of other kinds, photos, data."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def _keras_model(path: Path) -> None:
    import keras

    layers = [keras.Input((16,), batch_size=1, name="x"), keras.layers.Dense(4, "relu"), keras.layers.Dense(2)]
    keras.Sequential(layers).save(path)


def _saved_model(path: Path) -> None:
    import keras

    layers = [keras.layers.AveragePooling2D(32), keras.layers.Flatten(), keras.layers.Dense(2)]
    keras.Sequential([keras.Input((224, 224, 3), name="image"), *layers]).export(path, verbose=False)


def _frozen_graph(path: Path) -> None:
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [1, 4], name="x")
        tf.nn.relu(x * 2.0, name="y")
    path.write_bytes(graph.as_graph_def().SerializeToString())


def _functions(path: Path) -> None:
    path.write_text(
        "import tensorflow as tf\n\n\n"
        "@tf.function(input_signature=[tf.TensorSpec([4])])\ndef halved(x):\n    return x / 2\n"
    )


def _photos(folder: Path) -> None:
    folder.mkdir()
    for number in range(3):
        _photo(folder / f"{number}.jpg")


def _photo(path: Path) -> None:
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (32, 48, 3), np.uint8)).save(path)


def _classifier(path: Path) -> None:
    shutil.copy("model.tflite", path)


def _recipe(path: Path) -> None:
    weights = {"num_bits": 8, "granularity": "CHANNELWISE"}
    config = {"weight_tensor_config": weights, "compute_precision": "INTEGER", "explicit_dequantize": False}
    entry = {"regex": ".*", "operation": "*", "algorithm_key": "min_max_uniform_quantize", "op_config": config}
    path.write_text(json.dumps([entry]))


FILES: Mapping[str, Callable[[Path], Any]] = {
    "model.keras": _keras_model,
    "saved_model_folder": _saved_model,
    "graph.pb": _frozen_graph,
    "functions.py": _functions,
    "recipe.json": _recipe,
    "images": _photos,
    "photo.jpg": _photo,
    "data.npz": lambda path: np.savez(path, x=np.random.default_rng(1).standard_normal((8, 16)).astype(np.float32)),
    **dict.fromkeys(("float.tflite", "int8.tflite", "before.tflite", "after.tflite"), _classifier),
}
"""What makes each, given its path; the copies are of the sample, which is in the current folder."""
