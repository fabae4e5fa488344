"""Kernel files as one source, which one compilation turns into a program without a linker.

Files define the same names, each with other macros. So the names that a file defines, on lines that are not indented,
get its number while it is read, and its macros are forgotten behind it. A function that several have alike (SHARED) has
one name in all of them, and the first of them that is compiled defines it, and LITECL_HAS_<name>.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from litecl.delegate.backend.sources import source_of

_WORD = r"\w+(?:\((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*\))?"  # with what is in parentheses behind it
_FUNCTION = re.compile(rf"^(?!typedef\b)(?:{_WORD}[ *]+)+(\w+)\(", re.M)
_TYPE = re.compile(r"^(?:typedef [^{}\n]*?|\} )(\w+)(?: \w+\(.*\))?;", re.M)
_VECTORS = re.compile(r"^VECTORS_OF\(\w+, (\w+)\)", re.M)  # common.h
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
_SHARED = re.compile(r"^SHARED .*?(\w+)\(", re.M)
_BUILTINS = "builtins.h"


class File(NamedTuple):
    """A kernel file to compile. options: its macros. before, after: what else belongs to it."""

    name: str
    options: tuple[str, ...]
    before: str = ""
    after: str = ""

    @property
    def source(self) -> str:
        """The whole text."""
        return self.before + source_of(self.name) + self.after


def unit(files: Sequence[File]) -> str:
    """Return files as one, of which the last may have names that others know."""
    *parts, main = files
    shared: dict[tuple[str, ...], str] = {}
    texts = [_part(file, number, shared) for number, file in enumerate(parts)]
    return "".join(texts) + _defined(main.options) + main.source


def _part(file: File, number: int, shared: dict[tuple[str, ...], str]) -> str:
    """Return a file between the macros that rename what it defines, and their end. shared: the names of functions that
    several have, by the name in the file and what they depend on.
    """
    names, macros = _names(file.name)
    given = dict(option[2:].split("=", 1) for option in file.options)
    renamed = {name: f"{name}_{number}" for name in names}
    before = after = ""
    for name in _shared(file.name):
        key = name, given.get("T", ""), given.get("WIDTH", given["VW"])
        renamed[name] = shared.setdefault(key, f"{name}_of_{len(shared)}")
        before += f"#ifdef LITECL_HAS_{renamed[name]}\n#define LITECL_HAS_{name}\n#endif\n"
        after += f"#ifdef LITECL_HAS_{name}\n#define LITECL_HAS_{renamed[name]}\n#endif\n"
    defined = {**given, **renamed}
    before += "".join(f"#define {name} {value}\n" for name, value in defined.items())
    return before + file.source + after + "".join(f"#undef {name}\n" for name in (*defined, *macros))


def _defined(options: Sequence[str]) -> str:
    return "".join(f"#define {option[2:].replace('=', ' ', 1)}\n" for option in options)


@cache
def _names(file: str) -> tuple[list[str], list[str]]:
    """Return what a file defines, with all that it includes: functions and types, and macros."""
    names, macros = _defined_in(source_of(file))
    builtins, their_macros = _defined_in(source_of(_BUILTINS))
    return sorted(names - builtins), sorted(macros - their_macros)


@cache
def _shared(file: str) -> list[str]:
    return _SHARED.findall(source_of(file))


def _defined_in(text: str) -> tuple[set[str], set[str]]:
    by_macro = (
        name for vector in _VECTORS.findall(text) for name in (f"load_{vector}", f"store_{vector}", f"{vector}_u")
    )
    return {*_FUNCTION.findall(text), *_TYPE.findall(text), *by_macro}, {*_MACRO.findall(text)}
