"""Shows results of ``litecl verify`` on many devices as one page, with a row per operator and a column per device."""

from collections.abc import Sequence
from dataclasses import dataclass

from litecl.report.page import environment, look
from litecl.verify.document import sentence
from litecl.verify.record import BAD, PASS, REFUSED, DeviceResult, Result, Row, tally


@dataclass(frozen=True)
class Cell:
    """The outcome of an operator's checks on a device. kind: CSS class. words: tooltip."""

    kind: str
    shown: str
    words: str = ""


@dataclass(frozen=True)
class Column:
    """A device, and where and when it was verified."""

    name: str
    platform: str
    driver: str
    system: str
    processor: str
    litecl: str
    date: str
    passed: int
    checks: int
    failed: int


def board(results: Sequence[Result]) -> str:
    """Return a self-contained HTML page for results."""
    pairs = [(result, device) for result in results for device in result.devices]
    ops = sorted({row.op for _, device in pairs for row in device.rows})
    rows = [(op, [cell([row for row in device.rows if row.op == op]) for _, device in pairs]) for op in ops]
    columns = [_column(result, device) for result, device in pairs]
    sentences = [sentence(result) for result in results]
    return environment().get_template("board.html").render(columns=columns, rows=rows, sentences=sentences, **look())


def cell(rows: Sequence[Row]) -> Cell:
    """Return an operator's cell. Its kind shows the worst outcome of any check."""
    if not rows:
        return Cell("none", "")
    counts = tally(rows)
    checks = counts.total()
    words = ", ".join(f"{count} {status}" for status, count in counts.items())
    bad = [row for row in rows if row.status in BAD]
    if bad:
        known = all(row.waived is not None for row in bad)
        return Cell("known" if known else "bad", f"{counts[PASS]} of {checks}", f"{words}: {bad[0].reason}")
    if counts[REFUSED] == checks:
        return Cell("cpu", "CPU", rows[0].reason)
    if counts[PASS] == checks:
        return Cell("good", str(checks), words)
    return Cell("part", f"{counts[PASS]} of {checks}", words)


def _column(result: Result, device: DeviceResult) -> Column:
    described, env = device.device, result.environment
    return Column(
        name=device.name,
        platform=str(described.get("platform", "")),
        driver=str(described.get("driver", "")),
        system=str(env["system"]),
        processor=str(env["processor"]),
        litecl=str(env["litecl"]),
        date=result.date[:10],
        passed=device.counts.get(PASS, 0),
        checks=device.checks,
        failed=len(device.failures),
    )
