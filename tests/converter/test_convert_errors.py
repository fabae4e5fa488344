"""What cannot be converted is told all at once, with the line that made it and what to write instead."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from litecl.cli.parser import main  # noqa: E402
from litecl.converter import Converter  # noqa: E402
from litecl.converter.graph import Function, Module  # noqa: E402
from litecl.converter.hints import HINTS  # noqa: E402
from litecl.converter.importer.compositions import COMPOSITIONS  # noqa: E402
from litecl.converter.lower import LOWERINGS  # noqa: E402
from litecl.converter.passes.tensorflow.complex_rules import RULES  # noqa: E402
from litecl.converter.pipeline import placed  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from support.conversion import converter_of  # noqa: E402
from support.keras_models import stack  # noqa: E402

_MATRIX = tf.TensorSpec((2, 2), tf.float32, name="x")


@tf.function(autograph=False)
def _called(x: Any) -> Any:
    return tf.math.special.dawsn(x)  # a line to be found


def _several(x: Any) -> Any:
    y = tf.math.special.spence(x) + tf.math.special.spence(x * 2)  # another
    z = tf.cond(x[0, 0] > 0, lambda: tf.math.special.expint(x)[0, 0], lambda: x[0, 0])  # a third
    return _called(y) + z


def _line(text: str) -> str:
    lines = Path(__file__).read_text().splitlines()
    (number,) = [i for i, line in enumerate(lines, 1) if line.endswith(f"  # {text}")]
    return f"{__file__}:{number}: "


def test_all_operators_are_told_with_their_lines() -> None:
    concrete = tf.function(_several, autograph=False).get_concrete_function(_MATRIX)
    with pytest.raises(ConversionError) as caught:
        Converter.from_concrete_functions([concrete]).convert()
    said = str(caught.value)
    for operator in ("Spence", "Dawsn", "Expint"):
        assert f"no TFLite operator computes {operator} " in said
    assert "(and 1 more)" in said
    assert HINTS["Spence"] in said
    for text in ("a line to be found", "another", "a third"):
        assert _line(text) in said


def test_sources_of_another_kind() -> None:
    concrete = tf.function(lambda x: x + 1).get_concrete_function(_MATRIX)
    with pytest.raises(ConversionError, match=r"graph_def_file: expected the path of a \.pb .*, got GraphDef"):
        Converter.from_frozen_graph(concrete.graph.as_graph_def(), ["x"], ["y"])
    with pytest.raises(ConversionError, match="expected a list of ConcreteFunctions, got ConcreteFunction"):
        Converter.from_concrete_functions(concrete)


def test_lines_of_a_layer() -> None:
    model = stack(keras.layers.Lambda(lambda x: tf.math.special.spence(x), name="special"), shape=(3, 3))  # a layer's
    with pytest.raises(ConversionError, match=r"Spence '\S*special\S*'") as caught:
        Converter.from_keras_model(model).convert()
    assert _line("a layer's") in str(caught.value)


def test_effects_and_types_are_told_with_their_lines() -> None:
    variable = tf.Variable(np.zeros((2, 2), np.float32))

    def writes(x: Any) -> Any:
        variable[::2].assign(x[:1])  # writes a part
        return variable * x

    def narrow(x: Any) -> Any:
        return tf.cast(tf.cast(x, tf.uint64) // 3, tf.float32)  # has no kernel

    for function, text in ((writes, "writes a part"), (narrow, "has no kernel")):
        concrete = tf.function(function, autograph=False).get_concrete_function(_MATRIX)
        with pytest.raises(ConversionError) as caught:
            Converter.from_concrete_functions([concrete]).convert()
        assert _line(text) in str(caught.value)


def test_hints_are_of_operators_that_do_not_convert() -> None:
    assert all(hasattr(tf.raw_ops, name) for name in HINTS)
    assert not set(HINTS) & {*LOWERINGS, *COMPOSITIONS, *RULES}


def test_a_file_is_compared_with_its_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Module(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = tf.Variable(0.0)

        @tf.function(input_signature=[_MATRIX, tf.TensorSpec((None, 2))], autograph=False)
        def run(self, x: Any, y: Any) -> Any:
            self.count.assign_add(1.0)
            return {"sum": x + y * self.count, "difference": y - x}

        @tf.function(input_signature=[_MATRIX], autograph=False)
        def rounded(self, x: Any) -> Any:
            return tf.cast(tf.cast(x, tf.bfloat16), tf.float32)

    module = Module()
    source, out = str(tmp_path / "model"), str(tmp_path / "out.tflite")
    tf.saved_model.save(module, source, signatures={"run": module.run, "rounded": module.rounded})
    assert main(["convert", source, "-o", out, "--verify", "--signature", "run"]) == 0
    said = capsys.readouterr().out
    assert "sum" in said
    assert "difference" in said
    assert main(["convert", source, "-o", out, "--verify"]) == 1  # what is computed more exactly differs
    assert main(["convert", out, "-o", str(tmp_path / "again.tflite"), "--verify"]) == 1
    assert "no effect" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["the model's 'a' and 'b/c'", "'a', the users' 'b/c' isn't", "'a''b/c', don't"])
def test_names_are_told_from_apostrophes(text: str) -> None:
    module = Module(Function("main", [], []), [], [], place={"a": "x.py:1: a(x)  # it's", "b/c": "x.py:2: b(x)"}.get)
    with pytest.raises(ConversionError) as caught, placed(module):
        raise ConversionError(text)
    assert str(caught.value).split("\n") == [
        text,
        "'a' is made in x.py:1: a(x)  # it's",
        "'b/c' is made in x.py:2: b(x)",
    ]


def test_what_keras_cannot_trace_over_open_sizes() -> None:
    model = stack(keras.layers.UpSampling2D(2, interpolation="bilinear"), shape=(None, None, 3), name="x")
    with pytest.raises(
        ConversionError, match=r"cannot trace the model: if it needs .* give input_shapes.*UpSampling2D"
    ):
        Converter.from_keras_model(model).convert()
    assert Converter.from_keras_model(model, input_shapes={"x": (1, 3, 4, 3)}).convert()


def test_numbers_of_uint64() -> None:
    with pytest.raises(ConversionError, match=r"ADD: expected .* got UINT64.* use int64"):
        converter_of(lambda x: x + x, tf.TensorSpec((3,), tf.uint64)).convert()
