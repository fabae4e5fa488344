"""The OpenCL devices that tests run on."""

from typing import Any

from litecl.delegate.device import devices


def tested() -> list[Any]:
    """Every device there is, but for PoCL's single-threaded twin of its CPU device."""
    return [device for device in devices() if not device.name.startswith("basic")]
