"""Regions whose files, as one source, a compiler refused: that costs time and is told in the log alone."""

from importlib.util import find_spec
from typing import Any

_found: list[str] = []


class _Log:
    """A logger that notes them."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def info(self, message: str, *values: object) -> None:
        if "compiled one by one" in message:
            _found.append(message % values)
        self._log.info(message, *values)


def watch() -> None:
    """Note them from now on."""
    if find_spec("pyopencl") is None:
        return
    from litecl.delegate.opencl import programs

    setattr(programs, "_LOG", _Log(programs._LOG))  # noqa: B010  # mypy knows what is there as a logger


def noted() -> list[str]:
    """Return what was noted since the last call."""
    found = _found.copy()
    _found.clear()
    return found
