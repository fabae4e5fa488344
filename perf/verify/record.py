"""What verifying has found: rows, devices and the machine, as they are kept in a JSON file."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from litecl.interpreter.errors import ModelError
from litecl.perf.measure.environment import SCHEMA, read_results

KIND = "litecl verify"

PASS, FAIL, REFUSED, SLOWER = "pass", "fail", "refused", "slower"
CRASHED, TIMEOUT, NOT_RUN = "crashed", "timed out", "not run"
STATUSES = (PASS, FAIL, CRASHED, TIMEOUT, SLOWER, REFUSED, NOT_RUN)
BAD = frozenset({FAIL, CRASHED, TIMEOUT})


@dataclass(frozen=True)
class Row:
    """One check on one device.

    status: one of STATUSES. reason: why it is not "pass". reference: what was expected, the interpreter's outputs or
    LiteRT's. relative: worst difference, as a part of the expected output's largest magnitude; bound: the most that it
    may be, and bound_source where that is written. ulp: the worst difference in steps of the element type.
    kernels: files and functions that the device ran. alone: the status in a process of its own, of what is bad.
    waived: the reason of the waiver that it falls under. unexpected: of a refusal, that devices usually
    run it. seconds: building included.
    """

    check: str
    op: str
    version: int
    types: str
    shapes: str
    edge: str
    status: str
    reason: str = ""
    reference: str = ""
    relative: float | None = None
    ulp: float | None = None
    bound: float | None = None
    bound_source: str = ""
    kernels: tuple[str, ...] = ()
    alone: str | None = None
    waived: str | None = None
    unexpected: bool = False
    seconds: float = 0.0
    device_ms: float | None = None
    cpu_ms: float | None = None

    @property
    def counts(self) -> bool:
        """Whether it is a failure that no waiver covers."""
        return self.status in BAD and self.waived is None


@dataclass(frozen=True)
class DeviceResult:
    """All checks on one device. device: its row of ``litecl devices``; notes: what went wrong with the run itself."""

    device: Mapping[str, Any]
    rows: tuple[Row, ...]
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the device."""
        return str(self.device["name"])

    @property
    def counts(self) -> dict[str, int]:
        """How many rows have each status, without those that none has."""
        found = Counter(row.status for row in self.rows)
        return {status: found[status] for status in STATUSES if found[status]}

    @property
    def failures(self) -> tuple[Row, ...]:
        """The rows that count as failures."""
        return tuple(row for row in self.rows if row.counts)


@dataclass(frozen=True)
class Result:
    """A whole run. environment: machine and versions. command, date: how and when (UTC) it was started."""

    environment: Mapping[str, Any]
    devices: tuple[DeviceResult, ...]
    command: str = ""
    date: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def failed(self) -> bool:
        """Whether anything failed, or nothing was run at all."""
        return bool(self.notes) or not self.devices or any(d.failures or d.notes for d in self.devices)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, with the schema's version."""
        return {"schema": SCHEMA, "kind": KIND} | asdict(self)


def load(path: Path) -> Result:
    """Read what ``litecl verify -o FILE.json`` wrote. Raises ModelError for anything else."""
    data = read_results(path, KIND)
    try:
        return from_dict(data)
    except (KeyError, TypeError) as error:
        raise ModelError(f"{path}: expected results of {KIND}: {error!r}") from error


def from_dict(data: Mapping[str, Any]) -> Result:
    """Return the result that ``to_dict`` made into data."""
    devices = tuple(
        DeviceResult(d["device"], tuple(row(r) for r in d["rows"]), d["seconds"], tuple(d["notes"]))
        for d in data["devices"]
    )
    return Result(data["environment"], devices, data["command"], data["date"], tuple(data["notes"]))


def row(data: Mapping[str, Any]) -> Row:
    """Return a row from plain data."""
    return Row(**{**data, "kernels": tuple(data["kernels"])})
