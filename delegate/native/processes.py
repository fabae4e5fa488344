"""Compilers as child processes: one per processor at a time, each compiling several files.

Starting one takes about as long as compiling a short source.
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

from litecl.delegate.native.processors import processors
from litecl.delegate.progress import patience
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import KernelBuildError

NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # on Windows; it also shields the child from Ctrl-C
_MOST_TOGETHER = 32  # files per process, whose memory grows by 1.5 MB with each
_POLL_S = 0.003
_MOST_CHARACTERS = 10_000  # characters of a compiler's messages
_REAP_S = 5.0  # a process that survives SIGKILL for this long is left behind


class CompilerTimeout(KernelBuildError):
    """A compiler finished no file within the time limit."""


@dataclass(frozen=True)
class Product:
    """An output file of a compiler. source: its source, for people."""

    number: int
    path: Path
    source: str


@dataclass(frozen=True)
class Task:
    """A command that writes files one after another; a file appears when complete. log: the file for its messages."""

    command: tuple[str, ...]
    products: tuple[Product, ...]
    log: Path


@dataclass
class _Running:
    """A running task. left: the files still missing. since_s: the time of its start or its latest file."""

    process: "subprocess.Popen[bytes]"
    log: Path
    left: list[Product] = field(default_factory=list)
    since_s: float = field(default_factory=time.monotonic)

    def finished(self) -> list[Product]:
        """Return the files finished since the last call."""
        self.process.poll()  # first: a file missing after the process ended will never appear
        finished = [product for product in self.left if os.access(product.path, os.R_OK)]
        self.left = [product for product in self.left if product not in finished]
        if finished:
            self.since_s = time.monotonic()
        return finished

    def at_work(self) -> bool:
        """Return whether it is running. Raises KernelBuildError with its messages and exit status or signal, and
        CompilerTimeout if it has finished no file for too long.
        """
        if self.process.returncode is None:
            most_s = patience().seconds
            if most_s is not None and time.monotonic() - self.since_s > most_s:
                raise _timeout(self.left[0].source if self.left else "the end", most_s)
            return True
        if self.process.returncode == 0 and not self.left:
            return False
        messages = self.log.read_text(errors="replace", encoding="utf-8")[:_MOST_CHARACTERS]
        source = self.left[0].source if self.left else "the compiler"
        raise _failure(source, self.process.returncode, messages)


def shares(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    """Distribute sources over processes to keep all processors busy. Neighbours, which take about equally long, go to
    different processes.
    """
    turns = -(-len(numbers) // (_MOST_TOGETHER * processors()))
    count = min(turns * processors(), len(numbers))
    return (numbers[first::count] for first in range(count))


def run_all(tasks: Sequence[Task]) -> Iterator[int]:
    """Run tasks, one per processor at a time, and yield the number of each finished file. Kill all of them if one fails
    or at an interrupt.
    """
    waiting, running = list(tasks)[::-1], list[_Running]()
    try:
        while waiting or running:
            while waiting and len(running) < processors():
                running.append(_started(waiting.pop()))
            time.sleep(_POLL_S)
            for each in running:
                yield from (product.number for product in each.finished())
            running = [each for each in running if each.at_work()]
    finally:
        for each in running:
            end(each.process)


def run(command: Sequence[str]) -> tuple[str, str]:
    """Run a short command; return its stdout and stderr. Raises KernelBuildError and CompilerTimeout."""
    process = _process(command, subprocess.PIPE, subprocess.PIPE)
    try:
        streams = process.communicate(timeout=patience().seconds)
        out, err = (stream.decode(errors="replace") for stream in streams)
    except subprocess.TimeoutExpired as error:
        raise _timeout(" ".join(command), error.timeout) from None
    finally:
        if process.returncode is None:
            end(process)
    if process.returncode:
        raise _failure(" ".join(command), process.returncode, err)
    return out, err


def _failure(what: str, code: int, messages: str) -> KernelBuildError:
    """Return the error of a compiler that ended with this return code of ``subprocess``."""
    ended = f"ended by signal {-code}" if code < 0 else f"exit status {code}"
    return KernelBuildError(f"{what}: the compiler failed ({ended}):\n{messages}")


def end(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process that this module started, and its children, and wait for its end."""
    if process.poll() is None:  # until it is reaped, its number can't be reused
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
    message = f"{doing}: the compiler made nothing in {most_s:g} s, and was ended (CLDelegate(compile_timeout=...))"
    patience().lost = error = CompilerTimeout(message)
    return error


def _started(task: Task) -> _Running:
    try:
        with task.log.open("wb") as log:
            return _Running(_process(task.command, log, log), task.log, list(task.products))
    except OSError as error:
        raise KernelBuildError(f"{task.log}: {error.strerror}") from error


def _process(command: Sequence[str], out: int | IO[bytes], err: int | IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start a command in its own session, so that its children can be killed too. Raises KernelBuildError."""
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
