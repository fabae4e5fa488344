"""Measures the throughput of several interpreters of one model, each in its own thread."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from litecl.perf.timing import Stats

Invoke = Callable[[], object]


def all_at_once(invokes: Sequence[Invoke]) -> None:
    """Call each once in its own thread, all at the same time. Raises their errors."""
    together = threading.Barrier(len(invokes))

    def run(invoke: Invoke) -> None:
        together.wait()
        invoke()

    with ThreadPoolExecutor(len(invokes)) as pool:
        list(pool.map(run, invokes))


def throughput(invokes: Sequence[Invoke], seconds: float) -> tuple[float, Stats]:
    """Call each repeatedly in its own thread; return total calls per second, and the time of each call.

    seconds: after which no call starts, except that each is called at least once. Raises their errors.
    """
    together, stop = threading.Barrier(len(invokes) + 1), threading.Event()

    def stream(invoke: Invoke) -> list[float]:
        taken: list[float] = []
        together.wait()
        before_s = time.perf_counter()
        try:
            while not (taken and stop.is_set()):
                invoke()
                after_s = time.perf_counter()
                taken.append((after_s - before_s) * 1e3)
                before_s = after_s
        finally:
            stop.set()  # stops all if one raises
        return taken

    with ThreadPoolExecutor(len(invokes)) as pool:
        streams = [pool.submit(stream, invoke) for invoke in invokes]
        together.wait()
        start_s = time.perf_counter()
        try:
            stop.wait(seconds)
        finally:  # also on Ctrl-C
            stop.set()
        times = tuple(ms for one in streams for ms in one.result())
        elapsed_s = time.perf_counter() - start_s
    return len(times) / elapsed_s, Stats(times)
