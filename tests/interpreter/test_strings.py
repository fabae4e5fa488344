"""Operators on texts: regular expressions as RE2 has them, SipHash by its published vectors, errors.

``tests/converter/test_convert_strings.py`` compares all of them with TensorFlow.
"""

from typing import Any

import ai_edge_litert.interpreter as theirs
import numpy as np
import pytest

from litecl import Predictor
from litecl.interpreter import Interpreter
from litecl.interpreter.arithmetic.siphash import siphash
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Signature, TensorSpec
from litecl.interpreter.kit import regular
from litecl.interpreter.ops import CUSTOMS, strings
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.schema import TensorType
from support.build import Graph, model

# https://github.com/veorq/SipHash/blob/master/vectors.h, of the key 00 01 .. 0f and the text 00 01 .. of a length.
_VECTORS = {
    0: "310e0edd47db6f72",
    1: "fd67dc93c539f874",
    7: "37d1018bf50002ab",
    8: "6224939a79f5f593",
    15: "e545be4961ca29a1",
}


@pytest.mark.parametrize("length", _VECTORS)
def test_siphash(length: int) -> None:
    key = (int.from_bytes(bytes(range(8)), "little"), int.from_bytes(bytes(range(8, 16)), "little"))
    assert siphash(key, bytes(range(length))).to_bytes(8, "little").hex() == _VECTORS[length]


@pytest.mark.parametrize(
    ("text", "pattern", "rewrite", "wanted"),
    [
        ("abxxd", "x*", "-", "-a-b-d-"),
        ("a1\n", "\\d$", "-", "a1\n"),
        ("a-b]c", "[]-]", "_", "a_b_c"),
        ("a.b c", "[^[:alnum:]]", "", "abc"),
        ("ab", "(a)(z)?", "<\\1\\2\\\\>", "<a\\>b"),
        ("A\u00e4", "\\w", "-", "-\u00e4"),
    ],
)
def test_regular_expressions(text: str, pattern: str, rewrite: str, wanted: str) -> None:
    assert regular.replaced(text, pattern, rewrite, everywhere=True) == wanted


@pytest.mark.parametrize("pattern", ["\\pL", "[[:none:]]", "(", "(?m)a$", "\\Qa"])
def test_what_python_cannot_say_is_refused(pattern: str) -> None:
    with pytest.raises(ModelError, match="regular expression"):
        regular.pattern(pattern)


def _run(op: Any, *texts: Any, **options: Any) -> Any:
    arrays = [np.array(text, object) if isinstance(text, list) else np.array(text) for text in texts]
    return op.run(op.options(**options), arrays)


def test_errors_say_what_was_expected() -> None:
    with pytest.raises(ModelError, match="encoding"):
        _run(strings.STRING_LOWER, [b"a"], encoding="latin")
    with pytest.raises(ModelError, match="not a number"):
        _run(strings.STRING_TO_NUMBER, [b"one"])
    with pytest.raises(ModelError, match="position 3 of a text of 2"):
        _run(strings.SUBSTR, [b"ab"], 3, 1)
    specs = [TensorSpec(TensorType.STRING, (2,)), TensorSpec(TensorType.STRING, (3,))]
    with pytest.raises(ShapeError, match="one shape"):
        strings.STRING_JOIN.infer(strings.JoinOptions(), specs)


def test_all_have_names_of_litecl() -> None:
    assert set(_NAMES.split()) <= set(CUSTOMS)


_NAMES = (
    "litecl.AsString litecl.RegexFullMatch litecl.RegexReplace litecl.StringJoin litecl.StringLength "
    "litecl.StringLower litecl.StringSplit litecl.StringStrip litecl.StringToHashBucket litecl.StringToNumber "
    "litecl.StringUpper litecl.Substr"
)


def _tensor_of_strings(shape: tuple[int, ...]) -> bytes:
    g = Graph()
    x = g.input(shape, TensorType.STRING)
    y = g.op(RESHAPE, [x, g.const(np.int32([-1]))], ReshapeOptions())
    return write(model(g.build(y), signatures=[Signature("serving_default", {"x": x}, {"y": y})]))


def _fed(library: Any, content: bytes, value: Any) -> list[list[bytes]]:
    """Return an input's values after it is set, read, run, and given to a signature."""
    interpreter = library(model_content=content)
    interpreter.allocate_tensors()
    index = interpreter.get_input_details()[0]["index"]
    interpreter.set_tensor(index, value)
    interpreter.invoke()
    result = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert result.dtype == np.object_
    named = library(model_content=content).get_signature_runner()(x=value)["y"]
    return [interpreter.get_tensor(index).tolist(), result.tolist(), named.tolist()]


_ARRAYS = {
    "str": np.array(["ab", "c\xe4\u4e2d"]),
    "str of the other byte order": np.array(["ab", "c"]).astype(">U3"),
    "bytes": np.array([b"ab", b"c\xff"]),
    "objects of str": np.array(["a\0b", "\xe4"], object),
    "objects of bytes": np.array([b"a\0b\0", b""], object),
    "objects of both": np.array(["\xe4", b"\xe4", np.str_("x"), np.bytes_(b"y")], object)[::2],
    "every second": np.array(["a", "b", "c", "d"])[::2],
}
_NO_TEXTS: dict[str, Any] = {
    "numbers": np.array([1, 2]),
    "floats": np.array([1, 2], np.float32),
    "truths": np.array([True, False]),
    "objects": np.array([1, "a"], object),
    "nothing": np.array([None, "a"], object),
    "mutable": np.array([bytearray(b"a"), b"c"], object),
    "half a character": np.array(["\ud800", "a"], object),
    "shape": np.array(["a", "b", "c"]),
}


@pytest.mark.parametrize("name", _ARRAYS)
def test_strings_are_fed_as_litert_takes_them(name: str) -> None:
    content = _tensor_of_strings((2,))
    got = _fed(Interpreter, content, _ARRAYS[name])
    assert got == _fed(theirs.Interpreter, content, _ARRAYS[name])
    assert {type(text) for texts in got for text in texts} == {bytes}


def test_strings_in_lists_too() -> None:
    content, scalar = _tensor_of_strings((2,)), _tensor_of_strings(())
    for value in (["a", "\xe4"], ("a", "\xe4"), [b"a", b"\xc3\xa4"], [np.str_("a"), "\xe4"]):
        assert _fed(Interpreter, content, value) == [[b"a", "\xe4".encode()]] * 3
        assert Predictor(content, cpu=True)({"x": value})["y"].tolist() == [b"a", "\xe4".encode()]
    for value in ("\xe4", "\xe4".encode(), np.array("\xe4"), np.str_("\xe4")):
        assert _fed(Interpreter, scalar, value) == ["\xe4".encode(), ["\xe4".encode()], ["\xe4".encode()]]
    assert _fed(Interpreter, _tensor_of_strings((0,)), []) == [[], [], []]


@pytest.mark.parametrize("name", _NO_TEXTS)
def test_what_is_no_string_is_refused(name: str) -> None:
    content, value = _tensor_of_strings((2,)), _NO_TEXTS[name]
    for library, error in ((Interpreter, ShapeError), (theirs.Interpreter, (ValueError, UnicodeError))):
        interpreter = library(model_content=content)
        interpreter.allocate_tensors()
        with pytest.raises(error):
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], value)
