"""A thread pool that survives interrupts: one in ``submit`` or ``result`` may leave ``ThreadPoolExecutor`` locked."""

import weakref
from _thread import start_new_thread
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from operator import attrgetter
from queue import Empty, SimpleQueue
from threading import Condition, Lock, get_ident
from typing import Any

from litecl.interpreter.errors import ModelError

_PATIENCE_S = 0.05  # between polls for a result: another waiting thread may have consumed the wake-up


class Background:
    """A thread pool that starts its threads with the first calls.

    A thread works while it holds a permit, of which there is one per thread: a counter of started threads could be
    wrong after an interrupt.
    """

    def __init__(self, threads: int) -> None:
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._permits: SimpleQueue[None] = SimpleQueue()
        self._workers = set[int]()
        for _ in range(threads):
            self._permits.put(None)
        self._finish = weakref.finalize(self, _finish, self._tasks, self._permits, threads, self._workers)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Start a call and return at once. Raises ModelError after ``close``."""
        if not self._finish.alive:
            raise ModelError("submit: this predictor is closed")
        task = Task(function, arguments)
        for _ in range(self._permits.qsize()):
            # A single C call: an interrupt in Thread.start may leave the thread blocked, or turn into another error.
            start_new_thread(_work, (self._tasks, self._permits, self._workers))
        self._tasks.put(task)
        return task

    def close(self) -> None:
        """Wait for the calls under way. Happens by itself when the process exits."""
        self._finish()


class _Condition(Condition):
    """A condition that ``with`` locks in a single C call: an interrupt comes before it or inside the block."""

    __enter__ = property(attrgetter("_lock.__enter__"))
    __exit__ = property(attrgetter("_lock.__exit__"))


class Task(Future[Any]):
    """A call and its result or error."""

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        super().__init__()
        self._condition = _Condition()
        self._call: tuple[Callable[..., Any], Sequence[Any]] | None = (function, arguments)
        self._word = Lock()
        self._word.acquire()

    def run(self) -> None:
        """Make the call, unless it was cancelled."""
        assert self._call is not None
        (function, arguments), self._call = self._call, None
        try:
            if self.set_running_or_notify_cancel():
                self.set_result(function(*arguments))
        except BaseException as error:
            self.set_exception(error)
        finally:
            self._word.release()

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the result and return it, or raise the error. Raises TimeoutError and CancelledError."""
        self._wait(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the call and return its error, None if it has a result. Raises TimeoutError and CancelledError."""
        self._wait(timeout)
        return super().exception(0)

    def _wait(self, timeout: float | None) -> None:
        """Wait without using the condition: an interrupt in its ``wait`` may leave it unlocked."""
        left = timeout
        while not self.done() and (left is None or left > 0):
            self._word.acquire(timeout=_PATIENCE_S if left is None else min(left, _PATIENCE_S))
            left = None if left is None else left - _PATIENCE_S


def _work(tasks: "SimpleQueue[Task | None]", permits: "SimpleQueue[None]", workers: set[int]) -> None:
    """Take a permit, if any is left, and run tasks until None arrives."""
    held: list[None] = []
    try:
        held.extend(map(SimpleQueue.get_nowait, (permits,)))
        workers.add(get_ident())
        for task in iter(tasks.get, None):
            task.run()
            del task  # else it and its result arrays would live until the next task
        tasks.put(None)  # for the other threads, including those about to start
    except Empty:
        return
    finally:
        if held:
            permits.put(None)
        workers.discard(get_ident())


def _finish(tasks: "SimpleQueue[Task | None]", permits: "SimpleQueue[None]", count: int, workers: set[int]) -> None:
    """Let the threads end once the queue is done, and wait for them. One of them may drop the last reference and call
    this; it doesn't wait.
    """
    tasks.put(None)
    if get_ident() not in workers:
        for _ in range(count):
            permits.get()
