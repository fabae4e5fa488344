"""Writes a result of ``litecl verify`` as JSON, HTML, Markdown or JUnit XML, by the file's suffix."""

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as Xml

from litecl.interpreter.errors import ModelError
from litecl.interpreter.whole_files import put_text
from litecl.perf.environment import plain
from litecl.report.sheet import Part, Sheet, sheet
from litecl.verify.document import Table, origin, outcomes, sentence, tables
from litecl.verify.record import BAD, NOT_RUN, REFUSED, Result

_LONG = 20  # most rows without a failure to show unasked


def write(result: Result, path: Path, *, brief: bool = False) -> None:
    """Write a result in the format of the file's suffix. Raises ModelError for a suffix not in ``FORMATS``.

    brief: shorten JSON.
    """
    form = FORMATS.get(path.suffix.lower())
    form = to_brief_json if brief and form is to_json else form
    if form is None:
        raise ModelError(f"{path}: expected a name that ends in {', '.join(FORMATS)}, got {path.suffix or 'none'}")
    put_text(path, form(result))


def to_json(result: Result) -> str:
    """Return a whole result as JSON, with null for non-finite numbers."""
    return json.dumps(plain(result.to_dict()), indent=1) + "\n"


def to_brief_json(result: Result) -> str:
    """Return a brief result as JSON with one row per line: about 30 kB per device, to be stored."""
    data = plain(result.to_brief())
    lines = [[json.dumps(row, separators=(",", ":")) for row in device.pop("rows")] for device in data["devices"]]
    head = json.dumps({key: value for key, value in data.items() if key != "devices"})[:-1]
    devices = (
        json.dumps(device)[:-1] + ', "rows": [\n' + ",\n".join(rows) + "\n]}"
        for device, rows in zip(data["devices"], lines, strict=True)
    )
    return f'{head}, "devices": [\n' + ",\n".join(devices) + "\n]}\n"


def to_markdown(result: Result) -> str:
    """Return the sentence and all tables."""
    parts = ["# litecl verify", sentence(result)]
    for table in tables(result):
        lines = [f"## {table.title}", "", _line(table.columns), "|---" * len(table.columns) + "|"]
        parts.append("\n".join([*lines, *map(_line, table.rows)]))
    return "\n\n".join(parts) + "\n"


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def to_html(result: Result) -> str:
    """Return a self-contained page, in the style of ``litecl report``."""
    title = ", ".join(device.name for device in result.devices) or "no device"
    return sheet(Sheet("litecl verify", title, (*outcomes(result), origin(result)), tuple(map(_part, tables(result)))))


def _part(table: Table) -> Part:
    is_folded = len(table.rows) > _LONG and not table.marked
    return Part(table.title, table.columns, table.rows, marked=table.marked, is_folded=is_folded)


def to_junit(result: Result) -> str:
    """Return a JUnit test suite per device. Waived, refused and unrun checks count as skipped."""
    root = Xml.Element("testsuites", name="litecl verify")
    for device in result.devices:
        failed, errors = len(device.failures), len(device.notes)
        skipped = sum(row.status in (REFUSED, NOT_RUN) or row.waived is not None for row in device.rows)
        counts = {"tests": len(device.rows), "failures": failed, "errors": errors, "skipped": skipped}
        counted = {name: str(count) for name, count in counts.items()}
        suite = Xml.SubElement(root, "testsuite", {"name": device.name, "time": str(device.seconds)} | counted)
        for row in device.rows:
            case = Xml.SubElement(suite, "testcase", classname=row.op, name=row.check, time=str(row.seconds))
            if row.counts:
                Xml.SubElement(case, "failure", message=row.reason, type=row.status)
            elif row.status in (*BAD, REFUSED, NOT_RUN):
                Xml.SubElement(case, "skipped", message=row.waived or row.reason)
        for note in device.notes:
            Xml.SubElement(suite, "system-err").text = note
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


FORMATS: dict[str, Callable[[Result], str]] = {
    ".json": to_json,
    ".html": to_html,
    ".md": to_markdown,
    ".xml": to_junit,
}
