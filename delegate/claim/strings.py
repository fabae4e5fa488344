"""Parses the delegate's options from strings, as TFLite passes them to a delegate that it loads."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from litecl.delegate.claim.options import CLOptions, KeptNode
from litecl.delegate.naming import close_names, did_you_mean
from litecl.interpreter.errors import DelegateError

_PLACE = re.compile(r"\d+(:\d+)?")
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


def parsed(options: Mapping[Any, Any]) -> dict[str, Any]:
    """Return keywords of ``CLDelegate``. Raises DelegateError for an unknown option or an invalid value."""
    return {str(name): _value(str(name), value) for name, value in options.items()}


def _value(name: str, value: Any) -> Any:
    if name not in _PARSERS:
        meant = did_you_mean(close_names(name, _PARSERS, 1))
        raise DelegateError(f"there is no option {name!r}{meant or '.'} There are: {', '.join(_PARSERS)}")
    if not isinstance(value, str):
        return value
    try:
        return _PARSERS[name](value.strip())
    except ValueError as error:
        raise DelegateError(f"{name}: {error}") from error


def _bool(text: str) -> bool:
    if text.lower() not in (*_TRUE, *_FALSE):
        raise ValueError(f"expected true or false, got {text!r}")
    return text.lower() in _TRUE


def _optional(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: None if text.lower() in ("", "none") else parse(text)


def _device(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _nodes(text: str) -> tuple[Any, ...]:
    """Return "3,1:4" as node 3 of subgraph 0 and node 4 of subgraph 1."""
    pairs = [tuple(int(number) for number in part.split(":")) for part in _names(text)]
    if any(len(pair) > 2 for pair in pairs):
        raise ValueError(f"expected NODE or SUBGRAPH:NODE, got {text!r}")
    return tuple(pair if len(pair) == 2 else pair[0] for pair in pairs)


def kept_nodes(text: str) -> tuple[KeptNode, ...]:
    """Return "3,1:4,x:0" as node 3 of subgraph 0, node 4 of subgraph 1, and the node whose result is "x:0"."""
    return tuple(_nodes(part)[0] if _PLACE.fullmatch(part) else part for part in _names(text))


_KINDS: dict[Any, Callable[[str], Any]] = {
    bool: _bool,
    int: int,
    float: float,
    str: str,
    Collection[str]: _names,
    Collection[int | tuple[int, int]]: _nodes,
    Collection[KeptNode]: kept_nodes,
    object: _optional(_device),
}


def _parser(hint: Any) -> Callable[[str], Any] | None:
    """Return the parser for an option's type; None if it has no string form."""
    if get_origin(hint) is Literal:
        return str
    kinds = get_args(hint) or (hint,)
    parse = next((_KINDS[kind] for kind in kinds if kind in _KINDS), None)
    return _optional(parse) if parse and NoneType in kinds else parse


def _parsers() -> dict[str, Callable[[str], Any]]:
    hints = get_type_hints(CLOptions)
    parsers = {item.name: _parser(hints[item.name]) for item in fields(CLOptions)}
    return {name: parse for name, parse in parsers.items() if parse is not None}


_PARSERS = _parsers()
