"""Trains a small language model in Keras on Python's own documentation, and generates text with it on the device.

A transformer of Keras layers reads characters. The converter gives it caches: signatures "prefill_8", "prefill_32" and
"decode", in float32 and with weights of 8 and 4 bits. ``litecl.Generator`` runs the files, and so does LiteRT.

    python examples/language_model.py                   trains for a minute, then generates
    python examples/language_model.py --steps 2000      trains for longer
    litecl bench language_model_int4.tflite --generate --against litert
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import keras
import numpy as np
from keras import layers, ops

import litecl
from litecl.converter import Converter, Quantization

WIDTH, HEADS, DEPTH, LENGTH = 128, 4, 2, 128
FORMS: dict[str, Any] = {
    "float32": None,
    "int8": "int8",
    "int4": "int4",
    "weight_only_int4": Quantization(recipe="weight_only_wi4_afp32"),
}


class Characters:
    """A tokenizer: a token is a character of ASCII; all others are its last."""

    stop_tokens: Sequence[int] = ()

    def encode(self, text: str, first: bool = True) -> list[int]:
        """Return the tokens of a text."""
        return [min(ord(character), 127) for character in text]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""
        return "".join(map(chr, tokens))


class Embeddings(layers.Layer):
    """A vector for each character, plus one for its position."""

    def __init__(self) -> None:
        super().__init__()
        wide = keras.initializers.RandomNormal(stddev=0.3)
        self.characters = layers.Embedding(128, WIDTH, embeddings_initializer=wide)
        self.positions = layers.Embedding(LENGTH, WIDTH, embeddings_initializer=wide)

    def call(self, tokens: Any) -> Any:
        """Return vectors [batch, tokens, width]."""
        return self.characters(tokens) + self.positions(ops.arange(ops.shape(tokens)[1]))


def transformer() -> keras.Model:
    """Return a model of tokens [batch, tokens] to logits [batch, tokens, 128]."""
    tokens = keras.Input((None,), dtype="int32")
    x = Embeddings()(tokens)
    for _ in range(DEPTH):
        y = layers.LayerNormalization(epsilon=1e-5)(x)
        x += layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(y, y, use_causal_mask=True)
        y = layers.LayerNormalization(epsilon=1e-5)(x)
        x += layers.Dense(WIDTH)(layers.Dense(4 * WIDTH, activation="gelu")(y))
    return keras.Model(tokens, layers.Dense(128)(layers.LayerNormalization(epsilon=1e-5)(x)))


def documentation() -> np.ndarray:
    """Return the tokens of what ``help()`` shows on Python's language."""
    return np.array(Characters().encode("\n\n".join(topics.values())), np.int32)


def train(model: keras.Model, text: np.ndarray, steps: int, batch: int = 16) -> None:
    """Train to tell each next character."""
    rate = keras.optimizers.schedules.CosineDecay(0.0, steps, 0.0, warmup_target=6e-3, warmup_steps=steps // 20)
    model.compile(keras.optimizers.AdamW(rate), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    starts = np.random.default_rng(0).integers(0, len(text) - LENGTH, steps * batch)
    rows = text[starts[:, None] + np.arange(LENGTH + 1)]
    model.fit(rows[:, :-1], rows[:, 1:], batch_size=batch, shuffle=False, verbose=2)


def export(model: keras.Model, folder: Path) -> dict[str, Path]:
    """Write the model in all forms; return the files."""
    paths = {form: folder / f"language_model_{form}.tflite" for form in FORMS}
    for form, path in paths.items():
        path.write_bytes(Converter.from_keras_causal_lm(model, LENGTH, quantize=FORMS[form]).convert())
    return paths


def bits(path: Path, text: Sequence[int]) -> float:
    """Return how many bits a file's model needs for a character, on a text that fits into its caches."""
    session = litecl.Generator(path, tokenizer=Characters()).session()
    log_probs = session.score(text)
    return -float(np.mean(log_probs[1:])) / float(np.log(2))


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, export and generate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500, help="of training (default: 500)")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the files are written (default: here)")
    parser.add_argument("--prompt", default="The statement", help="(default: %(default)r)")
    args = parser.parse_args(arguments)
    text, model = documentation(), transformer()
    unseen = text[-20 * LENGTH :]
    train(model, text[: -20 * LENGTH], args.steps)
    for form, path in export(model, args.folder).items():
        generator = litecl.Generator(path, tokenizer=Characters())
        result = generator.generate(args.prompt, max_tokens=LENGTH - len(args.prompt), temperature=0.5, seed=1)
        kilobytes, each = path.stat().st_size / 1e3, bits(path, unseen[:LENGTH].tolist())
        print(f"--- {form}: {kilobytes:.0f} kB, {each:.2f} bits a character")
        print(f"{args.prompt}{result.text}")


if __name__ == "__main__":
    main()
