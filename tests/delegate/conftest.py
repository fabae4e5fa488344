"""Devices that several tests of the delegate share."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options of delegates for a GPU that cuts products into large tiles."""
    from support import devices  # which imports OpenCL: tests of passes need none

    with devices.in_tiles("large tiles", tmp_path_factory.mktemp("programs")) as found:
        yield found
