"""Dynamic batching: requests that wait while the device is busy run together, as rows of one batch."""

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array
from litecl.perf.feeds import difference, random_inputs
from litecl.predictor import Predictor
from litecl.serve.metrics import Metrics

Batch = Mapping[str, Array]
Outputs = dict[str, Any]


class Busy(Exception):
    """Raised when the queue of waiting requests is full."""


@dataclass(frozen=True)
class _Waiting:
    """A queued request. kind: requests of the same kind may share a batch; None never does."""

    batch: Batch
    rows: int
    kind: object
    answer: "asyncio.Future[Outputs]"


class Batcher:
    """Runs requests on a predictor, in shared batches if ``together`` is set.

    most_rows: of a shared batch. wait_s: how long the first request of a batch waits for others; 0 takes those that
    arrived while earlier batches ran. most_waiting: the queue's limit; requests beyond it raise ``Busy``.
    """

    def __init__(
        self,
        predictor: Predictor,
        metrics: Metrics,
        *,
        together: bool,
        most_rows: int,
        wait_s: float,
        most_waiting: int,
    ) -> None:
        self._predictor, self._metrics = predictor, metrics
        self._together, self._most_rows = together, most_rows
        self._wait_s, self._most_waiting = wait_s, most_waiting
        self._queue = deque[_Waiting]()
        self._arrived = asyncio.Event()
        self._free = asyncio.Semaphore(predictor.at_once)
        self._running = set[asyncio.Task[None]]()

    @property
    def waiting(self) -> int:
        """The number of queued requests."""
        return len(self._queue)

    async def __call__(self, batch: Batch) -> Outputs:
        """Return the results of a request. Raises Busy, and the errors of ``Predictor``."""
        if len(self._queue) >= self._most_waiting:
            raise Busy(f"{self._most_waiting} requests wait already")
        rows = {len(value) if value.ndim else 0 for value in batch.values()}
        alone = not self._together or len(rows) != 1 or 0 in rows
        kind = None if alone else tuple(sorted((name, x.dtype.str, x.shape[1:]) for name, x in batch.items()))
        request = _Waiting(batch, max(rows, default=0), kind, asyncio.get_running_loop().create_future())
        self._queue.append(request)
        self._arrived.set()
        return await request.answer

    async def run(self) -> None:
        """Run queued requests until cancelled."""
        while True:
            await self._arrived.wait()
            await self._free.acquire()
            if self._wait_s:
                await asyncio.sleep(self._wait_s)
            if requests := self._take():
                task = asyncio.create_task(self._answer(requests))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
            else:
                self._free.release()

    def _take(self) -> list[_Waiting]:
        """Dequeue the first request and later ones of its kind whose rows still fit; drop abandoned ones."""
        queue = deque(request for request in self._queue if not request.answer.done())
        taken = [queue.popleft()] if queue else []
        rows, left = sum(request.rows for request in taken), deque[_Waiting]()
        for request in queue:
            fits = request.kind is not None and request.kind == taken[0].kind and rows + request.rows <= self._most_rows
            (taken if fits else left).append(request)
            rows += request.rows if fits else 0
        self._queue = left
        if not left:
            self._arrived.clear()
        return taken

    async def _answer(self, requests: Sequence[_Waiting]) -> None:
        """Run requests as one batch. If it fails, requeue each alone, so that a bad one doesn't fail the others."""
        try:
            for request, results in zip(requests, await asyncio.to_thread(self._results, requests), strict=True):
                _settle(request, results)
        except Exception as error:
            if len(requests) == 1:
                _settle(requests[0], error)
                return
            for request in requests:
                self._queue.append(_Waiting(request.batch, request.rows, None, request.answer))
            self._arrived.set()
        finally:
            self._free.release()

    def _results(self, requests: Sequence[_Waiting]) -> list[Outputs]:
        start_s = time.perf_counter()
        if requests[0].kind is None:
            answers: list[Outputs] = [self._predictor(requests[0].batch)]
        else:
            answers = self._joined([each.batch for each in requests], [each.rows for each in requests])
        self._metrics.invoked(sum(each.rows for each in requests), time.perf_counter() - start_s)
        return answers

    def _joined(self, batches: Sequence[Batch], rows: Sequence[int]) -> list[Outputs]:
        """Run batches as one, padded with copies of its last row to a size that the model is prepared for."""
        total = sum(rows)
        more = min((size for size in sizes(self._most_rows) if size >= total), default=total) - total
        joined = {name: np.concatenate([each[name] for each in batches]) for name in batches[0]}
        filled = {name: np.concatenate([value, np.repeat(value[-1:], more, 0)]) for name, value in joined.items()}
        results = self._predictor(filled)
        ends = np.cumsum(rows)
        parts = {name: np.split(value[:total], ends[:-1]) for name, value in results.items()}
        return [{name: part[number] for name, part in parts.items()} for number in range(len(batches))]


def _settle(request: _Waiting, answer: Outputs | Exception) -> None:
    if request.answer.done():  # the client disconnected
        return
    if isinstance(answer, Exception):
        request.answer.set_exception(answer)
    else:
        request.answer.set_result(answer)


def sizes(most_rows: int) -> list[int]:
    """Return the batch sizes to run, in rows. Few, because a model stays prepared for only a few shapes."""
    return sorted({-(-most_rows // 2**halvings) for halvings in range(_SIZES)})


_SIZES = 8  # the number that an interpreter keeps (shapes_kept)
_CLOSE = 1e-4  # relative to the largest magnitude: a batch may sum in another order than a single row


def why_apart(predictor: Predictor) -> str | None:
    """Return why a model's rows can't share a batch, or None if they can. Runs the model on random rows.

    Rows can if the model writes no variables, all inputs have an open first dimension, all results have a row per input
    row, and a row's result is the same in a batch as alone and when run again (custom operators may keep state). Pass
    a predictor that isn't serving yet.
    """
    if predictor.keeps_states:
        return "it keeps states"
    shapes = {name: shape for name, (shape, _) in predictor.inputs.items()}
    if not shapes or any(not shape or shape[0] != -1 for shape in shapes.values()):
        return "its inputs have no open first dimension"
    row, other = (_row(predictor, seed) for seed in (1, 2))
    try:
        alone, again, second = predictor(row), predictor(row), predictor(other)
        both = predictor({name: np.concatenate([value, other[name]]) for name, value in row.items()})
    except LiteclError as error:
        return f"it does not run on random rows ({error})"
    if any(len(value.shape) == 0 or value.shape[0] != 2 for value in both.values()):
        return "its results do not have a row for each row of its inputs"
    if not _same(alone, again):
        return "the same row has another result a second time"
    rows = ({name: value[n : n + 1] for name, value in both.items()} for n in range(2))
    if not all(_same(one, joined) for one, joined in zip((alone, second), rows, strict=True)):
        return "a row's result depends on other rows"
    return None


def prepare(predictor: Predictor, most_rows: int) -> None:
    """Run batches of all sizes, so that the first requests don't wait for preparation."""
    for rows in sizes(most_rows):
        predictor.prepare(_row(predictor, 1, rows))


def _row(predictor: Predictor, seed: int, rows: int = 1) -> dict[str, Array]:
    details = [
        {"name": name, "shape": [rows, *(1 if n == -1 else n for n in shape[1:])], "dtype": dtype}
        for name, (shape, dtype) in predictor.inputs.items()
    ]
    return random_inputs(details, seed)


def _same(one: Outputs, other: Outputs) -> bool:
    return difference([np.asarray(other[name]) for name in one], [*one.values()]) <= _CLOSE
