"""Operators on texts: regular expressions as RE2 has them, SipHash by its published vectors, errors.

``tests/converter/test_convert_strings.py`` compares all of them with TensorFlow.
"""

from typing import Any

import numpy as np
import pytest

from litecl.interpreter.arithmetic.siphash import siphash
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.kit import regular
from litecl.interpreter.ops import CUSTOMS, strings
from litecl.interpreter.schema import TensorType

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
    with pytest.raises(ModelError, match="no number"):
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
