"""TensorFlow's regular expressions, which are RE2's, by means of Python's.

https://github.com/google/re2/wiki/Syntax
"""

import re
from functools import cache

from litecl.interpreter.errors import ModelError

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
# Escapes with another meaning in Python, or with none.
_UNKNOWN = frozenset("pPQEC")


@cache
def pattern(text: str) -> "re.Pattern[str]":
    """Compile an expression. Raises ModelError if Python cannot express it."""
    try:
        return re.compile(_translated(text), re.ASCII)
    except (re.error, RecursionError) as error:
        raise ModelError(f"the regular expression {text!r}: {error}") from error


def _translated(text: str) -> str:
    """Translate the syntax in which the two differ: ends of texts, and classes by name."""
    parts, at, in_class = [], 0, False
    while at < len(text):
        char = text[at]
        if char == "\\":
            parts.append(_escape(text, at))
            at += 2
            continue
        if in_class and text.startswith("[:", at):
            end = text.find(":]", at)
            name = text[at + 2 : end]
            if end < 0 or name not in _CLASSES:
                raise ModelError(f"the regular expression {text!r}: no class {name!r}")
            parts.append(_CLASSES[name])
            at = end + 2
            continue
        if char == "[" and not in_class:
            in_class = True
            first = 2 if text.startswith("[^", at) else 1
            parts.append(text[at : at + first])
            at += first
            if text.startswith("]", at):
                parts.append("\\]")
                at += 1
            continue
        in_class = in_class and char != "]"
        # Python may some day give characters within a class, such as -- and [, another meaning.
        parts.append("\\[" if in_class and char == "[" else "\\Z" if char == "$" and not in_class else char)
        at += 1
    if "(?" in text and re.search(r"\(\?[a-zA-Z]*m", text):
        raise ModelError(f"the regular expression {text!r}: lines are not supported, only whole texts")
    return "".join(parts)


def _escape(text: str, at: int) -> str:
    code = text[at + 1 : at + 2]
    if code in _UNKNOWN:
        raise ModelError(f"the regular expression {text!r}: \\{code} is not supported")
    return "\\Z" if code == "z" else f"\\{code}"


def replaced(text: str, wanted: str, rewrite: str, *, everywhere: bool) -> str:
    """Rewrite the first match of a pattern, or all; ``\\1`` in ``rewrite`` is a group."""
    parts: list[str] = []
    end = 0
    for match in pattern(wanted).finditer(text):
        if match.start() == match.end() == end and parts:
            continue  # an empty match right behind a match does not count
        parts += [text[end : match.start()], _rewritten(match, rewrite)]
        end = match.end()
        if not everywhere:
            break
    return "".join([*parts, text[end:]])


def _rewritten(match: "re.Match[str]", rewrite: str) -> str:
    def escaped(escape: "re.Match[str]") -> str:
        code = escape[1]
        return (match[int(code)] or "") if code.isdigit() else code

    return re.sub(r"\\(.)", escaped, rewrite, flags=re.DOTALL)
