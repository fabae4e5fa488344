"""Choices that hang on how fast a device is at what: made once for a device, and kept in the cache folder.

They change how long a model takes, never what it computes. ``perf/measure/tuning.py`` measures them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from litecl.delegate import disk
from litecl.interpreter.errors import DelegateError

_VERSION = 1  # of the file; goes up when fields or kernels change so that older figures mislead
_MOST = 1e15


@dataclass(frozen=True)
class Tuning:
    """The choices for a CPU device; the defaults are good ones where nothing was measured.

    winograd_channels: from how many channels on (the fewer of those in and out) a 3x3 convolution is Winograd's.
    item_flops: arithmetic operations of a work-item of a matrix product, enough that starting it costs nothing.
    small_flops: arithmetic operations of a model below which the single-threaded device is chosen instead of this one:
        an invoke is over before a second thread has woken up.
    """

    winograd_channels: float = 16
    item_flops: float = 1e6
    small_flops: float = 3e7

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float) or not 0 <= value <= _MOST:
                raise DelegateError(f"tuning: {field.name}: expected a number from 0 to {_MOST:g}, got {value!r}")


@dataclass(frozen=True)
class Timing:
    """What a choice (a field of Tuning) was made by: the best times of its candidates on one subject, in ms."""

    choice: str
    subject: str
    times_ms: Mapping[str, float]


@dataclass(frozen=True)
class Measurement:
    """A tuning, and the timings that it follows from."""

    tuning: Tuning
    timings: tuple[Timing, ...] = ()


def load(directory: Path | None, identity: Sequence[str]) -> Tuning:
    """The tuning of a device, or the defaults where none was measured. identity: what tells it apart."""
    found = measurement(directory, identity)
    return Tuning() if found is None else found.tuning


def measurement(directory: Path | None, identity: Sequence[str]) -> Measurement | None:
    """What was measured on a device; None where there is no file, or one that this version cannot use."""
    if directory is None:
        return None
    path = file_of(directory, identity)
    try:
        return _decoded(json.loads(path.read_bytes()))
    except Exception:  # whatever a file holds that another program has written, or half of it
        return None


def save(directory: Path, identity: Sequence[str], name: str, found: Measurement) -> None:
    """Keeps a measurement in place of an earlier one. Of several processes that write, the last one wins.

    name: of the device, for people who open the file.
    """
    content = {"version": _VERSION, "device": name, **asdict(found)}
    disk.write_atomically(file_of(directory, identity), json.dumps(content, indent=1).encode())


def file_of(directory: Path, identity: Sequence[str]) -> Path:
    """The file of a device."""
    return directory / f"{disk.key('tuning', identity)}.json"


def _decoded(content: Any) -> Measurement | None:
    if content["version"] != _VERSION:
        return None
    timings = (
        Timing(str(t["choice"]), str(t["subject"]), {str(name): float(ms) for name, ms in t["times_ms"].items()})
        for t in content["timings"]
    )
    return Measurement(Tuning(**content["tuning"]), tuple(timings))
