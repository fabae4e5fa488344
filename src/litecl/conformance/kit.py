"""Runs checks on runtimes in workers, and minimizes failures."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from litecl.interpreter.errors import LiteclError
from litecl.verify.check import Check
from litecl.verify.children import Message, serve
from litecl.verify.record import BAD, DeviceResult, Row, row
from litecl.verify.supervise import Plan, Run, Task, Tick

_MODULE = "litecl.conformance.worker"
_BATCH = 250  # least checks per worker, in whole operators: the grouping depends on nothing else
_DEATHS_OF_AN_OP, _DEATHS = 20, 1000
_PREPARING = "while preparing: "  # true only of workers for devices
_SHRUNK = 10  # checks to minimize per worker


@dataclass(frozen=True)
class Kit:
    """A runtime to check. runtime: as ``worker`` takes it. folder: for the smallest models."""

    runtime: Mapping[str, str]
    plan: Plan
    folder: Path | None = None

    def described(self) -> Mapping[str, Any]:
        """Return the runtime's name, package and version, from a worker. Raises LiteclError if it doesn't load."""
        messages: list[Message] = []
        end = serve({"runtime": self.runtime}, self.plan.timeout_s, messages.append, module=_MODULE)
        facts = {key: value for message in messages for key, value in message.items()}
        if "described" not in facts:
            raise LiteclError(facts.get("error", f"loading {self.runtime}: the process {end.how}"))
        return dict(facts["described"])

    def verify(self, checks: Sequence[Check], tick: Tick) -> DeviceResult:
        """Run checks. Rows have no times, so that results are reproducible."""
        described = self.described()
        task = Task(lambda names: {"runtime": self.runtime, "checks": names}, {}, _MODULE, _DEATHS_OF_AN_OP, _DEATHS)
        run = Run(task, self.plan, tick)
        run.all(_batches(checks), lambda: self._shrink(run, checks))
        rows = tuple(_timeless(run.rows[check.name]) for check in checks)
        return DeviceResult(described, rows, 0.0, tuple(run.notes))

    def _shrink(self, run: Run, checks: Sequence[Check]) -> None:
        """Minimize failing checks and replace their rows."""
        bad = [run.rows[check.name] for check in checks if run.rows[check.name].status in BAD]
        for start in range(0, len(bad), _SHRUNK):
            self._shrink_some(run, bad[start : start + _SHRUNK])

    def _shrink_some(self, run: Run, bad: Sequence[Row]) -> None:
        folder = None if self.folder is None else str(self.folder)
        left = list(bad)
        while left:
            request = {"runtime": self.runtime, "rows": [*map(asdict, left)], "folder": folder}
            heard: dict[str, Row] = {}

            def hear(message: Message, heard: dict[str, Row] = heard) -> None:
                if "row" in message:
                    heard[message["row"]["check"]] = row(message["row"])

            end = serve(request | {"timeout_s": self.plan.timeout_s}, 10 * self.plan.timeout_s, hear, module=_MODULE)
            run.rows.update(heard)
            left = [one for one in left if one.check not in heard]
            if left:  # the worker died of the first
                lost, left = left[0], left[1:]
                run.rows[lost.check] = replace(lost, reason=f"{lost.reason}; not made smaller: the process {end.how}")


def _timeless(row: Row) -> Row:
    return replace(row, seconds=0.0, reason=row.reason.removeprefix(_PREPARING))


def _batches(checks: Sequence[Check]) -> list[list[Check]]:
    """Split checks into batches of whole operators, so that deaths count the same however many workers run."""
    batches: list[list[Check]] = []
    for _, of_op in groupby(checks, key=lambda check: check.op):
        if not batches or len(batches[-1]) >= _BATCH:
            batches.append([])
        batches[-1] += of_op
    return batches
