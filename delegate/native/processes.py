"""Compilers at work: child processes, as many at a time as there are processors, each of which makes several files.

To start one takes about as long as to compile a short source.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import IO

from litecl.delegate.progress import patience
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import KernelBuildError

NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # of Windows, where a child then hears no Ctrl-C either
_MOST_TOGETHER = 8  # a larger share gains little, and the processors may not end at the same time
_POLL_S = 0.003
_MOST_SAID = 10_000  # characters
_REAP_S = 5.0  # a process that the system can't end by then stays


class CompilerTimeout(KernelBuildError):
    """A compiler that made no file in the time that it has."""


@dataclass(frozen=True)
class Product:
    """A file that a compiler makes. source: what it is made from, for people."""

    number: int
    path: Path
    source: str


@dataclass(frozen=True)
class Task:
    """A command that makes files, one after the other. Each is there only once it is whole. log: for its messages."""

    command: tuple[str, ...]
    products: tuple[Product, ...]
    log: Path


@dataclass
class _Running:
    """A task at work. left: what it has not yet made. since_s: when it began, or made the latest file."""

    process: "subprocess.Popen[bytes]"
    log: Path
    left: list[Product] = field(default_factory=list)
    since_s: float = field(default_factory=time.monotonic)

    def made(self) -> list[Product]:
        """Return what has been made since this was last asked."""
        self.process.poll()  # first: whatever is not there behind its end will never be
        made = [product for product in self.left if os.access(product.path, os.R_OK)]
        self.left = [product for product in self.left if product not in made]
        if made:
            self.since_s = time.monotonic()
        return made

    def at_work(self) -> bool:
        """Return whether it goes on. Raises KernelBuildError if it has failed, with what it said or how it ended, and
        CompilerTimeout if it has made nothing for too long.
        """
        if self.process.returncode is None:
            most_s = patience().seconds
            if most_s is not None and time.monotonic() - self.since_s > most_s:
                raise _timeout(self.left[0].source if self.left else "the end", most_s)
            return True
        if self.process.returncode == 0 and not self.left:
            return False
        said = self.log.read_text(errors="replace", encoding="utf-8")[:_MOST_SAID]
        code = self.process.returncode
        ended = f"ended by signal {-code}" if code < 0 else f"exit status {code}"
        source = self.left[0].source if self.left else "the compiler"
        raise KernelBuildError(f"{source}: the compiler failed ({ended}):\n{said}")


def shares(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    """Deal out sources to processes, so that all processors are busy until the end; neighbours, which take about as
    long, to different ones.
    """
    turns = -(-len(numbers) // (_MOST_TOGETHER * processors()))
    count = min(turns * processors(), len(numbers))
    return (numbers[first::count] for first in range(count))


def run_all(tasks: Sequence[Task]) -> Iterator[int]:
    """Run tasks, as many at a time as there are processors, and yield the number of each file that is made; end all
    of them if one fails, or at an interrupt.
    """
    waiting, running = list(tasks)[::-1], list[_Running]()
    try:
        while waiting or running:
            while waiting and len(running) < processors():
                running.append(_started(waiting.pop()))
            time.sleep(_POLL_S)
            for each in running:
                yield from (product.number for product in each.made())
            running = [each for each in running if each.at_work()]
    finally:
        for each in running:
            end(each.process)


def run(command: Sequence[str]) -> tuple[str, str]:
    """Return what a short command writes to stdout and stderr. Raises KernelBuildError, and CompilerTimeout."""
    process = _process(command, subprocess.PIPE, subprocess.PIPE)
    try:
        said = process.communicate(timeout=patience().seconds)
        out, err = (each.decode(errors="replace") for each in said)
    except subprocess.TimeoutExpired as error:
        raise _timeout(" ".join(command), error.timeout) from None
    finally:
        if process.returncode is None:
            end(process)
    if process.returncode:
        raise KernelBuildError(f"{' '.join(command)}:\n{err}")
    return out, err


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process of this module's, with those that it has started, and wait until it is gone."""
    if process.poll() is None:  # its number can't be another's yet
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_S)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _timeout(doing: str, most_s: float) -> CompilerTimeout:
    said = f"{doing}: the compiler made nothing in {most_s:g} s, and was ended (CLDelegate(compile_timeout=...))"
    patience().lost = error = CompilerTimeout(said)
    return error


def _started(task: Task) -> _Running:
    try:
        with task.log.open("wb") as said:
            return _Running(_process(task.command, said, said), task.log, list(task.products))
    except OSError as error:
        raise KernelBuildError(f"{task.log}: {error.strerror}") from error


def _process(command: Sequence[str], out: int | IO[bytes], err: int | IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start a command in a session of its own, so that all of it can be ended. Raises KernelBuildError."""
    if (lost := patience().lost) is not None:
        raise CompilerTimeout(*lost.args)
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            creationflags=NO_WINDOW,
        )
    except OSError as error:
        raise KernelBuildError(f"{command[0]}: {error.strerror}") from error


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
