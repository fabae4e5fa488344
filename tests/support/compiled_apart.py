"""Regions whose files could not be compiled as one source, which costs time and is told in the log alone."""

import logging

LOGGER = "litecl.delegate.opencl.programs"
_found: list[str] = []


class _Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if "compiled one by one" in record.getMessage():
            _found.append(record.getMessage())


def watch() -> None:
    """Note them from now on."""
    logger = logging.getLogger(LOGGER)
    logger.addHandler(_Handler())
    logger.setLevel(logging.INFO)


def noted() -> list[str]:
    """Return what was noted since the last call."""
    found = _found.copy()
    _found.clear()
    return found
