"""Text for and from users: devices by name, similar names, counts in words, advice on what to install."""

import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from litecl.interpreter.errors import DeviceNotFound


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)

_POCL = "PoCL, which runs kernels on the CPU"
# The packages to install if there is no OpenCL device, by system and processor; "" fits any processor.
_PACKAGES = {
    ("Linux", "x86_64"): f"{_POCL}: pip install 'litecl[pocl]'",
    ("Linux", ""): f"{_POCL}: apt install pocl-opencl-icd, or conda install -c conda-forge pocl",
    ("Darwin", ""): f"{_POCL}: conda install -c conda-forge pocl pyopencl",
    ("Windows", ""): "Intel's CPU runtime: pip install intel-opencl-rt intel-cmplr-lib-rt",
}


def advice(system: str | None = None, machine: str | None = None) -> str:
    """Say what to install to get a device. system, machine: None means this machine's."""
    key = system or platform.system(), machine or platform.machine()
    package = _PACKAGES.get(key) or _PACKAGES.get((key[0], "")) or f"{_POCL}: https://portablecl.org"
    return f"Install the OpenCL driver of your GPU, or {package}{_misled()}"


def _misled() -> str:
    """Return a remark if OCL_ICD_VENDORS, the loader's driver folder, does not exist; else ""."""
    folder = os.environ.get("OCL_ICD_VENDORS", "")
    return f" (OCL_ICD_VENDORS is {folder}, which does not exist)" if folder and not Path(folder).exists() else ""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as "1 region" or "2 regions"."""
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"


def listed(devices: Sequence[Named]) -> str:
    """Return the devices with their indices, on one line."""
    return ", ".join(f"{index}: {device.name}" for index, device in enumerate(devices)) or "none"


def named(devices: Sequence[N], wanted: int | str) -> N:
    """Return the device with this index, name, or fragment of exactly one name; case is ignored.

    Raises DeviceNotFound, which lists the devices, if none matches or several do.
    """
    if isinstance(wanted, int):
        if not 0 <= wanted < len(devices):
            raise DeviceNotFound(f"device {wanted} out of range; the devices are {listed(devices)}")
        return devices[wanted]
    low = wanted.lower()
    equal = [device for device in devices if device.name.lower() == low]
    fitting = equal or [device for device in devices if low in device.name.lower()]
    if len(fitting) == 1:
        return fitting[0]
    fault = f"there is no device {wanted!r}"
    if fitting:
        fault = f"{len(fitting)} devices are named {wanted!r}: give an index, or more of the name"
    driver = ". A GPU is listed once its OpenCL driver is installed" if not fitting and low == "gpu" else ""
    raise DeviceNotFound(f"{fault}; the devices are {listed(devices)}{driver}")


def did_you_mean(names: Sequence[str]) -> str:
    """Return "; did you mean ...?" to end a sentence about an unknown name; "" without suggestions."""
    return f"; did you mean {'one of ' * (len(names) > 1)}{', '.join(map(repr, names))}?" if names else ""


def close_names(name: str, known: Iterable[str], count: int) -> list[str]:
    """Return at most ``count`` known names that a misspelt one resembles."""
    import difflib  # only mistakes need it

    return difflib.get_close_matches(name, list(known), count)
