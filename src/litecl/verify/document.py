"""Renders a result as a sentence for bug reports, and as tables for every page format."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from litecl.verify.record import BAD, PASS, REFUSED, STATUSES, DeviceResult, Result, Row, tally

_NAMED = 4  # failures named in the sentence, one per operator


@dataclass(frozen=True)
class Table:
    """A table with a title. marked: the rows that failed."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: frozenset[int] = frozenset()


def sentence(result: Result) -> str:
    """Return the outcome as a sentence with devices, machine and versions."""
    env = result.environment
    date = f", {result.date}" if result.date else ""
    where = f"{env['system']}, {env['processor']}, {env['cores']} cores, Python {env['python']}, numpy {env['numpy']}"
    parts = [f"{_named(d)}: {_outcome(d)}" for d in result.devices] + [f"{note}." for note in result.notes]
    return f"litecl {env['litecl']} ({result.command}{date}) on {where}. {' '.join(parts)}"


def tables(result: Result) -> list[Table]:
    """Return all tables: failures, operators, exactness, refusals, machine and devices."""
    details = [table for device in result.devices for table in (_exactness(device), _refusals(device))]
    failures = [_differing(result), *map(_problems, result.devices)]
    shown = [*failures, _operators(result), *details, _environment(result)]
    return [table for table in shown if table.rows]


def replay(device: DeviceResult, row: Row) -> str:
    """Return the command that repeats a check."""
    on = device.device.get("option") or f"--device {device.device['index']}"
    on += f" --numbers {device.device['numbers']}" if "numbers" in device.device else ""
    return f"litecl verify {on} --replay {shlex.quote(row.check)}"


def _named(device: DeviceResult) -> str:
    d = device.device
    if "option" in d:
        return f"{d['name']} ({d['platform']} {d['driver']})".replace(" )", ")")
    driver = "" if d["driver"] in d["platform"] else f"driver {d['driver']}"
    return f"{d['name']} ({', '.join(filter(None, (d['platform'], driver, d['version'])))})"


def _outcome(device: DeviceResult) -> str:
    counts = device.counts
    words = [f"{counts.get(PASS, 0)} of {device.checks} checks pass"]
    words += [f"{count} {status}" for status, count in counts.items() if status != PASS]
    waived = sum(row.checks for row in device.rows if row.waived is not None)
    words += [f"{waived} of them known"] if waived else []
    unexpected = sum(row.checks for row in device.rows if row.unexpected)
    words += [f"{unexpected} of the refused run on other devices"] if unexpected else []
    text = ", ".join(words)
    if not device.failures:
        return f"{text}." + "".join(f" {note}." for note in device.notes)
    named_rows = list({row.op: row for row in reversed(device.failures)}.values())[::-1][:_NAMED]
    named = "; ".join(f"{row.check} {_reason(row)}" for row in named_rows)
    more = len(device.failures) - len(named_rows)
    others = f"; and {more} more" if more > 0 else ""
    return f"{text}: {named}{others}. Again: {replay(device, device.failures[0])}"


def _reason(row: Row) -> str:
    alone = "" if row.alone in (None, row.status) else f"; alone: {row.alone}"
    waived = "" if row.waived is None else f"; known: {row.waived}"
    return f"({row.status}: {row.reason}{alone}{waived})"


def _environment(result: Result) -> Table:
    env = dict(result.environment)
    for name in ("packages", "variables"):
        env[name] = ", ".join(f"{key} {value}" for key, value in env[name].items())
    head = {"command": result.command, "date": result.date} | env
    rows = [(str(k), str(v)) for k, v in head.items() if v]
    keys = (
        "platform",
        "platform_version",
        "driver",
        "version",
        "type",
        "compute_units",
        "processor",
        "vector_width",
        "numbers",
    )
    for device in result.devices:
        facts = ", ".join(f"{key.replace('_', ' ')} {device.device[key]}" for key in keys if device.device.get(key))
        rows.append((device.device.get("option") or f"device {device.device['index']}", f"{device.name}: {facts}"))
        rows += [("took", f"{device.seconds:.0f} s")] if device.seconds else []
        rows += [("problem", note) for note in device.notes]
    return Table("Machine", ("", ""), (*rows, *(("problem", note) for note in result.notes)))


def _operators(result: Result) -> Table:
    """Return a table of operators by device: how many checks pass, and the statuses of the others."""
    ops = sorted({row.op for device in result.devices for row in device.rows})
    rows: list[tuple[str, ...]] = []
    marked: set[int] = set()
    for op in ops:
        cells = [_cell([row for row in device.rows if row.op == op]) for device in result.devices]
        marked |= {len(rows)} if any(row.op == op and row.counts for d in result.devices for row in d.rows) else set()
        rows.append((op, *cells))
    return Table("Operators", ("operator", *(d.name for d in result.devices)), tuple(rows), frozenset(marked))


def _cell(rows: Sequence[Row]) -> str:
    counts = tally(rows)
    others = [f"{counts[status]} {status}" for status in STATUSES if status != PASS and counts[status]]
    return ", ".join([f"{counts[PASS]} of {counts.total()} pass", *others])


def _differing(result: Result) -> Table:
    """Return a table of checks that fail on any of several devices, with their statuses on all."""
    if len(result.devices) < 2:
        return Table("", (), ())
    columns = [{row.check: row for row in device.rows} for device in result.devices]
    bad = list(dict.fromkeys(row.check for device in result.devices for row in device.rows if row.status in BAD))
    rows = tuple((check, *(_status(column.get(check)) for column in columns)) for check in bad)
    marked = frozenset(i for i, check in enumerate(bad) if any(c[check].counts for c in columns if check in c))
    return Table("Checks that fail", ("check", *(_named(device) for device in result.devices)), rows, marked)


def _status(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{row.status}, known" if row.waived is not None else row.status


def _problems(device: DeviceResult) -> Table:
    rows = [row for row in device.rows if row.status in BAD]
    cells = tuple(
        (row.check, row.types, row.shapes, row.edge, _reason(row), ", ".join(row.kernels), replay(device, row))
        for row in rows
    )
    columns = ("check", "types", "shapes", "edge", "what", "kernels", "again")
    marked = frozenset(i for i, row in enumerate(rows) if row.counts)
    return Table(f"Failures on {device.name}", columns, cells, marked)


def _exactness(device: DeviceResult) -> Table:
    """Return a table of the worst error per operator and type, with its bound."""
    worst: dict[tuple[str, str], Row] = {}
    for row in device.rows:
        if row.relative is not None and row.bound is not None and row.status == PASS:
            key = row.op, row.types
            kept = worst.get(key)
            if kept is None or (row.relative, row.ulp or 0) > (kept.relative or 0, kept.ulp or 0):
                worst[key] = row
    cells = tuple(
        (op, types, f"{row.relative:.2g}", f"{row.ulp:.3g}", f"{row.bound:g} ({row.bound_source})", row.reference)
        for (op, types), row in sorted(worst.items())
    )
    columns = ("operator", "types", "worst error", "ulp", "allowed", "compared with")
    return Table(f"Exactness on {device.name}", columns, cells)


def _refusals(device: DeviceResult) -> Table:
    counts: Counter[tuple[str, str, str, bool]] = Counter()
    for row in device.rows:
        if row.status == REFUSED:
            counts[row.op, row.types, row.reason, row.unexpected] += row.checks
    cells = tuple(
        (op, types, reason, str(count), "other devices run it" if unexpected else "")
        for (op, types, reason, unexpected), count in sorted(counts.items())
    )
    return Table(f"Left to the CPU on {device.name}", ("operator", "types", "why", "checks", ""), cells)
