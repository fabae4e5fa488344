"""What a library prints."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

_DESCRIPTORS = 1, 2  # stdout and stderr


@contextmanager
def printed() -> Iterator[list[str]]:
    """Catch what Python and libraries write to stdout and stderr; fill the list with its lines at the end."""
    lines: list[str] = []
    with tempfile.TemporaryFile("w+", buffering=1, errors="replace") as file:
        kept = [os.dup(descriptor) for descriptor in _DESCRIPTORS]
        for descriptor in _DESCRIPTORS:
            os.dup2(file.fileno(), descriptor)
        try:
            with redirect_stdout(file), redirect_stderr(file):
                yield lines
        finally:
            for descriptor, copy in zip(_DESCRIPTORS, kept, strict=True):
                os.dup2(copy, descriptor)
                os.close(copy)
            file.seek(0)
            lines += file.read().splitlines()
