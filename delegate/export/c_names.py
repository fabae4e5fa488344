"""Names of a model's inputs and outputs as identifiers of C."""

import re
from collections.abc import Iterable

from litecl.interpreter.errors import DelegateError

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# Of C and of C++, in which the header can be included, and macros of their usual headers.
_RESERVED = re.compile(
    r"alignas|alignof|and|asm|auto|bool|break|case|catch|char|class|compl|concept|const|constexpr|"
    r"continue|decltype|default|delete|do|double|else|enum|explicit|export|extern|false|final|float|for|"
    r"friend|goto|if|import|inline|int|long|module|mutable|namespace|new|noexcept|not|nullptr|operator|or|"
    r"override|private|protected|public|register|requires|restrict|return|short|signed|sizeof|static|"
    r"struct|switch|template|this|throw|true|try|typedef|typeid|typename|typeof|union|unsigned|using|"
    r"virtual|void|volatile|while|xor|EOF|NULL|errno|linux|stderr|stdin|stdout|unix"
    r"|u?int(8|16|32|64)_t|wchar_t"
)


def identifiers(names: Iterable[str]) -> list[str]:
    """Return an identifier for each name; all differ, even in capitals."""
    unique_names: list[str] = []
    taken: set[str] = set()
    for name in names:
        base = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
        base = base if base[:1].isalpha() and not _RESERVED.fullmatch(base) else f"t_{base}".rstrip("_")
        unique, number = base, 2
        while unique.upper() in taken:
            unique, number = f"{base}_{number}", number + 1
        taken.add(unique.upper())
        unique_names.append(unique)
    return unique_names


def check_prefix(name: str) -> str:
    """Return a name that precedes a model's symbols. Raises DelegateError if C has no such names."""
    if not _IDENTIFIER.fullmatch(name) or _RESERVED.fullmatch(name):
        raise DelegateError(f"name: expected a letter, then letters, digits and underscores, got {name!r}")
    return name
