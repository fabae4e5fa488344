"""Writes the sample: the model, one image, and images with their digits."""

import errno
import os
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO

import numpy as np

from litecl.generate.litertlm import Section, packed, written
from litecl.interpreter.file.writer import write as write_model
from litecl.interpreter.graph import Model, Signature
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding
from litecl.interpreter.whole_files import whole_folder
from litecl.perf.models.build import Graph, model
from litecl.sample import words
from litecl.sample.causal_lm import CausalLM
from litecl.sample.digits import SIDE, draw
from litecl.sample.training import FILTERS, POOL, WINDOW, Weights, train

_NAMES = (
    *("model.tflite", "image.npy", "images.npz", "digits.txt"),
    *("language_model.tflite", "tokenizer.json", "tokenizer_config.json", "language_model.litertlm"),
)
_TRAINING, _UNSEEN = 2000, 200  # images
_SEEDS = 1, 2, 3


@dataclass(frozen=True)
class Sample:
    """The sample's files. shown: the digit in ``image``.

    model: maps "image", float32 [-1, 8, 8, 3] of 0 to 1, to "probabilities" [-1, 10]. image: one image, a .npy file.
    images: images not trained on, as "image" of a .npz file; digits: their digits, one per line.
    language_model: one that writes words at random, with its ``tokenizer`` and the tokenizer's ``config``; bundle: all
    of it in one file.
    """

    model: Path
    image: Path
    images: Path
    digits: Path
    language_model: Path
    tokenizer: Path
    config: Path
    bundle: Path
    _: KW_ONLY
    shown: int


def write(folder: Path) -> Sample:
    """Train the model, in a few seconds, and write all files to a folder, creating it if needed.

    All seeds are fixed; another version of numpy may round weights differently. Raises OSError, FileExistsError for a
    file of one of the names with another content, which stays as it is.
    """
    unseen = draw(_UNSEEN, _SEEDS[0])
    language_model, tokenizer = write_model(_language_model()), words.tokenizer().encode()
    parts = {"metadata": words.metadata(), "JSON tokenizer": packed(tokenizer), "model": language_model}
    types = {"model": "prefill_decode"}
    sections = [Section(kind, types.get(kind, ""), memoryview(part)) for kind, part in parts.items()]
    contents = (
        write_model(_model(train(draw(_TRAINING, _SEEDS[1]), _SEEDS[2]))),
        _saved(partial(np.save, arr=unseen.pixels[:1])),
        _saved(partial(np.savez, image=unseen.pixels)),
        "".join(f"{digit}\n" for digit in unseen.digits).encode(),
        *(language_model, tokenizer, words.config().encode(), written(sections)),
    )
    paths = [folder / name for name in _NAMES]
    for path, content in zip(paths, contents, strict=True):
        if os.path.lexists(path) and not (path.is_file() and path.read_bytes() == content):
            raise FileExistsError(errno.EEXIST, "it is not the sample's, which would replace it", str(path))
    with whole_folder(folder) as new:
        for name, content in zip(_NAMES, contents, strict=True):
            new(name).write(content)
    return Sample(*paths, shown=int(unseen.digits[0]))


def _saved(save: Callable[[IO[bytes]], object]) -> bytes:
    file = BytesIO()
    save(file)
    return file.getvalue()


def _language_model() -> Model:
    biases = words.biases()
    made = CausalLM(len(biases), 32, 4, 256, (64, 16, 4))
    made.weights["out_bias"] = biases
    return made.model()


def _model(weights: Weights) -> Model:
    g = Graph("digits")
    image = g.input((1, SIDE, SIDE, 3))
    filters = weights.filters.reshape(WINDOW, WINDOW, 3, FILTERS).transpose(3, 0, 1, 2)
    relu = Conv2DOptions(Padding.SAME, 1, 1, ActivationFunctionType.RELU, 1, 1)
    seen = g.op(CONV_2D, (image, g.const(filters), g.const(weights.filter_bias)), relu)
    pooled = g.op(AVERAGE_POOL_2D, (seen,), Pool2DOptions(Padding.VALID, POOL, POOL, POOL, POOL))
    cells = -1, len(weights.dense)
    flat = g.op(RESHAPE, (pooled, g.const(np.array(cells, np.int32))), ReshapeOptions(cells))
    dense = g.const(np.ascontiguousarray(weights.dense.T)), g.const(weights.dense_bias)
    y = g.op(SOFTMAX, (g.op(FULLY_CONNECTED, (flat, *dense), FullyConnectedOptions()),), SoftmaxOptions(1.0))
    for tensor, name in ((image, "image"), (y, "probabilities")):
        spec = g.tensors[tensor]
        g.tensors[tensor] = replace(spec, name=name, shape_signature=(-1, *(spec.shape or ())[1:]))
    return model(g.build(y), signatures=[Signature("serving_default", {"image": image}, {"probabilities": y})])
