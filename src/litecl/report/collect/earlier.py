"""Compares a report with an earlier one: which times changed, and whether by chance."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from litecl.perf.compare import compared
from litecl.perf.environment import read_results
from litecl.report.document import Run
from litecl.report.facts import Changed, Earlier, Latency, ModelFacts

_TOLERANCE = 0.03
_MOST_OPERATORS = 12
_KIND = "litecl report"

Data = Mapping[str, Any]


def load(path: Path) -> Data:
    """Read a file written by ``litecl report -o FILE.json``. Raises ModelError for anything else."""
    return read_results(path, _KIND, "header")


def earlier_of(name: str, old: Data, header: Data, model: ModelFacts, runs: Sequence[Run]) -> Earlier:
    """Return the changes since an earlier report. name: of its file."""
    before = {run["latency"]["name"]: run for run in old["runs"]}
    both = [(before[run.latency.name], run) for run in runs if run.latency.name in before]
    times = tuple(_latency(a["latency"], b.latency) for a, b in both)
    operators = tuple(row for a, b in both[:1] for row in _operators(a["operators"], b))
    same = (("model", old["model"]["sha256"], model.sha256),)
    machines = (old["header"]["machine"], header["machine"])
    facts = (*same, *((key, *(machine[key] for machine in machines)) for key in ("litecl", "processor", "cores")))
    differences = tuple(f"{key}: {a} then, {b} now" for key, a, b in facts if a != b)
    head = old["header"]
    return Earlier(name, head["date"], head["command"], times, operators, differences)


def _latency(old: Data, new: Latency) -> Changed:
    change = compared(new.name, old["times_ms"], new.times_ms, _TOLERANCE)
    return Changed(change.name, change.old_ms, change.new_ms, change.chance, change.verdict)


def _operators(old: Sequence[Data], run: Run) -> list[Changed]:
    """Return the operators whose time in milliseconds has changed most."""
    then = {(row["op"], row["where"]): row["work"]["ms"] for row in old}
    now = {(row.op, row.where): row.work.ms for row in run.operators}
    rows = [
        Changed(f"{op} ({where})", then.get((op, where), 0.0), now.get((op, where), 0.0)) for op, where in then | now
    ]
    return sorted(rows, key=lambda row: -abs(row.new_ms - row.old_ms))[:_MOST_OPERATORS]
