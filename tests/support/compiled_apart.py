"""Regions whose files could not be compiled as one source, which costs time and is told in the log alone."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_found: list[str] = []


def watch() -> None:
    """Note them from now on."""
    if find_spec("pyopencl") is None:
        return
    from litecl.delegate.opencl.programs import Programs

    as_one = Programs._as_one

    def watched(self: Any, key: str, files: Sequence[Any], entry: str) -> Any:
        program = as_one(self, key, files, entry)
        if program is None and self._whole and not any(Path(file.name).is_absolute() for file in files):
            _found.append(f"compiled one by one: {', '.join(file.name for file in files)}")
        return program

    setattr(Programs, "_as_one", watched)  # noqa: B010  # mypy knows methods as final


def noted() -> list[str]:
    """Return what was noted since the last call."""
    found = _found.copy()
    _found.clear()
    return found
