"""The text of kernel files with their headers, and the macros to compile them with."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from litecl import kernels_cl
from litecl.delegate.kit.shared import header
from litecl.delegate.launch import is_users
from litecl.interpreter.errors import KernelBuildError

_KERNELS = Path(kernels_cl.__file__).parent
Defines = Mapping[str, str | int | float]
_INCLUDE = re.compile(r'#include (?:"(\w+\.h)"|<([\w.]+)>)')


def source_of(name: str) -> str:
    """Return a kernel file with headers and shared records inlined in place of #include, and correct line numbers.
    Caches litecl's own files, but not a user's, which have absolute paths and may change. Raises KernelBuildError.
    """
    return _expanded(name) if is_users(name) else _own(name)


@cache
def _own(name: str) -> str:
    return _expanded(name)


def _expanded(name: str) -> str:
    try:
        content = (_KERNELS / name).read_text(encoding="utf-8")
    except OSError as error:
        raise KernelBuildError(f"{name}: {error.strerror}") from error
    quoted = name.replace("\\", r"\\").replace('"', r"\"")
    lines = [f'#line 1 "{quoted}"']
    for number, line in enumerate(content.splitlines(), start=1):
        found = _INCLUDE.fullmatch(line)
        lines.append(f'{_included(*found.groups())}#line {number + 1} "{quoted}"' if found else line)
    return "\n".join(lines) + "\n"


def _included(file: str | None, shared: str | None) -> str:
    return header(shared) if file is None and shared is not None else _own(str(file))


def name_of(source: str) -> str:
    """Return the kernel file that a source was expanded from."""
    found = re.findall(r'#line 1 "((?:[^"\\\n]|\\.)+\.cl)"', source)
    return re.sub(r"\\(.)", r"\1", found[-1]) if found else "a program"


def render(defines: Defines) -> tuple[str, ...]:
    """Return macros as build options, floats as C literals of type float."""
    return tuple(f"-D{name}={_literal(value)}" for name, value in sorted(defines.items()))


def _literal(value: str | int | float) -> str:
    return f"{value!r}f" if isinstance(value, float) else str(value)
