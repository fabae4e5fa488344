"""litecl's dataclasses beside Python's: the same, except for when their functions are generated."""

import copy
import dataclasses
import inspect
import pickle
import re
import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

import litecl.interpreter.dataclass as own

ROOT = Path(__file__).parents[2]


def _classes(dataclass: Any) -> dict[str, Any]:
    """Return classes with every option that litecl uses, by one of the two decorators."""

    @dataclass(frozen=True)
    class Base:
        a: int
        b: list[int] = field(default_factory=list, compare=False)
        c: str = field(default="c", repr=False)

    @dataclass(frozen=True)
    class Derived(Base):
        d: float = 1.5
        e: int = field(kw_only=True, default=4)

        def __post_init__(self) -> None:
            assert self.d > 0

    @dataclass
    class Changing:
        x: int
        made: dict[str, int] = field(init=False, default_factory=dict)
        later: int = field(init=False)

        def __post_init__(self) -> None:
            self.later = self.x + 1

    @dataclass(frozen=True, eq=False)
    class Identified:
        a: int = 1

    @dataclass(frozen=True, kw_only=True)
    class Named:
        b: int = 2
        a: int

    @dataclass(frozen=True)
    class Compared:
        a: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Compared)

        def __repr__(self) -> str:
            return "compared"

    @dataclass(frozen=True)
    class Empty:
        pass

    return {name: cls for name, cls in locals().items() if isinstance(cls, type)}


OURS, PYTHON = _classes(own.dataclass), _classes(dataclasses.dataclass)
Classes = dict[str, Any]
USES: tuple[Callable[[Classes], object], ...] = (
    lambda c: repr(c["Derived"](1, [2], "z", e=3)),
    lambda c: repr(c["Derived"](1, c="z")),
    lambda c: c["Derived"](1, [2]) == c["Derived"](1, [3]),
    lambda c: c["Derived"](1, d=2.0) == c["Derived"](1),
    lambda c: c["Base"](1) == c["Derived"](1),
    lambda c: hash(c["Derived"](1)) == hash(c["Derived"](1, [9])),
    lambda c: hash(c["Base"](1)),
    lambda c: c["Base"](1).b is c["Base"](1).b,
    lambda c: c["Derived"](1, d=-1.0),
    lambda c: c["Derived"](),
    lambda c: c["Derived"](1, 2, 3, 4, 5),
    lambda c: c["Derived"](1, f=1),
    lambda c: c["Derived"](1, a=1),
    lambda c: replace(c["Derived"](1), e=7).e,
    lambda c: dataclasses.asdict(c["Derived"](1, [2])),
    lambda c: [(f.name, f.type, f.kw_only, f.init) for f in fields(c["Derived"])],
    lambda c: c["Derived"].__match_args__,
    lambda c: repr(copy.deepcopy(c["Derived"](1, [2]))),
    lambda c: setattr(c["Derived"](1), "a", 2),
    lambda c: delattr(c["Derived"](1), "a"),
    lambda c: (c["Changing"](1).later, c["Changing"](2).made, c["Changing"](1) == c["Changing"](1)),
    lambda c: vars(setattr(x := c["Changing"](1), "x", 5) or x),
    lambda c: hash(c["Changing"](1)),
    lambda c: c["Identified"]() == c["Identified"](),
    lambda c: len({c["Identified"](), c["Identified"]()}),
    lambda c: repr(c["Named"](a=1)),
    lambda c: c["Named"](1),
    lambda c: (repr(c["Compared"](1)), c["Compared"](1) == c["Compared"](2), hash(c["Compared"](1))),
    lambda c: (repr(c["Empty"]()), c["Empty"]() == c["Empty"](), hash(c["Empty"]())),
    lambda c: c["Empty"](1),
)


def _outcome(use: Callable[[Classes], object], classes: Classes) -> tuple[type, object]:
    try:
        found = use(classes)
    except Exception as error:
        return type(error), str(error)
    return type(found), found


@pytest.mark.parametrize("number", range(len(USES)))
def test_as_pythons(number: int) -> None:
    ours, pythons = (_outcome(USES[number], classes) for classes in (OURS, PYTHON))
    assert ours[0] == pythons[0]
    assert str(ours[1]) == str(pythons[1])


@own.dataclass(frozen=True)
class Kept:
    """Of a module, as pickle needs it."""

    a: int
    b: str = "b"


def test_functions_are_made_when_called() -> None:
    @own.dataclass(frozen=True)
    class Late:
        a: int

    before = vars(Late)["__init__"]
    assert repr(Late(3)).endswith("Late(a=3)")
    assert vars(Late)["__init__"] is not before
    assert vars(Late)["__init__"].__code__.co_varnames == ("self", "a")


def test_an_unpickled_object_comes_before_any_other() -> None:
    """Its class has made no function yet."""
    content = pickle.dumps(Kept(5)).replace(b"Kept", b"Raed")

    @own.dataclass(frozen=True)
    class Raed:
        a: int
        b: str = "c"

    Raed.__qualname__ = "Raed"
    globals()["Raed"] = Raed
    read = pickle.loads(content)
    assert read == Raed(5, "b") and hash(read) == hash(Raed(5, "b")) and repr(read) == "Raed(a=5, b='b')"
    with pytest.raises(FrozenInstanceError):
        read.a = 1


def test_threads_make_the_first_objects_together() -> None:
    for _ in range(20):
        made: list[Any] = []
        cls = _classes(own.dataclass)["Derived"]
        gate = threading.Barrier(8)

        def make(i: int, cls: Any = cls, gate: threading.Barrier = gate, made: list[Any] = made) -> None:
            gate.wait()
            made.append(cls(i, d=2.0 + i))

        threads = [threading.Thread(target=make, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted((each.a, each.d) for each in made) == [(i, 2.0 + i) for i in range(8)]


def test_what_an_import_makes_is_made_late() -> None:
    """Interpreter and delegate make no dataclass of Python's."""
    pythons = {
        str(path.relative_to(ROOT))
        for folder in ("interpreter", "delegate")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"^from dataclasses import .*\bdataclass\b", path.read_text(encoding="utf-8"), re.M)
    }
    assert pythons == {"interpreter/dataclass.py"}


def test_signatures_are_of_the_fields() -> None:
    """Before a first object is made, too, and for subclasses with or without an initialiser of their own."""

    @own.dataclass(frozen=True)
    class Point:
        x: int
        y: int = 2

    class Same(Point):
        pass

    class Other(Point):
        def __init__(self, z: float) -> None: ...

    for cls in (Same, Point):
        assert [*inspect.signature(cls).parameters] == ["x", "y"]
    assert inspect.signature(Point).parameters["y"].default == 2
    assert [*inspect.signature(Other).parameters] == ["z"]
