"""Causal language models of Keras layers, with caches: their logits are those of Keras without any."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from litecl import Generator  # noqa: E402
from litecl.converter import Converter, Quantization  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import ConversionError, ModelError  # noqa: E402
from litecl.interpreter.file.reader import read as read_file  # noqa: E402
from litecl.interpreter.file.writer import write  # noqa: E402
from litecl.interpreter.graph import CONTEXT_LENGTH  # noqa: E402
from support import keras_causal_lm as nets  # noqa: E402
from support.command import data, failure  # noqa: E402
from support.conversion import converter_of  # noqa: E402

L, HEADS, DEPTH, SLOTS = keras.layers, 4, nets.DEPTH, nets.SLOTS
TOKENS = np.random.default_rng(3).integers(0, nets.WORDS, 28).astype(np.int32)

MODELS: dict[str, Callable[[], Any]] = {
    "attention": lambda: nets.model(lambda: nets.causal(L.MultiHeadAttention(HEADS, DEPTH))),
    "dropout": lambda: nets.model(lambda: nets.causal(L.MultiHeadAttention(HEADS, DEPTH, dropout=0.5)), layers=1),
    "keys longer than values": lambda: nets.model(lambda: nets.causal(L.MultiHeadAttention(HEADS, DEPTH, 5)), layers=1),
    "shared keys": lambda: nets.model(lambda: nets.causal(L.GroupQueryAttention(DEPTH, HEADS, 2))),
    "rows of a table": lambda: nets.model(lambda: nets.causal(L.MultiHeadAttention(2, DEPTH)), layers=1, counted=False),
    "a mask of its own": lambda: nets.model(nets.HiddenLater, layers=1),
    "KerasHub, one cache": lambda: nets.Hub(stacked=True),
    "KerasHub, pairs": lambda: nets.Hub(stacked=False),
}
if hasattr(L.MultiHeadAttention(1, 1), "_sliding_window"):
    MODELS["window"] = lambda: nets.model(
        lambda: nets.causal(L.MultiHeadAttention(HEADS, DEPTH, sliding_window=7)), layers=1
    )


@pytest.mark.parametrize("name", MODELS)
def test_logits_and_caches(name: str) -> None:
    """A prefill of 8 tokens and 20 steps, in LiteRT, numpy and on the device, are Keras' pass over the whole text."""
    model = MODELS[name]()
    content = Converter.from_keras_causal_lm(model, SLOTS, (8,)).convert()
    expected = nets.logits(model, TOKENS)[8:]
    made = {kind: nets.read(each, TOKENS, 8) for kind, each in nets.runtimes(content).items()}
    for logits, caches in made.values():
        np.testing.assert_allclose(logits, expected, atol=2e-6 * np.abs(expected).max() + 2e-6)
        for cache, value in caches.items():
            np.testing.assert_allclose(value, made["LiteRT"][1][cache], atol=1e-5)
            assert SLOTS in value.shape and np.any(value)


@pytest.mark.parametrize("name", ["attention", "KerasHub, one cache"])
def test_signatures(name: str) -> None:
    """As the exporters name them; every weight is in the file once, and all is claimed. Keras is as it was."""
    model, hooks = MODELS[name](), (L.Softmax.call, L.MultiHeadAttention._compute_attention)
    content = Converter.from_keras_causal_lm(model, SLOTS, (16, 8)).convert()
    assert hooks == (L.Softmax.call, L.MultiHeadAttention._compute_attention)
    made = nets.runtimes(content)
    caches = {f"kv_cache_{x}_{i}" for x in "kv" for i in range(2)}
    for key, outputs in {"prefill_8": caches, "prefill_16": caches, "decode": {*caches, "logits"}}.items():
        runner = made["LiteRT"].get_signature_runner(key)
        width = int(key.split("_")[1]) if "_" in key else 1
        details = runner.get_input_details()
        assert set(details) == {"tokens", "input_pos", *caches}
        assert set(runner.get_output_details()) == outputs
        assert (*details["tokens"]["shape"], *details["input_pos"]["shape"]) == (1, width, width)
    weights = sum(4 * int(np.prod(each.shape)) for each in model.weights)
    assert len(content) - weights < 90_000  # three copies of the weights would be 2 * 115 to 188 KB more
    report = made["device"].delegation_report()
    assert all(row.claimed for row in report.nodes)
    assert all(len(spec.shape or ()) <= 4 for graph in read_file(content).subgraphs for spec in graph.tensors)


QUANTIZED: dict[str, tuple[Any, float, float]] = {  # how, how far runtimes and Keras may be, in the largest logit
    "int8": ("int8", 1e-3, 0.1),
    "int4": ("int4", 1e-3, 0.5),
    "weight-only int8": (Quantization(recipe="weight_only_wi8_afp32"), 1e-5, 0.1),
    "weight-only int4": (Quantization(recipe="weight_only_wi4_afp32"), 1e-5, 0.5),
}


@pytest.mark.parametrize("name", ["attention", "KerasHub, one cache"])
@pytest.mark.parametrize("quantize", QUANTIZED)
def test_quantized(quantize: str, name: str) -> None:
    """LiteRT, numpy and device agree, and the logits are Keras' as far as rounded weights let them be. The table of
    words is there once, also where the logits are made of it.
    """
    keras.utils.set_random_seed(5)  # with others, a row's value may lie so near a tie that runtimes are a step apart
    model, (how, between, beside) = MODELS[name](), QUANTIZED[quantize]
    content = Converter.from_keras_causal_lm(model, SLOTS, (8,), quantize=how).convert()
    expected = nets.logits(model, TOKENS)[8:]
    scale = np.abs(expected).max()
    made = {kind: nets.read(each, TOKENS, 8)[0] for kind, each in nets.runtimes(content).items()}
    np.testing.assert_allclose(made["numpy"], made["LiteRT"], atol=between * scale)
    np.testing.assert_allclose(made["device"], made["LiteRT"], atol=between * scale)
    assert 0 < np.abs(made["LiteRT"] - expected).max() < beside * scale
    tensors = [spec for graph in read_file(content).subgraphs for spec in graph.tensors]
    tables = [spec for spec in tensors if spec.data is not None and spec.shape == (nets.WORDS, 4 * DEPTH)]
    assert {spec.type.name for spec in tables} == {"INT4" if "int4" in quantize else "INT8"}
    assert len({spec.data.tobytes() for spec in tables}) == (2 if name == "attention" else 1)  # of words, of logits


def test_generator(tmp_path: Path) -> None:
    """Each token is Keras' most likely one after the text before it, in steps and in one invoke; the file has the
    context's length.
    """
    model, path = MODELS["shared keys"](), tmp_path / "model.tflite"
    path.write_bytes(Converter.from_keras_causal_lm(model, SLOTS, (8,)).convert())
    for cpu, whole in [(True, False), (False, False), (False, True)]:
        generator = Generator(path, cpu=cpu)
        found = generator.generate(TOKENS.tolist(), max_tokens=20, whole=whole, stop_tokens=())
        text = np.array([*TOKENS, *found.tokens], np.int32)
        assert found.tokens == tuple(nets.logits(model, text)[len(TOKENS) - 1 : -1].argmax(1))
        assert len(found.tokens) == 20
        assert generator.context_length == SLOTS
    assert generator.generate(TOKENS.tolist(), stop_tokens=()).finish == "context"


def test_a_file_that_tells_no_number(tmp_path: Path) -> None:
    made = read_file(Converter.from_keras_causal_lm(_small(), SLOTS, ()).convert())
    path = tmp_path / "model.tflite"
    for value in (b"", b"-3", b"0", b"many"):
        path.write_bytes(write(replace(made, metadata={CONTEXT_LENGTH: value})))
        with pytest.raises(ModelError, match=f"{CONTEXT_LENGTH}.*expected a number of tokens"):
            Generator(path, cpu=True)


def _small(attention: Callable[[Any], Any] | None = None, **last: Any) -> Any:
    return nets.model(lambda: attention or nets.causal(L.MultiHeadAttention(2, DEPTH)), layers=1, **last)


def _convolved(x: Any) -> Any:
    return L.Conv1D(4 * DEPTH, 3, padding="causal")(nets.causal(L.MultiHeadAttention(2, DEPTH))(x))


WRONG: dict[str, tuple[Callable[[], Any], dict[str, Any], str]] = {
    "later tokens": (
        lambda: _small(lambda x: L.MultiHeadAttention(2, DEPTH)(x, x)),
        {},
        "sees later tokens: expected use_causal_mask=True",
    ),
    "a convolution": (lambda: _small(_convolved), {}, "computes other logits than without"),
    "probabilities": (lambda: _small(activation="softmax"), {}, "returns probabilities: expected logits"),
    "too many slots": (_small, {"cache_length": SLOTS + 1}, "does not take 65 tokens"),
    "no attention": (
        lambda: keras.Sequential([keras.Input((None,)), L.Embedding(9, 9)]),
        {},
        "expected layers MultiHead",
    ),
    "no tokens": (lambda: keras.Sequential([keras.Input((3,)), L.Dense(3)]), {}, "expected"),
    "no model": (lambda: "model.keras", {}, "expected a keras.Model, got builtins.str"),
    "no slots": (_small, {"cache_length": 1}, "cache_length: expected at least 2"),
    "long prefill": (
        _small,
        {"prefill_lengths": (8, 65)},
        "prefill_lengths: expected numbers from 2 to 64",
    ),
    "short prefill": (_small, {"prefill_lengths": (1,)}, "prefill_lengths: expected numbers from 2 to 64"),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str) -> None:
    build, options, message = WRONG[name]
    with pytest.raises(ConversionError, match=message):
        Converter.from_keras_causal_lm(build(), **{"cache_length": SLOTS, "prefill_lengths": (8,)} | options).convert()


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, out = tmp_path / "model.keras", tmp_path / "model.tflite"
    model = _small()
    model.save(path)
    flags = ("--cache-length", "20", "--quantize", "int4")
    found = data(capsys, "convert", path, *flags, "-o", out)
    keys = [signature["key"] for signature in found["signatures"]]
    assert keys == ["prefill_8", "decode"]
    generated = Generator(out, cpu=True).generate([3, 4, 5], logits=True, max_tokens=1)
    expected = nets.logits(model, np.array([3, 4, 5], np.int32))[-1]
    assert np.abs(np.array(generated.logits) - expected).max() < 0.5 * np.abs(expected).max()
    assert "--verify: no effect with it" in failure(capsys, "convert", path, *flags, "--verify", "-o", out)
    told = failure(capsys, "convert", out, "--cache-length", "20", "-o", tmp_path / "other.tflite")
    assert "--cache-length: expected a .keras or .h5 file" in told


def test_attention_is_as_it_was() -> None:
    """Models that are converted, or not, compute the same afterwards."""
    model = _small()
    before = nets.logits(model, TOKENS)
    Converter.from_keras_causal_lm(model, SLOTS, (8,)).convert()
    with pytest.raises(ConversionError):
        Converter.from_keras_causal_lm(WRONG["later tokens"][0](), SLOTS, ()).convert()
    np.testing.assert_array_equal(nets.logits(model, TOKENS), before)


def test_parts_of_packs() -> None:
    """Whatever is taken of a pack is what TensorFlow takes; a part needs no pack."""
    specs = [tf.TensorSpec([2, 4, 5])] * 3
    parts: list[Callable[[Any], Any]] = [
        lambda x: x[:, 1, ...],
        lambda x: x[:, -1],
        lambda x: tf.unstack(x, axis=-3)[2],
    ]
    others: list[Callable[[Any], Any]] = [
        lambda x: x[:, 1:2],
        lambda x: x[1, 1],
        lambda x: x[:, 1, ::2],
        lambda x: x[..., 1],
        lambda x: x[:, tf.newaxis, 1],
        lambda x: tf.unstack(x, axis=2)[1],
    ]
    inputs = [np.random.default_rng(i).standard_normal((2, 4, 5)).astype(np.float32) for i in range(3)]
    for takes, packs in ((parts, 0), (others, 1)):

        def function(a: Any, b: Any, c: Any, takes: Any = takes) -> list[Any]:
            return [take(tf.stack([a, b, c], 1)) * 2 for take in takes]

        model = converter_of(function, *specs).convert_to_model()
        assert sum(node.op.name == "PACK" for node in model.subgraphs[0].nodes) == packs
        results = Interpreter(model).get_signature_runner()(**dict(zip("abc", inputs, strict=True)))
        for i, expected in enumerate(function(*map(tf.constant, inputs))):
            np.testing.assert_array_equal(results[f"output_{i}"], expected.numpy())


_COMMON = {"vocabulary_size": 300, "num_layers": 2, "hidden_dim": 32, "intermediate_dim": 64}
_SHARED = {"num_query_heads": 4, "num_key_value_heads": 2}
HUB: dict[str, dict[str, Any]] = {
    "GPT2": {"num_heads": 2, "max_sequence_length": 64},
    "Llama": _SHARED,
    "Mistral": {**_SHARED, "sliding_window": 7},
    "Gemma": {**_SHARED, "head_dim": 8},
    "Qwen3": {**_SHARED, "head_dim": 8},
    "Bloom": {"num_heads": 2, "max_sequence_length": 64},
}


@pytest.mark.parametrize("name", HUB)
def test_keras_hub(name: str) -> None:
    hub = pytest.importorskip("keras_hub", reason="needs keras-hub, which is no requirement of the tests").models
    backbone = getattr(hub, f"{name}Backbone")(**_COMMON, **HUB[name])
    model = getattr(hub, f"{name}CausalLM")(backbone, None)
    content = Converter.from_keras_causal_lm(model, SLOTS, (8, 16)).convert()
    given = {"token_ids": TOKENS[None], "padding_mask": np.ones_like(TOKENS[None])}
    expected = np.asarray(model(given))[0, 8:]
    for interpreter in nets.runtimes(content).values():
        logits, _ = nets.read(interpreter, TOKENS, 8)
        np.testing.assert_allclose(logits, expected, atol=1e-5 * np.abs(expected).max())
