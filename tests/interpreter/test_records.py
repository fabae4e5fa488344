"""Records of plain data: what fits annotations, and where the errors say that it does not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from litecl.interpreter.dataclass import dataclass as quick_dataclass
from litecl.interpreter.records import Matching, Misfit, Within, record


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Text(StrEnum):
    A = "a"


@quick_dataclass(frozen=True)
class Inner:
    sizes: tuple[Annotated[int, Within(1, 9)], ...]
    name: str = "none"


@dataclass(frozen=True)
class Outer:
    inner: Inner
    number: float = 0.5
    flag: bool = False
    limit: Annotated[int, Within(0)] | None = None
    kind: Literal["a", "b", 1] = "a"
    colour: Colour = Colour.RED
    named: Mapping[str, Inner] = field(default_factory=dict)
    texts: str | Sequence[str] = ()
    digest: Annotated[str, Matching("[0-9a-f]{4}", "four hexadecimal digits")] = "0000"
    some: Annotated[Sequence[float], Within(1, 3)] = (1.0,)
    any: Any = None


_INNER = {"sizes": [1, 9]}


def test_what_fits() -> None:
    given = {
        "inner": {"sizes": np.array([1, 2], np.int16), "name": "x"},
        "number": 3,
        "flag": True,
        "limit": np.uint64(2**64 - 1),
        "kind": Text.A,
        "colour": "blue",
        "named": {"y": _INNER},
        "texts": ["a", "b"],
        "digest": "09af",
        "some": (1, 2.5),
        "any": {"left": [as_it_is := object()]},
    }
    found = record(Outer, given)
    inner = Inner((1, 2), "x")
    wanted = Outer(inner, 3.0, True, 2**64 - 1, "a", Colour.BLUE, {"y": Inner((1, 9))}, ("a", "b"), "09af", (1.0, 2.5))
    assert found == Outer(**{**vars(wanted), "any": {"left": [as_it_is]}})
    assert (type(found.number), type(found.limit), type(found.inner.sizes[0])) == (float, int, int)
    assert record(Outer, {"inner": _INNER}) == Outer(Inner((1, 9)))
    assert record(Outer, {"inner": _INNER, "texts": "ab", "limit": None}).texts == "ab"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"inner": None}, r"^inner: expected a mapping with \['sizes', 'name'\], got None"),
        ({"inner": {}}, "^inner: expected the key 'sizes'"),
        ({"inner": {"sizes": [0]}}, r"^inner.sizes\[0\]: expected a number of 1 to 9, got 0"),
        ({"inner": {"sizes": [1, 10]}}, r"^inner.sizes\[1\]: expected a number of 1 to 9, got 10"),
        ({"inner": {"sizes": [1.0]}}, r"^inner.sizes\[0\]: expected an integer, got 1.0"),
        ({"inner": {"sizes": [True]}}, r"^inner.sizes\[0\]: expected an integer, got True"),
        ({"inner": {"sizes": "12"}}, "^inner.sizes: expected a list, got '12'"),
        ({"inner": {"sizes": {"1": 2}}}, "^inner.sizes: expected a list"),
        ({"inner": {"sizes": [], "size": 1}}, r"^inner: expected only \['sizes', 'name'\], got \['size'\]"),
        ({"inner": {"sizes": [], "name": 1}}, "^inner.name: expected a text, got 1"),
        ({"number": "1"}, "^number: expected a finite number, got '1'"),
        ({"number": float("nan")}, "^number: expected a finite number, got nan"),
        ({"number": 10**400}, "^number: expected a finite number, got a number of many digits"),
        ({"number": True}, "^number: expected a finite number, got True"),
        ({"flag": 1}, "^flag: expected true or false, got 1"),
        ({"limit": -1}, "^limit: expected a number of at least 0, got -1"),
        ({"kind": True}, r"^kind: expected one of \['a', 'b', 1\], got True"),
        ({"kind": "c"}, "^kind: expected one of"),
        ({"kind": ["a"]}, "^kind: expected one of"),
        ({"colour": "green"}, r"^colour: expected one of \['red', 'blue'\], got 'green'"),
        ({"named": []}, "^named: expected a mapping, got"),
        ({"named": {1: _INNER}}, "^named: expected a text, got 1"),
        ({"named": {"x": {"sizes": [0]}}}, r"^named\['x'\].sizes\[0\]: expected a number"),
        ({"texts": 3}, "^texts: expected a list, got 3"),
        ({"texts": [b"a"]}, r"^texts\[0\]: expected a text"),
        ({"digest": "09AF"}, "^digest: expected four hexadecimal digits, got '09AF'"),
        ({"digest": "09af\n"}, "^digest: expected four hexadecimal digits"),
        ({"some": []}, "^some: expected a length of 1 to 3, got 0"),
        ({"some": [1] * 4}, "^some: expected a length of 1 to 3, got 4"),
        ({"more": 1}, "^expected only"),
        ({"any": 1, 5: 1}, r"^expected only .*, got \[5\]"),
    ],
)
def test_what_does_not_fit(changed: dict[Any, Any], message: str) -> None:
    with pytest.raises(Misfit, match=message) as caught:
        record(Outer, {"inner": _INNER, **changed})
    path = str(caught.value).partition("expected")[0].removesuffix(": ")
    assert caught.value.field == (path if changed != {"inner": {}} else "inner.sizes")


def test_errors_are_short() -> None:
    with pytest.raises(Misfit) as caught:
        record(Outer, {"inner": "x" * 100_000}, "file")
    assert str(caught.value).startswith("file.inner: expected a mapping")
    assert len(str(caught.value)) < 500
