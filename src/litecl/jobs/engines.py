"""Engines that run a job's parts: this process, Ray or Dask. If a worker dies, another one runs its part."""

import asyncio
import logging
import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from threading import Thread
from typing import Any

from litecl.interpreter.errors import LiteclError
from litecl.jobs.job import Done, Job, run_part

_STORE_BYTES = 1 << 27  # Ray's object store, which only holds part numbers
_IGNORE_CTRL_C = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)"  # this process ends Dask's workers
_TRIES = 10  # of Dask, for a part whose worker died

Engine = Callable[[Job, Sequence[int], int], Iterator[Done]]


class EngineNotFound(LiteclError):
    """Raised when an engine's package isn't installed."""


class EngineError(LiteclError):
    """Raised when an engine cannot start, or run a part: its workers die, or lack litecl."""


def local(job: Job, parts: Sequence[int], workers: int) -> Iterator[Done]:
    """Run parts in this process, yielding each when done."""
    for number in parts:
        yield run_part(job, number)


class RunParts:
    """Ray Data's actor class: runs parts by number."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Run parts and return a row for each. A row carries the pickled error: Ray would pass on only its text."""
        rows = [self._row(int(number)) for number in batch["part"]]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _row(self, number: int) -> dict[str, Any]:
        try:
            return {"error": b"", **asdict(run_part(self._job, number))}
        except (LiteclError, OSError) as error:
            return {"error": pickle.dumps(error), **asdict(Done(number, 0, 0.0, os.getpid(), ""))}


def on_ray(job: Job, parts: Sequence[int], workers: int) -> Iterator[Done]:
    """Run parts on a Ray cluster, yielding each when done: on the running one, or else a new one on this machine.

    If an actor dies, Ray Data starts another one and runs its part again.
    """
    import ray

    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(**({} if "RAY_ADDRESS" in os.environ else _ray_of_this_machine(workers)), log_to_driver=False)
        except Exception as error:  # Ray raises no narrower type for a cluster that doesn't start
            raise EngineError(f"--engine ray: {error}") from error
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        numbers = ray.data.from_items([{"part": number} for number in parts], override_num_blocks=len(parts))
        actors = ray.data.ActorPoolStrategy(size=workers)
        for row in numbers.map_batches(RunParts, fn_constructor_args=(job,), compute=actors, batch_size=1).iter_rows():
            if fault := row.pop("error"):
                raise pickle.loads(fault)
            yield Done(**row)
    finally:
        if ours:
            ray.shutdown()


def _ray_of_this_machine(workers: int) -> dict[str, Any]:
    store = {"object_store_memory": _STORE_BYTES}
    return {"num_cpus": workers, "include_dashboard": False, "logging_level": logging.ERROR, **store}


def on_dask(job: Job, parts: Sequence[int], workers: int) -> Iterator[Done]:
    """Run parts on a Dask cluster, yielding each when done: on the one that DASK_SCHEDULER_ADDRESS or Dask's
    configuration names, or a new one on this machine.

    If a worker dies, Dask runs its parts on others, and its nanny starts a new worker.
    """
    import dask
    import distributed

    given = dask.config.get("scheduler-address", None)
    try:
        with (
            dask.config.set({"distributed.scheduler.allowed-failures": _TRIES}),
            _running_loop() as loop,
            distributed.Client(loop=loop, **({} if given else _dask_of_this_machine(workers))) as client,
        ):
            futures = client.map(run_part, [job] * len(parts), parts, pure=False)
            for _, done in distributed.as_completed(futures, with_results=True):
                yield done
    except LiteclError:
        raise
    except (distributed.KilledWorker, RuntimeError, ImportError) as error:
        raise EngineError(f"--engine dask: {error}") from error


def _dask_of_this_machine(workers: int) -> dict[str, Any]:
    quiet = {"dashboard_address": "127.0.0.1:0", "silence_logs": 50, "preload": _IGNORE_CTRL_C}
    return {"n_workers": workers, "threads_per_worker": 1, **quiet}


@contextmanager
def _running_loop() -> Iterator[Any]:
    """Run an event loop in a thread. Dask would give its own 10 s to start, which a busy machine may exceed."""
    from tornado.ioloop import IOLoop

    async def running() -> Any:
        return IOLoop.current()

    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(running(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def require(engine: str) -> None:
    """Raise EngineNotFound if an engine's package isn't installed."""
    package = _PACKAGES.get(engine)
    if package and not find_spec(package):
        raise EngineNotFound(f"--engine {engine}: pip install 'litecl[{engine}]'")


ENGINES: Mapping[str, Engine] = {"local": local, "ray": on_ray, "dask": on_dask}
_PACKAGES = {"ray": "ray", "dask": "distributed"}
