"""Throughput: several interpreters of one model, each in its own thread."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from litecl.perf.timing import Stats

Invoke = Callable[[], object]


def all_at_once(invokes: Sequence[Invoke]) -> None:
    """Call each once, in a thread of its own, all at the same time. Raises what one of them raises."""
    together = threading.Barrier(len(invokes))

    def run(invoke: Invoke) -> None:
        together.wait()
        invoke()

    with ThreadPoolExecutor(len(invokes)) as pool:
        list(pool.map(run, invokes))


def throughput(invokes: Sequence[Invoke], seconds: float) -> tuple[float, Stats]:
    """Call each again and again in a thread of its own; return calls a second in all, and the time of each.

    seconds: after which no call begins, but each is called at least once. Raises what one of them raises.
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
            stop.set()  # of all, if one raises
        return taken

    with ThreadPoolExecutor(len(invokes)) as pool:
        streams = [pool.submit(stream, invoke) for invoke in invokes]
        together.wait()
        start_s = time.perf_counter()
        try:
            stop.wait(seconds)
        finally:  # of Ctrl-C too
            stop.set()
        times = tuple(ms for one in streams for ms in one.result())
        elapsed_s = time.perf_counter() - start_s
    return len(times) / elapsed_s, Stats(times)
