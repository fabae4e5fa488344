"""Finds the installed OpenCL drivers without loading one."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_VENDORS = Path("/etc/OpenCL/vendors")
_NAMED_BY = ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "OCL_ICD_FILENAMES")  # variables that name other drivers


def may_have_gpus() -> bool:
    """Return False if pyopencl's loader would find no driver, or only the PoCL of PyPI, which has no GPUs.

    Loading pyopencl and that PoCL doubles a process's time to its first model. On Linux a pyopencl wheel bundles a
    loader, which finds drivers by the ``*.icd`` files in its folder and in /etc/OpenCL/vendors
    (https://github.com/isuruf/ocl-icd). Other loaders may look elsewhere.
    """
    if "pyopencl" in sys.modules or sys.platform != "linux" or any(name in os.environ for name in _NAMED_BY):
        return True
    spec = importlib.util.find_spec("pyopencl")
    folder = None if spec is None or spec.origin is None else Path(spec.origin).parent / ".libs"
    if folder is None or not any(folder.glob("libOpenCL*")):
        return True
    return any(not _is_pocl_of_pypi(driver, folder) for driver in _drivers(folder))


def _drivers(folder: Path) -> Iterator[Path]:
    yield from folder.glob("*.icd")
    yield from _VENDORS.glob("*.icd")


def _is_pocl_of_pypi(driver: Path, folder: Path) -> bool:
    return driver.parent == folder and driver.name == "pocl.icd"
