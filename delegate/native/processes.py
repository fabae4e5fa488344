"""Compilers at work: child processes, as many at a time as there are processors, each of which makes several files.

To start one takes about as long as to compile a short source.
"""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import KernelBuildError

NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # of Windows, where a child then hears no Ctrl-C either
_MOST_TOGETHER = 8  # a larger share gains little, and the processors may not end at the same time
_POLL_S = 0.003
_MOST_SAID = 10_000  # characters


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
    """A task at work. left: what it has not yet made."""

    process: "subprocess.Popen[bytes]"
    log: Path
    left: list[Product] = field(default_factory=list)

    def made(self) -> list[Product]:
        """Return what has been made since this was last asked."""
        self.process.poll()  # first: whatever is not there behind its end will never be
        made = [product for product in self.left if os.access(product.path, os.R_OK)]
        self.left = [product for product in self.left if product not in made]
        return made

    def at_work(self) -> bool:
        """Return whether it goes on. Raises KernelBuildError if it has failed, with what it said or how it ended."""
        if self.process.returncode is None:
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
            each.process.kill()
        for each in running:
            each.process.wait()


def _started(task: Task) -> _Running:
    try:
        with task.log.open("wb") as said:
            process = subprocess.Popen(
                task.command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
                creationflags=NO_WINDOW,
            )
            return _Running(process, task.log, list(task.products))
    except OSError as error:
        raise KernelBuildError(f"{task.command[0]}: {error.strerror}") from error


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
