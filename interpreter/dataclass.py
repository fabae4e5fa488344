"""Dataclasses that generate their functions on first use: declaring one takes a tenth of the usual time.

An import declares some two hundred classes, and a model needs half of them. ``InitVar`` and ``slots`` are unsupported.
"""

from dataclasses import MISSING, Field, FrozenInstanceError, fields
from dataclasses import dataclass as _declared
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn


def _dataclass(cls: Any = None, /, *, frozen: bool = False, eq: bool = True, kw_only: bool = False) -> Any:
    """Like ``dataclasses.dataclass``, except that subclasses of a frozen class can't set attributes either."""
    if cls is None:
        return lambda cls: _dataclass(cls, frozen=frozen, eq=eq, kw_only=kw_only)
    own = {name for name, value in vars(cls).items() if value is not None}  # a class with __eq__ has __hash__ = None
    cls.__doc__ = cls.__doc__ or cls.__name__  # else Python generates one, by ``inspect``
    cls = _declared(cls, init=False, repr=False, eq=False, kw_only=kw_only)
    functions = {"__init__": _initialiser(cls), "__repr__": _shown, "__signature__": _SIGNATURE}
    functions |= _comparison(cls, frozen) if eq else {}
    functions |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete} if frozen else {}
    for name, function in functions.items():
        if name not in own:
            setattr(cls, name, function)
    return cls


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass


class _Signature:
    """The signature of a class's ``__init__``, computed on demand."""

    def __get__(self, instance: Any, owner: type) -> Any:
        from inspect import signature  # few processes ask for one

        initialise = owner.__init__  # type: ignore[misc]
        late = getattr(initialise, "first_of", None)
        whole = signature(initialise if late is None else _settled(late))
        return whole.replace(parameters=[*whole.parameters.values()][1:])


_SIGNATURE = _Signature()


def _initialiser(cls: type) -> Any:
    """Return an ``__init__`` that, once called, generates the real one and puts it in its place in the class."""

    def first(self: Any, *args: Any, **named: Any) -> None:
        _settled(cls)(self, *args, **named)

    first.first_of = cls  # type: ignore[attr-defined]
    return first


def _settled(cls: type) -> Any:
    initialise = _generated(cls)
    setattr(cls, "__init__", initialise)  # noqa: B010  # mypy knows it as a method
    return initialise


def _generated(cls: type) -> Any:
    """Return a class's ``__init__``."""
    declared = fields(cls)
    given = [field for field in declared if field.init]
    positional = [_parameter(field) for field in given if not field.kw_only]
    named = [_parameter(field) for field in given if field.kw_only]
    free = vars(cls).get("__setattr__") is not _refuse_to_set
    lines = [line for field in declared if (line := _assignment(field, free))]
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    parameters = ", ".join(["self", *positional, *(["*"] if named else []), *named])
    known: dict[str, Any] = {"_set": object.__setattr__, "_ABSENT": MISSING}
    known |= {f"_{field.name}": field.default for field in given}
    known |= {f"_new_{field.name}": field.default_factory for field in declared}
    exec(f"def __init__({parameters}):\n  " + "\n  ".join(lines or ["pass"]), known)
    initialise = known["__init__"]
    initialise.__qualname__, initialise.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return initialise


def _parameter(field: Field[Any]) -> str:
    if field.default_factory is not MISSING:
        return f"{field.name}=_ABSENT"
    return field.name if field.default is MISSING else f"{field.name}=_{field.name}"


def _assignment(field: Field[Any], free: bool) -> str:
    """Return the statement that assigns a field, empty if another place does. free: the class isn't frozen."""
    name = value = field.name
    if field.default_factory is not MISSING:
        value = f"_new_{name}() if {name} is _ABSENT else {name}" if field.init else f"_new_{name}()"
    elif not field.init:
        return ""
    return f"self.{name} = {value}" if free else f"_set(self, {name!r}, {value})"


def _comparison(cls: type, frozen: bool) -> dict[str, Any]:
    """Return ``__eq__`` and ``__hash__``; the latter is None unless the class is frozen."""
    names = [field.name for field in fields(cls) if field.compare]
    key: Any = attrgetter(*names) if len(names) > 1 else lambda self: tuple(getattr(self, name) for name in names)

    def equal(self: Any, other: object) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    return {"__eq__": equal, "__hash__": (lambda self: hash(key(self))) if frozen else None}


@recursive_repr()
def _shown(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_to_set(self: Any, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
