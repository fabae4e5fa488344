"""Fails each request of the device ``native`` to the system once, and checks the consequences.

Compilers start, libraries are loaded, files are read and written and memory is allocated for the models of
``fault_models.py``. Each such call fails once, with an error of the system (with and without ``strict``) or as Ctrl-C,
which also interrupts each run of a region (``python -m tools.faults native``).
"""

import ctypes
import errno
import gc
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from litecl.delegate import CLDelegate, devices, progress
from litecl.delegate.native import compiler, execution, memory, probe
from litecl.delegate.native.methods import method
from litecl.interpreter.errors import DelegateError, DeviceNotFound, OutOfDeviceMemory
from support.fault_models import Session, Subject, expected
from support.fault_places import Place, Wrong, compare

MODES: dict[str, dict[str, Any]] = {
    "one thread": {"num_threads": 1},
    "threads": {"num_threads": 2},
    "queued": {"num_threads": 1, "queue_loops": True},
    "profile": {"num_threads": 1, "profile": True},
    "new cache": {"num_threads": 1},
    "uncached": {"num_threads": 1, "cache_dir": None},
}
_NOT_KEPT = ("new cache", "uncached")
_PATHS = ("read_bytes", "write_bytes", "read_text", "write_text", "open", "replace", "mkdir", "unlink", "chmod", "stat")
_POINTS: tuple[tuple[Any, str], ...] = (
    *((subprocess, name) for name in ("Popen", "run")),
    (tempfile, "gettempdir"),
    *((Path, name) for name in _PATHS),
    *((os, name) for name in ("utime", "fdopen")),
    (ctypes, "CDLL"),
    *((module, "aligned") for module in (memory, execution)),
)
_RUN = "run a region"
_CODES = (errno.ENOSPC, errno.EMFILE, errno.ENOMEM, errno.EACCES)


@dataclass
class Seam:
    """calls: what was called, in order. fail_at: the position of the call that fails. how: see ``HOW``."""

    fail_at: int | None = None
    how: str = "fallback"
    calls: list[str] = field(default_factory=list)
    _depth: int = 0

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """One call, unless it is the one that fails. Calls within calls do not count."""
        if self._depth:
            return real(*args, **kwargs)
        self.calls.append(name)
        # Compilers that end in another order shift the calls after them: no error comes of a region that runs.
        if len(self.calls) - 1 == self.fail_at and (name != _RUN or self.how == "interrupt"):
            raise self._raised(name)
        self._depth += 1
        try:
            return real(*args, **kwargs)
        finally:
            self._depth -= 1

    def _raised(self, name: str) -> BaseException:
        if self.how == "interrupt":
            return KeyboardInterrupt()
        text = f"{name} fails on purpose"
        return MemoryError(text) if name == "aligned" else OSError(_CODES[len(self.calls) % len(_CODES)], text)


@contextmanager
def installed(seam: Seam) -> Iterator[None]:
    """Put a seam in place of the system's functions."""
    with ExitStack() as stack:
        for owner, name in _POINTS:
            stack.enter_context(mock.patch.object(owner, name, _replaced(seam, name, getattr(owner, name))))
        bound = lambda *args, **kwargs: partial(seam.call, _RUN, method(*args, **kwargs))  # noqa: E731
        stack.enter_context(mock.patch.object(execution, "method", bound))
        yield


def _replaced(seam: Seam, name: str, real: Any) -> Any:
    return lambda *args, **kwargs: seam.call(name, real, *args, **kwargs)


@contextmanager
def fresh(mode: str, kept: Path) -> Iterator[dict[str, Any]]:
    """Options for a mode, with nothing open and nothing known. kept: a folder with all programs."""
    for known in (devices._DEVICES, progress._said):
        known.clear()
    for function in (compiler.found, compiler.named, probe._tried):
        function.cache_clear()
    with tempfile.TemporaryDirectory() as new, mock.patch.object(devices, "BACKENDS", [devices._native]):
        folder = {"cache_dir": new if mode in _NOT_KEPT else kept}
        yield {"device": "native", **folder, **MODES[mode]}


def _told(session: Session) -> Any:
    told = session.interpreter.delegation_report()
    return told.device, told.claimed, tuple(row.manner for row in told.partitions)


def places(subject: Subject, mode: str, how: str, kept: Path) -> list[Place]:
    """All of them. The first pass fills the cache, so that every later one makes the same calls."""
    seam = Seam()
    for _ in range(1 if mode in _NOT_KEPT else 2):
        seam.calls.clear()
        with fresh(mode, kept) as options, installed(seam):
            session = Session(subject, [CLDelegate(**options, **subject.options)])
            for step in session.steps():
                step()
            told = _told(session)
    named = [(number, name) for number, name in enumerate(seam.calls) if how == "interrupt" or name != _RUN]
    return [Place(subject, mode, number, name, how, told) for number, name in named]


def judge(place: Place, kept: Path) -> str:
    """Return what is wrong at a place, "" if nothing is."""
    try:
        with fresh(place.mode, kept) as options:
            options = {**options, **place.subject.options}
            with installed(Seam(place.number, place.how)):
                _use(place, options)
            again = Session(place.subject, [CLDelegate(**options | {"cache_dir": kept}, strict=True)])
            for step, wanted in zip(again.steps(), expected(place.subject.name), strict=True):
                compare(step(), wanted, "another interpreter")
    except Wrong as wrong:
        return str(wrong)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        gc.collect()
    return ""


def _use(place: Place, options: dict[str, Any]) -> None:
    """Use a session to its end; a step that raises what it may is done again. The report must tell of the fault."""
    session = Session(place.subject, [CLDelegate(**options, strict=place.how == "strict")])
    raised = False
    for number, (step, wanted) in enumerate(zip(session.steps(), expected(place.subject.name), strict=True)):
        try:
            got = step()
        except (DelegateError, KeyboardInterrupt) as error:
            told = isinstance(error, OutOfDeviceMemory) or "on purpose" in str(error)
            typed = isinstance(error, DeviceNotFound) or (place.how == "strict" and told)
            if not (typed or place.how == "interrupt"):
                raise Wrong(f"step {number} raises {error!r}") from error
            raised = True
            got = step()
        compare(got, wanted, f"step {number}")
    try:
        told = session.interpreter.delegation_report()
    except (DelegateError, KeyboardInterrupt):  # of times, as strict has it, or a Ctrl-C
        if place.how == "fallback":
            raise
        told, raised = session.interpreter.delegation_report(), True
    if place.how != "fallback" and told.warnings:
        raise Wrong(f"{place.how}, and yet {told.warnings}")
    if not (raised or told.warnings) and _told(session) != place.kept:
        raise Wrong(f"nothing is reported, but {_told(session)} is not {place.kept}")
