"""The result of verification as stored in JSON: rows, devices and the machine."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from litecl.interpreter.errors import ModelError, brief
from litecl.perf.environment import SCHEMA, read_results

KIND = "litecl verify"

PASS, FAIL, REFUSED, SLOWER = "pass", "fail", "refused", "slower"
CRASHED, TIMEOUT, NOT_RUN = "crashed", "timed out", "not run"
STATUSES = (PASS, FAIL, CRASHED, TIMEOUT, SLOWER, REFUSED, NOT_RUN)
BAD = frozenset({FAIL, CRASHED, TIMEOUT})


@dataclass(frozen=True)
class Row:
    """One check on one device.

    status: one of STATUSES. reason: why it is not "pass". reference: whose outputs were expected, the interpreter's or
    LiteRT's. relative: worst difference, relative to the expected output's largest magnitude; bound: its limit;
    bound_source: where the limit is defined. ulp: worst difference in steps of the element type.
    kernels: files and functions that the device ran. alone: for bad checks, the status when run in a separate process.
    waived: the reason of the waiver that covers it. unexpected: refused although devices usually run it. case: the
    folder with its smallest model, if written. seconds: including compilation. checks: how many checks the row
    summarizes; several in a brief result.
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
    case: str = ""
    seconds: float = 0.0
    device_ms: float | None = None
    cpu_ms: float | None = None
    checks: int = 1

    @property
    def counts(self) -> bool:
        """True if it is a failure that no waiver covers."""
        return self.status in BAD and self.waived is None


def tally(rows: Iterable[Row]) -> Counter[str]:
    """Count checks by status."""
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row.status] += row.checks
    return counts


@dataclass(frozen=True)
class DeviceResult:
    """All checks on one device. device: its row of ``litecl devices``; notes: problems with the run itself."""

    device: Mapping[str, Any]
    rows: tuple[Row, ...]
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The device's name."""
        return str(self.device["name"])

    @property
    def counts(self) -> dict[str, int]:
        """The number of checks per status, without zeros."""
        totals = tally(self.rows)
        return {status: totals[status] for status in STATUSES if totals[status]}

    @property
    def checks(self) -> int:
        """The number of checks."""
        return sum(row.checks for row in self.rows)

    @property
    def failures(self) -> tuple[Row, ...]:
        """The rows that count as failures."""
        return tuple(row for row in self.rows if row.counts)


@dataclass(frozen=True)
class Result:
    """A whole run. environment: machine and versions. command, date: how and when (UTC) it started."""

    environment: Mapping[str, Any]
    devices: tuple[DeviceResult, ...]
    command: str = ""
    date: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def failed(self) -> bool:
        """True if anything failed, or if nothing ran."""
        return bool(self.notes) or not self.devices or any(d.failures or d.notes for d in self.devices)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data with the schema's version."""
        return {"schema": SCHEMA, "kind": KIND} | asdict(self)

    def to_brief(self) -> dict[str, Any]:
        """Return brief plain data, without fields that have their default."""
        data = in_brief(self).to_dict()
        usual = {field.name: field.default for field in fields(Row)}
        for device in data["devices"]:
            device["rows"] = [{k: v for k, v in row.items() if v != usual[k]} for row in device["rows"]]
        return data


def labels(results: Iterable[Result]) -> list[str]:
    """Return a label for every device: its name, with its driver if several share the name."""
    devices = [device for result in results for device in result.devices]
    alike = Counter(device.name for device in devices)
    return [d.name if alike[d.name] == 1 else f"{d.name}, {d.device.get('driver', '')}" for d in devices]


def in_brief(result: Result) -> Result:
    """Merge checks of an operator with the same types and outcome into one row, with the worst error.

    Failures keep their own full rows.
    """
    return replace(result, devices=tuple(replace(device, rows=_merged(device.rows)) for device in result.devices))


def _merged(rows: Iterable[Row]) -> tuple[Row, ...]:
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        alike = row.check if row.status in BAD else (row.types, row.status, row.reason, row.unexpected, row.waived)
        groups.setdefault((row.op, alike), []).append(row)
    return tuple(group[0] if group[0].status in BAD else _one(group) for group in groups.values())


def _one(rows: Sequence[Row]) -> Row:
    worst = max(rows, key=lambda row: (row.relative or 0.0, row.ulp or 0.0))
    return Row(
        check=f"{worst.op}/{'*' if len(rows) > 1 else worst.check.partition('/')[2]}",
        op=worst.op,
        version=max(row.version for row in rows),
        types=worst.types,
        shapes="",
        edge="",
        status=worst.status,
        reason=worst.reason,
        relative=worst.relative,
        ulp=worst.ulp,
        bound=worst.bound,
        waived=worst.waived,
        unexpected=worst.unexpected,
        seconds=round(sum(row.seconds for row in rows), 1),
        checks=sum(row.checks for row in rows),
    )


def load(path: Path) -> Result:
    """Read a file written by ``litecl verify -o FILE.json``. Raises ModelError for anything else."""
    data = read_results(path, KIND)
    try:
        return from_dict(data)
    except (KeyError, TypeError) as error:
        raise ModelError(f"{path}: expected results of {KIND}: {type(error).__name__}: {brief(str(error))}") from error


def from_dict(data: Mapping[str, Any]) -> Result:
    """Return a result from ``to_dict``'s data."""
    devices = tuple(
        DeviceResult(d["device"], tuple(row(r) for r in d["rows"]), d["seconds"], tuple(d["notes"]))
        for d in data["devices"]
    )
    return Result(data["environment"], devices, data["command"], data["date"], tuple(data["notes"]))


def row(data: Mapping[str, Any]) -> Row:
    """Return a row from plain data."""
    return Row(**{**data, "kernels": tuple(data.get("kernels", ()))})
