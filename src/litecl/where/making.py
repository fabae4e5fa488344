"""Runs specimens on a runtime in processes that may die, and makes its records."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.reader import content_of
from litecl.perf.environment import machine
from litecl.verify.children import End, Message, in_threads, serve
from litecl.where import specimens
from litecl.where.observe import unseen
from litecl.where.seen import Seen
from litecl.where.table import Record, Runtime, recorded

_MODULE = "litecl.where.worker"
Tick = Callable[[], None]


def described(name: str, timeout_s: float) -> Mapping[str, Any]:
    """Return a runtime's package and version, from a process. Raises LiteclError if it doesn't load."""
    return ask({"runtime": name}, "described", timeout_s)


def ask(request: Message, answer: str, timeout_s: float) -> dict[str, Any]:
    """Return a worker's answer to a request. Raises LiteclError with its error, or how it died."""
    facts: dict[str, Any] = {}
    end = serve(request, timeout_s, facts.update, module=_MODULE)
    if answer not in facts:
        raise LiteclError(facts.get("error") or f"{request['runtime']}: its process {end.how}")
    return dict(facts[answer])


def from_models(paths: Sequence[Path], folder: Path, skipped: list[str]) -> list[str]:
    """Write a few nodes of every kind in these models to a folder; return their names for ``records``.

    skipped: gets a line for every model that litecl's interpreter doesn't run.
    """
    cut: list[specimens.Specimen] = []
    for path in paths:
        try:
            cut = specimens.varied([*cut, *specimens.of_model(bytes(content_of(path)), path.as_posix())])
        except LiteclError as error:
            skipped.append(f"{path}: {error}")
    return specimens.save(cut, folder)


def records(
    name: str, names: Sequence[str], jobs: int, timeout_s: float, tick: Tick
) -> tuple[Runtime, dict[str, Record]]:
    """Run specimens on a runtime; return it and its records by kind. Raises LiteclError if it doesn't load."""
    facts = described(name, timeout_s)
    stop = Event()
    parts = in_threads(
        [partial(observed, name, names[i::jobs], timeout_s, tick, stop) for i in range(jobs)], jobs, stop
    )
    seen = [one for part in parts for one in part]
    today = datetime.now(UTC).date().isoformat()
    runtime = Runtime(name, facts["platform"], facts["driver"], today, machine()["processor"], len(seen))
    return runtime, recorded(sorted(seen, key=lambda one: one[0].name))


def observed(
    name: str, names: Sequence[str], timeout_s: float, tick: Tick, stop: Event | None = None
) -> list[tuple[Seen, bool]]:
    """Run specimens one after another, in a new process after each death; return each, and whether it died of it.

    stop: as for ``serve``.
    """
    seen: list[tuple[Seen, bool]] = []
    left = list(names)
    while left:
        done, begun = 0, False

        def hear(message: Message) -> None:
            nonlocal done, begun
            if "begin" in message:
                begun = True
            elif "seen" in message:
                done, begun = done + 1, False
                if message["seen"] is not None:
                    seen.append((Seen(**message["seen"]), False))
                tick()

        end: End = serve({"runtime": name, "specimens": left}, timeout_s, hear, module=_MODULE, stop=stop)
        left = left[done:]
        if not left:
            break
        if not begun and not done:
            raise LiteclError(f"{name}: its process {end.how}")
        if begun:
            seen.append((unseen(specimens.load(left[0])), True))
            left = left[1:]
            tick()
    return seen
