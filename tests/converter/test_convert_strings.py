"""Texts, which operators of litecl's own compute: each result against TensorFlow's."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from litecl.converter import ConversionWarning, Converter  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from litecl.interpreter.graph import Array  # noqa: E402
from support.conversion import converter_of, invoke, litert  # noqa: E402

S, L = tf.strings, keras.layers
_TEXTS = np.array(
    [
        b"Hello, World! a",
        b"",
        b"  the\tquick  brown\n fox 12 ",
        "\u00c4pfel \u4e2d".encode(),
        b"x[1]-y^z $5 $",
        b"aaa" * 30,
    ],
    object,
)
_PUNCTUATION = r"[!\"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']"


def _split(x: Any) -> Any:
    rows, parts = S.split(x), S.split(x, " ", maxsplit=2).to_sparse()
    return rows.values, rows.row_splits, rows.to_tensor(b"-"), parts.indices, parts.values, parts.dense_shape


def _replaced(x: Any) -> Any:
    return (
        S.regex_replace(x, _PUNCTUATION, ""),
        S.regex_replace(x, r"(\w+) (\w*)", r"<\2|\1|\0>"),
        S.regex_replace(x, "a*", "-"),
        S.regex_replace(x, "[[:punct:]]|\\d$", "#", replace_global=False),
        S.regex_replace(x, tf.constant("l+$|$"), tf.constant("L")),
        S.regex_full_match(x, "a+"),
        S.regex_full_match(x, tf.constant(".*a.*")),
    )


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "case": lambda x: (S.lower(x), S.upper(x), S.lower(x, "utf-8"), S.upper(x, "utf-8"), S.strip(x)),
    "length": lambda x: (S.length(x), S.length(x, "UTF8_CHAR"), S.substr(x, 0, 3), S.substr(x, 0, 2, unit="UTF8_CHAR")),
    "join": lambda x: (S.join([x, "-", x], separator="+"), x + "!"),
    "regular expressions": _replaced,
    "split": _split,
    "map": lambda x: (tf.map_fn(lambda text: S.join([text, "!"]), x), tf.map_fn(S.length, x, tf.int32)),
    "hash": lambda x: (S.to_hash_bucket_fast(x, 1000), S.to_hash_bucket_strong(x, 2**40, [3, 2**63 - 5])),
}


def _converted(function: Callable[[Any], Any], x: Array) -> tuple[list[Array], list[Array], bytes]:
    """Return the results of TensorFlow and litecl, and the file."""
    kind = tf.string if x.dtype == object else x.dtype
    concrete = tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec([None] * x.ndim, kind, "x"))
    content = Converter.from_concrete_functions([concrete]).convert()
    expected = [np.asarray(y) for y in tf.nest.flatten(concrete(tf.constant(x)))]
    return expected, invoke(Interpreter(model_content=content), [x]), content


def _check(function: Callable[[Any], Any], x: Array) -> None:
    expected, got, _ = _converted(function, x)
    for value, wanted in zip(got, expected, strict=True):
        np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_texts(name: str) -> None:
    _check(_FUNCTIONS[name], _TEXTS)


def test_numbers() -> None:
    _check(
        lambda x: (S.to_number(x), S.to_number(x, tf.float32) * 2), np.array([b"1", b"-2.5", b"3e4", b"inf"], object)
    )
    _check(lambda x: (S.to_number(x, tf.int32), S.to_number(x, tf.int64)), np.array([[b"1"], [b"-25"]], object))


def test_numbers_as_texts() -> None:
    def written(x: Any) -> Any:
        options: tuple[dict[str, Any], ...] = ({}, {"precision": 2}, {"scientific": True}, {"width": 12, "fill": "0"})
        return [S.as_string(x, **o) for o in options] + [S.as_string(tf.cast(x, tf.int32), width=4), S.as_string(x > 1)]

    _check(written, np.float32([1.5, -2, 3e7, 0.1]))


@pytest.mark.parametrize(
    "options",
    [{"output_mode": "int", "output_sequence_length": 6}, {"output_mode": "count"}, {"output_mode": "tf_idf"}],
    ids=str,
)
def test_text_vectorization(options: dict[str, Any]) -> None:
    layer = L.TextVectorization(**options)
    layer.adapt(["the quick brown fox", "jumped over the lazy dog", "hello world, hello!"])
    expected, got, content = _converted(
        lambda x: layer(x), np.array([b"The quick; fox", b"hello dog Nothing", b""], object)
    )
    np.testing.assert_allclose(got[0], expected[0], 1e-6)
    with pytest.raises(Exception, match=r"unresolved custom op: litecl\.StringLower"):
        litert(content).allocate_tensors()


def test_hashing() -> None:
    layers = L.Hashing(num_bins=10), L.Hashing(num_bins=10, salt=[1, 3])
    _check(lambda x: [layer(x) for layer in layers], _TEXTS)


def test_the_report_tells_what_only_litecl_runs() -> None:
    concrete = tf.function(S.lower, autograph=False).get_concrete_function(tf.TensorSpec([None], tf.string))
    converter = Converter.from_concrete_functions([concrete])
    with pytest.warns(ConversionWarning):
        converter.convert()
    assert converter.report.own_operators == ["litecl.StringLower"]
    assert "LiteRT has no litecl.StringLower" in str(converter.report)
    converter.allow_custom_ops = False
    with pytest.raises(ConversionError, match=r"litecl\.StringLower of 'StringLower'"):
        converter.convert()


def _noisy(x: Any) -> Any:
    noise = tf.random.stateless_uniform([2], [S.length(x), 2])  # draws
    return tf.cond(S.length(x) > 3, lambda: noise, lambda: noise * S.to_number(S.lower(x)))  # lowers


def test_what_only_litecl_runs_is_warned_of_with_its_places() -> None:
    lines = Path(__file__).read_text().splitlines()
    numbers = [i for i, line in enumerate(lines, 1) if line.endswith(("  # draws", "  # lowers"))]
    concrete = tf.function(_noisy, autograph=False).get_concrete_function(tf.TensorSpec([], tf.string))
    with pytest.warns(ConversionWarning, match=r"^LiteRT has no litecl.*only litecl runs") as caught:
        Converter.from_concrete_functions([concrete]).convert()
    (warning,) = caught
    assert warning.filename == __file__
    draw = "litecl.StatelessUniform of 'stateless_random_uniform/StatelessRandomUniformV2'"
    for place, number in zip((draw, "litecl.StringLower of 'cond/StringLower'"), numbers, strict=True):
        assert f"{place}, made in {__file__}:{number}: " in str(warning.message)


class _Noise(L.Layer):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(name="noise")
        self.seeds = keras.random.SeedGenerator(1)

    def call(self, x: Any) -> Any:
        return x + keras.random.normal((1, 4), seed=self.seeds)


def test_layers_that_only_litecl_runs_are_named() -> None:
    model = keras.Sequential([keras.Input((4,), 1), L.Dense(4), _Noise()])
    with pytest.warns(ConversionWarning, match=r"litecl\.StatelessNormal of '\S*/noise\S*', made in .*test_convert"):
        Converter.from_keras_model(model).convert()


def test_nothing_is_warned_of_where_litert_runs_all() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConversionWarning)
        Converter.from_keras_model(keras.Sequential([keras.Input((4,)), L.Dense(2)])).convert()


def test_a_pattern_that_python_cannot_say_is_refused_early() -> None:
    with pytest.raises(ConversionError, match=r"StaticRegexReplace .*p is not supported"):
        converter_of(lambda x: S.regex_replace(x, "\\pL", ""), tf.TensorSpec([None], tf.string)).convert()


def test_a_stack_of_one_runs_anywhere() -> None:
    """LiteRT packs no strings; of one there is nothing to pack."""
    got, expected, content = _converted(lambda x: [tf.stack([x], axis) for axis in (0, 1)], _TEXTS)
    for value, wanted, again in zip(got, expected, invoke(litert(content), [_TEXTS]), strict=True):
        assert value.tolist() == wanted.tolist() == again.tolist()


def test_tables_of_several_types_in_one_model() -> None:
    """TensorFlow ends the process that asks a table for types that are another's."""
    words, numbers = keras.Input((2,), dtype="string", name="words"), keras.Input((2,), dtype="int64", name="numbers")
    known = L.IntegerLookup(vocabulary=[10, 20, 30])(numbers)
    outputs = [L.StringLookup(vocabulary=["a", "b"])(words), known]
    outputs.append(L.StringLookup(vocabulary=["u", "v", "w"], invert=True)(known))
    model = keras.Model([words, numbers], outputs)
    fed = {"words": np.array([[b"b", b"z"]], object), "numbers": np.array([[20, 5]], np.int64)}
    expected = model({name: tf.constant(value) for name, value in fed.items()})
    got = Interpreter(Converter.from_keras_model(model).convert()).get_signature_runner()(**fed)
    for value, wanted in zip(got.values(), expected, strict=True):
        np.testing.assert_array_equal(value, np.asarray(wanted))


@pytest.mark.parametrize(("name", "what"), [("iterator", "resource"), ("cardinality", "data set")])
def test_captures_that_no_file_can_hold_are_refused(name: str, what: str) -> None:
    numbers = tf.data.Dataset.range(5)
    steps, filled = iter(numbers), tf.lookup.KeyValueTensorInitializer(tf.constant(["a"]), tf.constant([1], tf.int64))
    table = tf.lookup.StaticHashTable(filled, -1)

    def function(x: Any) -> Any:
        extra = (
            next(steps) if name == "iterator" else tf.raw_ops.DatasetCardinality(input_dataset=numbers._variant_tensor)
        )
        return table.lookup(x) + extra

    concrete = tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec([2], tf.string))
    with pytest.raises(ConversionError, match=f"captures.*{what}"):
        Converter.from_concrete_functions([concrete]).convert()
