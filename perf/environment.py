"""Describes the machine, its devices and versions, and reads results files."""

import json
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import litecl
from litecl.delegate.native.processors import processors
from litecl.interpreter.errors import ModelError, brief
from litecl.perf.devices import device_rows, index_of
from litecl.perf.doubts import load

SCHEMA = 1
_PACKAGES = ("pyopencl", "pocl-binary-distribution", "intel-opencl-rt", "flatbuffers")
_VARIABLES = ("POCL_", "OCL_", "CL_", "OPENCL_", "PYOPENCL_")


def machine() -> dict[str, Any]:
    """Describe the machine and versions, without loading OpenCL."""
    return {
        "litecl": litecl.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
        "system": platform.platform(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": processors(),
        "variables": {k: v for k, v in sorted(os.environ.items()) if k.startswith(_VARIABLES)},
    }


def header(kind: str) -> dict[str, Any]:
    """Return the header of every results file. kind: the command that produces it."""
    return {
        "schema": SCHEMA,
        "kind": kind,
        "command": shlex.join(["litecl", *sys.argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine() | {"load": load()},
    }


def read_results(path: Path, kind: str, header: str | None = None) -> dict[str, Any]:
    """Read a results file. Raises ModelError for another kind or schema.

    kind: the header's. header: the key that holds the header; by default its fields are at the top level.
    """
    try:
        data = json.loads(path.read_text())
        head = data if header is None else data[header]
        recorded = head["kind"], head["schema"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        fault = f"{type(error).__name__}: {brief(str(error))}"  # not its repr, which may include the whole file
        wanted = f"`{kind} --json`" if header is None else f"{kind} as JSON"
        raise ModelError(f"{path}: expected results of {wanted}, got another file ({fault})") from error
    if recorded != (kind, SCHEMA):
        got, schema = (brief(str(each)) for each in recorded)
        raise ModelError(f"{path}: expected results of {kind}, schema {SCHEMA}, got {got}, schema {schema}")
    return dict(data)


def plain(data: Any) -> Any:
    """Convert data, dataclasses too, to that of standard JSON: non-finite numbers become None."""
    return json.loads(json.dumps(data, default=_record), parse_constant=lambda name: None)


def _record(data: Any) -> dict[str, Any]:
    return {field.name: getattr(data, field.name) for field in fields(data)}


def named(device: str) -> dict[str, Any]:
    """Return the ``litecl devices`` row for a delegation report's device, or only its name if there is none."""
    return next((asdict(row) for row in device_rows() if row.name == device), {"name": device})


def described(devices: Sequence[str]) -> list[dict[str, Any]]:
    """Return the ``litecl devices`` rows of the given devices.

    devices: as ``CLDelegate(device=...)`` takes them, or "all"; none means litecl's default for large models. Raises
    DeviceNotFound for one that doesn't exist.
    """
    rows = device_rows()
    if "all" in devices:
        return [asdict(row) for row in rows]
    if not devices:
        return [asdict(row) for row in rows if "large models" in row.default_for]
    return [asdict(rows[index_of(device)]) for device in dict.fromkeys(devices)]


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # half as slow to import as numpy

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """Return the processor's name from Linux, or else from Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), sys.platform)
