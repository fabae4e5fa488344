"""Runs checks on a device in workers, and identifies those that kill or hang a worker."""

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from litecl.interpreter.numbers import Numbers
from litecl.verify.check import Check
from litecl.verify.children import End, Message, in_threads, serve
from litecl.verify.judge import Settings
from litecl.verify.record import BAD, CRASHED, NOT_RUN, TIMEOUT, DeviceResult, Row, row

_BATCH = 400  # most checks per worker: its programs stay in memory
_BATCHES_OF_A_JOB = 2  # at least, so that all jobs finish at about the same time
_DEATHS_OF_AN_OP = 3  # dead workers after which an operator's other checks are skipped
_DEATHS = 20  # dead workers after which all remaining checks are skipped
_ALONE = 12  # bad checks to repeat in separate workers

Tick = Callable[[], None]


@dataclass(frozen=True)
class Plan:
    """How to run checks.

    jobs: workers at a time. timeout_s: the longest that a check may take. timed: measure times. keep_cache: use
    litecl's program cache on this machine, else compile everything in a temporary folder. numbers: as for
    ``Interpreter``.
    """

    jobs: int = 2
    timeout_s: float = 60.0
    timed: bool = False
    keep_cache: bool = False
    numbers: Numbers = "reference"


@dataclass(frozen=True)
class Task:
    """A kind of work for workers. request: returns the request for checks by name. env: environment variables.

    module: that the worker runs. deaths_of_an_op, deaths: how many workers may die before checks are skipped.
    """

    request: Callable[[Sequence[str]], Message]
    env: Mapping[str, str] = field(default_factory=dict)
    module: str = "litecl.verify.worker"
    deaths_of_an_op: int = _DEATHS_OF_AN_OP
    deaths: int = _DEATHS


def devices_of(wanted: Sequence[str], timeout_s: float) -> tuple[list[dict[str, Any]], str]:
    """Describe devices in a worker; return the descriptions and an error message, or ""."""
    devices: list[dict[str, Any]] = []
    errors: list[str] = []

    def hear(message: Message) -> None:
        devices.extend(message.get("devices", ()))
        errors.extend([message["error"]] if "error" in message else [])

    end = serve({"devices": list(wanted)}, timeout_s, hear)
    if not errors and end.how:
        errors = [f"looking for OpenCL devices: the process {end.how}"]
    return devices, "; ".join(errors)


def verify_device(device: Mapping[str, Any], checks: Sequence[Check], plan: Plan, tick: Tick) -> DeviceResult:
    """Run checks on one device."""
    start_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="litecl-verify-", ignore_cleanup_errors=True) as folder:
        settings = asdict(Settings(device["index"], "auto" if plan.keep_cache else folder, plan.timed, plan.numbers))
        # PoCL has its own cache.
        env = {} if plan.keep_cache else {"POCL_CACHE_DIR": str(Path(folder) / "pocl")}
        task = Task(lambda names: {"checks": names, "settings": settings}, env)
        size = max(1, min(_BATCH, -(-len(checks) // (plan.jobs * _BATCHES_OF_A_JOB))))
        batches = [checks[i : i + size] for i in range(0, len(checks), size)]
        run = Run(task, plan, tick)
        run.all(batches, lambda: run.again_alone(checks))
    rows = tuple(run.rows[check.name] for check in checks)
    numbers = {} if plan.numbers == "reference" else {"numbers": plan.numbers}
    return DeviceResult({**device, **numbers}, rows, round(time.monotonic() - start_s, 1), tuple(run.notes))


@dataclass
class Run:
    """A task's results so far."""

    task: Task
    plan: Plan
    tick: Tick
    rows: dict[str, Row] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    _deaths: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def all(self, batches: Sequence[Sequence[Check]], then: Callable[[], None]) -> None:
        """Run batches in parallel, then call ``then``. Ends all workers if interrupted."""
        in_threads([partial(self.batch, batch) for batch in batches], self.plan.jobs, self.stop)
        then()

    def batch(self, checks: Sequence[Check]) -> None:
        """Run checks, starting another worker whenever one dies."""
        left = list(checks)
        while left:
            left, skipped = self._may_run(left)
            for check, reason in skipped:
                self._done(_row_of(check, NOT_RUN, reason))
            if not left:
                return
            heard = self._worker(left)
            left = [check for check in left if check.name not in self.rows]
            if heard.end.how and heard.current is None:  # died before its first check or after its last
                self._note(f"a worker {heard.end.how}, outside of any check")
                for check in left:
                    self._done(_row_of(check, NOT_RUN, heard.end.how))
                return

    def again_alone(self, checks: Sequence[Check]) -> None:
        """Repeat bad checks, each in a separate worker, to tell whether earlier checks caused the failure."""
        bad = [check for check in checks if self.rows[check.name].status in BAD]
        for check in bad[:_ALONE]:
            first = self.rows.pop(check.name)
            self._worker([check], quiet=True)
            again = self.rows.get(check.name)
            self.rows[check.name] = replace(first, alone=None if again is None else again.status)

    def _worker(self, checks: Sequence[Check], *, quiet: bool = False) -> "_Heard":
        """Run checks in one worker until it ends. If it dies, the current check gets a row for that."""
        heard = _Heard()

        def hear(message: Message) -> None:
            heard.take(message)
            if "row" in message:
                self._done(row(message["row"]), quiet=quiet)

        request = self.task.request([check.name for check in checks])
        heard.end = serve(request, self.plan.timeout_s, hear, self.task.env, self.task.module, self.stop)
        if heard.end.how and heard.current is not None:
            check = next(check for check in checks if check.name == heard.current)
            status = TIMEOUT if heard.end.timed_out else CRASHED
            self._done(replace(_row_of(check, status, heard.words()), kernels=heard.kernels or ()), quiet=quiet)
            if not quiet:
                with self._lock:
                    self._deaths[check.op] += 1
        return heard

    def _may_run(self, checks: Sequence[Check]) -> tuple[list[Check], list[tuple[Check, str]]]:
        """Return the checks still to run, and the skipped ones with the reason."""
        with self._lock:
            if sum(self._deaths.values()) >= self.task.deaths:
                return [], [(check, f"{self.task.deaths} workers had died") for check in checks]
            dead = {op for op, deaths in self._deaths.items() if deaths >= self.task.deaths_of_an_op}
        skipped = [(c, f"{self.task.deaths_of_an_op} workers had died of {c.op}") for c in checks if c.op in dead]
        return [check for check in checks if check.op not in dead], skipped

    def _done(self, row: Row, *, quiet: bool = False) -> None:
        with self._lock:
            self.rows[row.check] = row
        if not quiet:
            self.tick()

    def _note(self, note: str) -> None:
        with self._lock:
            self.notes.append(note)


@dataclass
class _Heard:
    """A worker's messages. current: its current check. kernels: those that the check is about to run, None before
    that."""

    current: str | None = None
    kernels: tuple[str, ...] | None = None
    end: End = field(default_factory=End)

    def take(self, message: Message) -> None:
        """Process a message."""
        if "begin" in message:
            self.current, self.kernels = message["begin"], None
        elif "kernels" in message:
            self.kernels = tuple(message["kernels"])
        elif "row" in message:
            self.current = None

    def words(self) -> str:
        """Return how the worker ended, and during which activity."""
        doing = "preparing" if self.kernels is None else f"running {', '.join(self.kernels)}"
        return f"while {doing}: the process {self.end.how}"


def _row_of(check: Check, status: str, reason: str) -> Row:
    return Row(check.name, **asdict(check.labels), status=status, reason=reason)
