"""Shows benchmarks as one table, on the terminal or as CSV, Markdown or JSON, with warnings."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from litecl.cli.tables import milliseconds, size, table, to_json
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.whole_files import put_text
from litecl.report.draw.units import digits


@dataclass(frozen=True)
class Row:
    """A runtime's figures for one model; None if it can't run the model, which ``warnings`` explains.

    threads: "auto" if numpy chose. streams: interpreters that ran at once.

    per_second: invokes; for a single interpreter from the median. memory_bytes: on the device. process_peak_bytes,
    process_end_bytes: growth of host memory, None if not measured.
    """

    model: str
    runtime: str
    device: str
    threads: str
    streams: int
    prepare_ms: float | None
    first_ms: float | None
    median_ms: float | None
    p5_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    min_ms: float | None
    mean_ms: float | None
    runs: int | None
    per_second: float | None
    memory_bytes: int | None
    process_peak_bytes: int | None
    process_end_bytes: int | None
    warnings: str


def rows(cases: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return a row for every runtime of every case, those that can't run the model last."""
    return [_row(case, one) for case in cases for one in (*case["subjects"], *map(_refused, case["refusals"]))]


def _refused(refusal: Mapping[str, Any]) -> dict[str, Any]:
    """Return a subject without figures."""
    warning = f"cannot run the model: {refusal['reason']}"
    return {"name": refusal["name"], "num_threads": refusal["num_threads"], "streams": 1, "warnings": [warning]}


def _row(case: Mapping[str, Any], subject: Mapping[str, Any]) -> Row:
    ours, threads = subject["name"] == "litecl", subject["num_threads"]
    if ours and threads is None and case.get("delegation"):
        threads = case["delegation"]["threads"]
    device = case["device"]["name"] if ours and case["device"] is not None else ""
    figures: dict[str, Any] = {field.name: subject.get(field.name) for field in fields(Row)}
    named: dict[str, Any] = {
        "model": Path(case["model"]).name,
        "runtime": subject["name"],
        "device": device,
        "threads": "auto" if threads is None else str(threads),
        "warnings": "; ".join(subject["warnings"]),
    }
    return Row(**figures | named)


def view(measured: Sequence[Row]) -> RenderableType:
    """Return the table for a terminal. Models, devices and streams get columns only if there are several."""
    differing = {
        "model": len({row.model for row in measured}) > 1,
        "runtime": True,
        "device": len({row.device for row in measured} - {""}) > 1,
        "threads": True,
        "streams": any(row.streams > 1 for row in measured),
    }
    leading = [name for name, shown in differing.items() if shown]
    process = ["process"] if any(row.process_peak_bytes is not None for row in measured) else []
    times = "prepare ms", "first ms", "median ms", "p5-p95 ms", "min ms", "runs/s", "runs"
    grid = table(*leading, *times, *process)
    rate_of_one: dict[tuple[str, ...], float] = {}
    for row in measured:
        if row.per_second is None:
            grid.add_row(*(str(getattr(row, name)) for name in leading))
            continue
        one = rate_of_one.setdefault((row.model, row.runtime, row.device, row.threads), row.per_second)
        rate = digits(row.per_second, 4) + (f" (x{row.per_second / one:.2f})" if row.streams > 1 else "")
        cells = f"{row.prepare_ms:.1f}", milliseconds(row.first_ms), milliseconds(row.median_ms)
        spread = f"{milliseconds(row.p5_ms)}-{milliseconds(row.p95_ms)}", milliseconds(row.min_ms), rate, str(row.runs)
        memory = ["" if row.process_peak_bytes is None else size(row.process_peak_bytes)] if process else []
        grid.add_row(*(str(getattr(row, name)) for name in leading), *cells, *spread, *memory)
    return grid


def warnings(measured: Sequence[Row]) -> list[str]:
    """Return a line for each row with warnings."""
    return [f"{_named(row)}: {row.warnings}" for row in measured if row.warnings]


def _named(row: Row) -> str:
    streams = "" if row.streams == 1 else f", {row.streams} streams"
    threads = "1 thread" if row.threads == "1" else f"{row.threads} threads"
    return f"{row.model}, {row.runtime} ({threads}{streams})"


def write(measured: Sequence[Row], data: Mapping[str, Any], path: Path) -> None:
    """Write rows in the format of the file's suffix; JSON gets all data."""
    put_text(path, FORMATS[path.suffix.lower()](measured, data))


def _csv(measured: Sequence[Row], data: Mapping[str, Any]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(field.name for field in fields(Row))
    writer.writerows(vars(row).values() for row in measured)
    return out.getvalue()


def _markdown(measured: Sequence[Row], data: Mapping[str, Any]) -> str:
    names = [field.name for field in fields(Row)]
    lines = ["| " + " | ".join(name.replace("_", " ") for name in names) + " |", "|---" * len(names) + "|"]
    lines += ["| " + " | ".join(_cell(getattr(row, name)) for name in names) + " |" for row in measured]
    machine = data["machine"]
    source = f"litecl {machine['litecl']} on {machine['processor']}, {data['date']}: `{data['command']}`"
    return "\n".join([*lines, "", source, ""])


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value).replace("|", "\\|")


FORMATS: dict[str, Callable[[Sequence[Row], Mapping[str, Any]], str]] = {
    ".csv": _csv,
    ".md": _markdown,
    ".json": lambda measured, data: to_json(data) + "\n",
}
