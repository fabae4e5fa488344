"""A full disk: files of this process cannot grow beyond a size."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def full_disk(most_bytes: int) -> Iterator[None]:
    """Make every write beyond a size raise OSError; skip the test if the system has no such limit."""
    resource = pytest.importorskip("resource", reason="the system limits no file's size")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
