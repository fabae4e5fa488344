"""Turns the arguments in litecl's docstrings (``name: text``) into tables of the reference, and shows those of its
dataclasses.
"""

import re
from collections.abc import Collection
from typing import Any

from griffe import Alias, Docstring, Extension, Object

_NAMES = r"[a-z_][\w.]*(?:, [a-z_][\w.]*)*"
_ENTRY = re.compile(rf"(?:{_NAMES}): \S")
_NEXT = re.compile(rf"(?<=[.)]) (?=({_NAMES}): )")


class Arguments(Extension):
    """Gives the arguments of classes and functions the heading by which griffe finds them."""

    def on_alias_instance(self, *, alias: Alias, **kwargs: Any) -> None:
        """Let griffe take litecl's ``dataclass``, which makes the same of a class, for Python's."""
        if alias.target_path == "litecl.interpreter.dataclass.dataclass":
            alias.target_path = "dataclasses.dataclass"

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Rewrite a docstring that has arguments, when the members of its class are known."""
        if obj.docstring is not None and (obj.is_class or obj.is_function):
            known = {*obj.members, *(each.name for each in getattr(obj, "parameters", ()))}
            text = sectioned(obj.docstring.value, known)
            obj.docstring = Docstring(text, lineno=obj.docstring.lineno, endlineno=None, parent=obj)


def sectioned(text: str, known: Collection[str]) -> str:
    """Return a docstring with its arguments at the end, below ``Args:``. known: names that may begin within a line."""
    prose, entries = [], list[str]()
    inside = False
    for line in text.splitlines():
        if _ENTRY.match(line):
            entries.append(line)
            inside = True
        elif inside and line.strip() and not line.startswith("Raises "):
            entries[-1] += f" {line.strip()}"
        else:
            inside = False
            prose.append(line)
    if not entries:
        return text
    listed = "\n".join(f"    {one}" for entry in entries for one in _split(entry, known))
    return f"{chr(10).join(prose).strip()}\n\nArgs:\n{listed}\n"


def _split(entry: str, known: Collection[str]) -> list[str]:
    """Return the arguments that one paragraph tells."""
    starts = [m.end() for m in _NEXT.finditer(entry) if {*m[1].split(", ")} <= {*known}]
    return [entry[a:b].strip() for a, b in zip([0, *starts], [*starts, len(entry)], strict=True)]
