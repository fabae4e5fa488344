"""A language model that answers in one invoke: a decoder that generates in a loop over a cache, on the device.

The prompt is read once. Then every step writes a word's keys and values into the caches, which are loop variables that
are never copied, and chooses the likeliest word, until a sentence ends or the requested number of words is reached.
The converter keeps the loop as a WHILE and the delegate claims it whole, so the host waits once for all words.

    python examples/decoder.py             trains a small decoder for a minute on random sums
    python examples/decoder.py --large     25 million parameters, random: speed in three precisions, next to LiteRT
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from litecl.converter import Converter
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter

NUMBERS = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
]
WORDS = [".", "plus", "minus", "is", *NUMBERS]
END = WORDS.index(".")
PRECISIONS = (None, "int8", "int4")


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder. prompt: words of a prompt; context: the most of a prompt and its answer together."""

    words: int
    width: int
    layers: int
    heads: int
    prompt: int
    context: int

    @property
    def size(self) -> int:
        """Of a head."""
        return self.width // self.heads


SMALL = Shape(words=len(WORDS), width=96, layers=2, heads=4, prompt=4, context=32)
LARGE = Shape(words=512, width=512, layers=8, heads=8, prompt=16, context=1024)


class Decoder(tf.Module):
    """A transformer with RMS norm, rotary positions and a gated dense layer."""

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        super().__init__()
        self.shape, random = shape, np.random.default_rng(seed)
        width, hidden = shape.width, 8 * shape.width // 3 // 32 * 32

        def matrix(rows: int, columns: int) -> tf.Variable:
            return tf.Variable((random.standard_normal((rows, columns)) * rows**-0.5).astype(np.float32))

        self.table, self.words = matrix(shape.words, width), matrix(width, shape.words)
        self.layers = [
            {
                "qkv": matrix(width, 3 * width),
                "out": matrix(width, width),
                "gate": matrix(width, 2 * hidden),
                "down": matrix(hidden, width),
            }
            for _ in range(shape.layers)
        ]
        self.norms = [tf.Variable(tf.ones([width])) for _ in range(2 * shape.layers + 1)]
        angles = np.arange(shape.context)[:, None] * 10000.0 ** (-np.arange(0, shape.size, 2) / shape.size)
        self.turns = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)  # [context, 2, size / 2]

    def forward(self, words: Any, start: Any, mask: Any, caches: Any = ()) -> tuple[Any, list[Any]]:
        """Return the scores of the word after each of ``words`` [n], and the caches with their keys and values.

        start: the position of the first word; mask: added to each word's view of the caches, [n, context]; without
        caches words see each other only, [n, n].
        """
        s, count = self.shape, words.shape[0]
        x, after = tf.gather(self.table, words), []
        turn = tf.slice(self.turns, [start, 0, 0], [count, 2, s.size // 2])
        for i, layer in enumerate(self.layers):
            parts = tf.reshape(tf.matmul(normed(x, self.norms[2 * i]), layer["qkv"]), [count, 3, s.heads, s.size])
            q, k, v = tf.unstack(tf.transpose(parts, [1, 2, 0, 3]), num=3)
            q, keys, values = turned(q, turn), turned(k, turn), v
            if caches:
                keys = gen_xla_ops.xla_dynamic_update_slice(caches[2 * i], keys, [0, start, 0])
                values = gen_xla_ops.xla_dynamic_update_slice(caches[2 * i + 1], values, [0, start, 0])
            scores = tf.matmul(q, keys, transpose_b=True) * s.size**-0.5 + mask
            seen = tf.transpose(tf.matmul(tf.nn.softmax(scores), values), [1, 0, 2])
            x += tf.matmul(tf.reshape(seen, [count, s.width]), layer["out"])
            gate, up = tf.split(tf.matmul(normed(x, self.norms[2 * i + 1]), layer["gate"]), 2, axis=-1)
            x += tf.matmul(tf.nn.silu(gate) * up, layer["down"])
            after += [keys, values]
        return tf.matmul(normed(x, self.norms[-1]), self.words), after

    def read(self, words: Any) -> tuple[Any, list[Any]]:
        """Return the scores after each of the first words [n], and the caches."""
        s = self.shape
        empty = tf.zeros([s.heads, s.context, s.size])
        return self.forward(words, 0, later(words.shape[0], s.context), [empty] * (2 * s.layers))

    def generate(self, prompt: Any, limit: Any) -> dict[str, Any]:
        """Return a prompt [prompt] with the words that follow, [context], and how many they are: up to ``limit``."""
        s = self.shape
        scores, caches = self.read(prompt)

        def goes_on(at: Any, word: Any, text: Any, *caches: Any) -> Any:
            return tf.logical_and(at < limit, word[0] != END)

        def step(at: Any, word: Any, text: Any, *caches: Any) -> tuple[Any, ...]:
            text = gen_xla_ops.xla_dynamic_update_slice(text, word, [at])
            mask = tf.where(tf.range(s.context) <= at, 0.0, -np.inf)[None]
            scores, after = self.forward(word, at, mask, caches)
            return at + 1, likeliest(scores), text, *after

        text = tf.pad(prompt, [[0, s.context - s.prompt]])
        at, _, text, *_ = tf.while_loop(goes_on, step, [tf.constant(s.prompt), likeliest(scores), text, *caches])
        return {"text": text, "length": at}

    def traced(self) -> Any:
        """Return ``generate`` as a concrete function."""
        given = [tf.TensorSpec([self.shape.prompt], tf.int32, "prompt"), tf.TensorSpec([], tf.int32, "limit")]
        return tf.function(self.generate, input_signature=given, autograph=False).get_concrete_function()

    def converted(self, precision: Any = None) -> bytes:
        """Return ``generate`` as a .tflite file, with the weights of dense layers as int8 or int4."""
        return Converter.from_concrete_functions([self.traced()], self, quantize=precision).convert()


def normed(x: Any, weights: Any) -> Any:
    """Return rows divided by their root mean square, times weights."""
    return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-6) * weights


def turned(x: Any, turn: Any) -> Any:
    """Return [heads, n, size] with the two halves of each row turned by the angles of its position."""
    (a, b), cosine, sine = tf.split(x, 2, axis=-1), turn[:, 0], turn[:, 1]
    return tf.concat([a * cosine - b * sine, b * cosine + a * sine], -1)


def later(rows: int, columns: int) -> Any:
    """Return what hides from each of the first words those after it."""
    return tf.where(tf.range(columns) <= tf.range(rows)[:, None], 0.0, -np.inf)


def likeliest(scores: Any) -> Any:
    """Return the word with the highest score after the last one, [1]."""
    return tf.argmax(scores[-1:], -1, output_type=tf.int32)


def sums(random: np.random.Generator) -> Iterator[list[int]]:
    """Yield texts that count: "six plus three is seven eight nine ." """
    while True:
        first, by = random.integers(0, 21), random.integers(1, 10)
        for name, way in (("plus", 1), ("minus", -1)):
            counted = [first + way * i for i in range(1, by + 1)]
            if 0 <= counted[-1] <= 20:
                words = [NUMBERS[first], name, NUMBERS[by], "is", *(NUMBERS[n] for n in counted), "."]
                yield [WORDS.index(word) for word in words]


def train(decoder: Decoder, steps: int, batch: int = 64) -> float:
    """Train on sums, word by word; return the loss of the last step."""
    texts, length = sums(np.random.default_rng(1)), 14
    optimizer, mask = tf.keras.optimizers.Adam(3e-3), later(length - 1, length - 1)

    @tf.function
    def step(texts: Any) -> Any:
        with tf.GradientTape() as tape:
            scores = tf.vectorized_map(lambda text: decoder.forward(text[:-1], 0, mask)[0], texts)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(texts[:, 1:], scores))
        gradients = tape.gradient(loss, decoder.trainable_variables)
        optimizer.apply_gradients(zip(gradients, decoder.trainable_variables, strict=True))
        return loss

    for _ in range(steps):
        drawn = [next(texts) for _ in range(batch)]
        loss = step(tf.constant([text + [END] * (length - len(text)) for text in drawn], tf.int32))
    return float(loss)


def runner(content: bytes, threads: int) -> Any:
    """Return a function of the prompt and the limit that runs on the device, whole."""
    interpreter = Interpreter(content, delegates=[CLDelegate(num_threads=threads)])
    interpreter.allocate_tensors()
    report = interpreter.delegation_report()
    refused = sorted({f"{row.op}: {row.reason}" for row in report.nodes if not row.claimed})
    print(f"{len(report.nodes)} nodes in {len(report.partitions)} region; not on the device: {refused}")
    return interpreter.get_signature_runner()


def show(decoder: Decoder, threads: int) -> None:
    """Print some sums, as the device counts them and as TensorFlow does."""
    for precision in PRECISIONS:
        run, traced = runner(decoder.converted(precision), threads), decoder.traced()
        for question in ("six plus three is", "twenty minus five is", "nine plus nine is"):
            prompt, limit = np.array([WORDS.index(w) for w in question.split()], np.int32), np.int32(32)
            answer, expected = run(prompt=prompt, limit=limit), traced(tf.constant(prompt), tf.constant(limit))
            text = " ".join(WORDS[i] for i in answer["text"][: answer["length"]])
            same = np.array_equal(answer["text"], expected["text"].numpy())
            print(f"{precision or 'float32':8} {text}   {'as' if same else 'NOT as'} TensorFlow")


def compare(decoder: Decoder, threads: int) -> None:
    """Print words per second of the device and of LiteRT, in turns; and times per word as the cache fills."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    s = decoder.shape
    prompt, limits = np.arange(1, s.prompt + 1, dtype=np.int32), (s.context // 4, s.context // 2, s.context)
    for precision in PRECISIONS:
        content = decoder.converted(precision)
        ours, theirs = runner(content, threads), LiteRT(model_content=content, num_threads=threads)
        runs = ours, theirs.get_signature_runner()
        lengths = [[int(run(prompt=prompt, limit=np.int32(n))["length"]) for run in runs] for n in limits]
        times = [[min(_time_s(run, prompt, n) for _ in range(2)) for run in runs] for n in limits]
        for length, (a, b) in zip(lengths, times, strict=True):
            per_s = [(n - s.prompt) / t for n, t in zip(length, (a, b), strict=True)]
            print(f"{precision or 'float32':8} {length[0]:5} words: {per_s[0]:7.1f} a second, LiteRT {per_s[1]:7.1f}")


def _time_s(run: Any, prompt: np.ndarray, limit: int) -> float:
    start_s = time.perf_counter()
    run(prompt=prompt, limit=np.int32(limit))
    return time.perf_counter() - start_s


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and show the small one, or measure the large one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="measure a decoder of random weights")
    parser.add_argument("--steps", type=int, default=600, help="of training (default: 600)")
    parser.add_argument("--threads", type=int, default=1, help="(default: 1)")
    args = parser.parse_args(arguments)
    if args.large:
        compare(Decoder(LARGE), args.threads)
        return
    decoder = Decoder(SMALL)
    print(f"loss {train(decoder, args.steps):.3f} after {args.steps} steps")
    show(decoder, args.threads)


if __name__ == "__main__":
    main()
