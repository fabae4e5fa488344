"""A model as a function of batches: dictionaries of arrays in and out, on one device or several."""

import queue
import threading
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.devices import devices
from litecl.delegate.required import require_all
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError, ModelError, ShapeError
from litecl.interpreter.feeding import texts, told_apart
from litecl.interpreter.graph import Array, Shape

Batch = Mapping[str, Any]
Results = dict[str, Any]


class Predictor:
    """Runs one signature of a model on batches, from any number of threads. It can be pickled.

    A signal handler may call it too, and gets its own memory and variables if it has interrupted a call.

    model: the path or the bytes of a file; a pickled predictor reads the path again.
    signature: the key of a signature; None is the only one, or the model under the names of its tensors.
    device: as for ``CLDelegate``; a list, or "all", alternates between several. cpu: run on numpy.
    require_device: raise DelegateError unless each device runs every node.
    buffers: sets of memory per device: with two, the next batch is written while one is computed.
    keep: columns of a batch to pass on with the results, such as an id. options: those of ``CLDelegate``.

    A batch has an array per input, with any number of rows. A model with an open first dimension takes them at once; a
    model with a fixed batch size runs as often as needed, and one without a batch dimension once per row.

    The constructor loads, compiles and runs the model once. Raises ModelError and DelegateError.
    """

    def __init__(
        self,
        model: str | PathLike[str] | bytes,
        *,
        signature: str | None = None,
        device: Any = None,
        cpu: bool = False,
        require_device: bool = False,
        buffers: int = 1,
        keep: Collection[str] = (),
        **options: Any,
    ) -> None:
        source = model if isinstance(model, bytes) else str(Path(model).absolute())
        place = {"device": device, "cpu": cpu, "require_device": require_device}
        self._made_from = source, {"signature": signature, **place, "buffers": buffers, "keep": keep, **options}
        self._keep = frozenset(keep)
        places = [[] if cpu else [CLDelegate(place, **options)] for place in _places(device, cpu)]
        for delegates in places:
            report = _run_once(source, signature, delegates)
            if require_device:
                require_all("require_device", report)
        self._spare = source, signature, places[0]
        self._busy = set[int]()  # threads that are in a call, which a signal handler may interrupt
        self._lanes = [_Lane(source, signature, delegates) for delegates in places * buffers]
        self._free: queue.LifoQueue[_Lane] = queue.LifoQueue()
        for lane in reversed(self._lanes):
            self._free.put(lane)
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    @property
    def inputs(self) -> dict[str, tuple[Shape, np.dtype[Any]]]:
        """Shape, with -1 for what is open, and type of every input by name."""
        return {name: (details.shape, details.dtype) for name, details in self._lanes[0].inputs.items()}

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs."""
        return [*self._lanes[0].outputs]

    @property
    def devices(self) -> list[str]:
        """Names of the devices that batches are run on; "none" for numpy."""
        return [*dict.fromkeys(lane.device for lane in self._lanes)]

    def __call__(self, batch: Batch) -> Results:
        """Return the outputs of a batch by name, in the rows of its inputs. Raises ModelError and ShapeError."""
        with self._lane() as lane:
            return self._kept(batch) | lane.run({name: x for name, x in batch.items() if name not in self._keep})

    def submit(self, batch: Batch) -> "Future[Results]":
        """Begin a batch in a thread and return at once; ``result()`` waits. Leave its arrays alone until then.

        A signal handler that has interrupted a call runs it itself: threads may wait for what it has interrupted.
        """
        with self._entered() as interrupts:
            if interrupts:
                return _ran(self, batch)
            with self._lock:
                if self._threads is None:
                    self._threads = ThreadPoolExecutor(len(self._lanes), "litecl-predictor")
            return self._threads.submit(self, batch)

    def map(self, batches: Iterable[Batch]) -> Iterator[Results]:
        """Yield the results of batches in their order, while others are computed and the next ones are fetched."""
        under_way: deque[Future[Results]] = deque()
        for batch in batches:
            under_way.append(self.submit(batch))
            if len(under_way) > len(self._lanes):
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()

    def close(self) -> None:
        """Wait for what was begun, and let go of the model."""
        if self._threads is not None:
            self._threads.shutdown()
        for lane in self._lanes:
            lane.interpreter.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, self._made_from

    @contextmanager
    def _entered(self) -> Iterator[bool]:
        """Begin a call; yield whether it interrupts another one of this thread's, whose locks it must not wait for."""
        thread = threading.get_ident()
        interrupts = thread in self._busy
        try:
            self._busy.add(thread)
            yield interrupts
        finally:
            if not interrupts:
                self._busy.discard(thread)

    @contextmanager
    def _lane(self) -> "Iterator[_Lane]":
        """Yield a lane once one is free; a new one, for the moment, to a call that interrupts another one."""
        with self._entered() as interrupts:
            lane = _Lane(*self._spare) if interrupts else self._free.get()
            try:
                yield lane
            finally:
                if interrupts:
                    lane.interpreter.close()
                else:
                    self._free.put(lane)

    def _kept(self, batch: Batch) -> Results:
        return {name: value for name, value in batch.items() if name in self._keep}


class _Input:
    """An input of a signature."""

    def __init__(self, details: Mapping[str, Any]) -> None:
        self.tensor = int(details["index"])
        self.dtype = np.dtype(np.object_ if details["dtype"] is np.bytes_ else details["dtype"])
        fixed = tuple(int(n) for n in details["shape"])
        self.shape: Shape = tuple(int(n) for n in details["shape_signature"]) or fixed

    def rows_at_once(self, name: str, value: Array) -> int | None:
        """Return how many rows of a value a run takes: 0 for one without its dimension, None for all of them.

        Raises ShapeError for a value that does not fit.
        """
        if _fits(value.shape, self.shape):
            return None
        if value.ndim and self.shape and _fits(value.shape[1:], self.shape[1:]):
            return self.shape[0]
        if value.ndim and _fits(value.shape[1:], self.shape):
            return 0
        raise ShapeError(f"input {name!r}: expected rows of shape {[*self.shape[1:]]}, got {[*value.shape]}")


class _Lane:
    """One interpreter, with memory of its own."""

    def __init__(self, source: Any, signature: str | None, delegates: Sequence[CLDelegate]) -> None:
        self.interpreter = Interpreter(source, delegates=delegates)
        self.interpreter.allocate_tensors()
        keys = self.interpreter.get_signature_list()
        if signature is None and len(keys) != 1:
            given, results = self.interpreter.get_input_details(), self.interpreter.get_output_details()
            self.subgraph = 0
        else:
            runner = self.interpreter.get_signature_runner(signature)
            self.subgraph = runner._subgraph_index
            given, results = (
                [{**detail, "name": name} for name, detail in details.items()]
                for details in (runner.get_input_details(), runner.get_output_details())
            )
        self.inputs = dict(zip(told_apart([d["name"] for d in given]), map(_Input, given), strict=True))
        self.outputs = dict(
            zip(told_apart([d["name"] for d in results]), [int(d["index"]) for d in results], strict=True)
        )
        self.device = "none" if not delegates else self.interpreter.delegation_report().device  # type: ignore[attr-defined]

    def run(self, batch: Batch) -> Results:
        """Run a batch, in as many invokes as it takes."""
        if batch.keys() != self.inputs.keys():
            raise ModelError(f"expected a batch of {sorted(self.inputs)}, got {sorted(batch)}")
        values = {name: self._checked(name, value) for name, value in batch.items()}
        counts = {name: self.inputs[name].rows_at_once(name, value) for name, value in values.items()}
        if set(counts.values()) == {None}:
            return self._invoke(values)
        step = max(count or 0 for count in counts.values())
        rows = {len(value) for value in values.values()}
        if len(rows) != 1 or any(count not in (step, None) for count in counts.values()):
            raise ShapeError(f"expected equal row counts, got { ({name: len(x) for name, x in values.items()}) }")
        (total,) = rows
        if not total:
            raise ShapeError("expected at least one row, got none")
        parts = [self._rows(values, start, step) for start in range(0, total, step or 1)]
        return {name: (np.concatenate if step else np.stack)([part[name] for part in parts]) for name in self.outputs}

    def _checked(self, name: str, value: Any) -> Array:
        if self.inputs[name].dtype == np.object_:
            return texts(value, f"input {name!r}")
        array = np.asarray(value)
        if array.dtype != self.inputs[name].dtype:
            raise ShapeError(f"input {name!r}: expected {self.inputs[name].dtype}, got {array.dtype}")
        return array

    def _rows(self, values: Mapping[str, Array], start: int, step: int) -> Results:
        """Run the rows from one on; the last ones are followed by copies of the last, as many as the model is for."""
        if not step:
            return self._invoke({name: value[start] for name, value in values.items()})
        parts = {name: value[start : start + step] for name, value in values.items()}
        count = len(next(iter(parts.values())))
        if count < step:
            parts = {name: np.concatenate([x, np.repeat(x[-1:], step - count, axis=0)]) for name, x in parts.items()}
        results = self._invoke(parts)
        for name, value in results.items():
            if value.shape[:1] != (step,):
                raise ShapeError(f"output {name!r}: expected {step} rows as its input has, got shape {[*value.shape]}")
        return {name: value[:count] for name, value in results.items()}

    def _invoke(self, values: Mapping[str, Array]) -> Results:
        for name, value in values.items():
            tensor = self.inputs[name].tensor
            self.interpreter.resize_tensor_input(tensor, value.shape, subgraph_index=self.subgraph)
        self.interpreter.allocate_tensors()
        for name, value in values.items():
            self.interpreter.set_tensor(self.inputs[name].tensor, value, subgraph_index=self.subgraph)
        self.interpreter._invoke(self.subgraph)
        return {name: self.interpreter.get_tensor(tensor, self.subgraph) for name, tensor in self.outputs.items()}


def _run_once(source: Any, signature: str | None, delegates: Sequence[CLDelegate]) -> DelegationReport | None:
    """Run the model on zeros, with variables of its own: drivers finish programs when they first run. Return what runs
    where, or None without delegates.
    """
    if not delegates:
        return None
    lane = _Lane(source, signature, delegates)
    with suppress(LiteclError):  # zeros may be no values for it
        lane.interpreter._invoke(lane.subgraph)
    report = DelegationReport.of(lane.interpreter)
    lane.interpreter.close()
    return report


def _ran(predictor: Predictor, batch: Batch) -> "Future[Results]":
    """Run a batch; return what has its results, or its error."""
    future: Future[Results] = Future()
    try:
        future.set_result(predictor(batch))
    except Exception as error:
        future.set_exception(error)
    return future


def _fits(shape: Shape, open_: Shape) -> bool:
    return len(shape) == len(open_) and all(m in (n, -1) for n, m in zip(shape, open_, strict=True))


def _places(device: Any, cpu: bool) -> list[Any]:
    """Return the devices that a caller means. "all" are all GPUs, and of those for the processor the preferred one."""
    if cpu or not (device == "all" or isinstance(device, list | tuple)):
        return [None if cpu else device]
    if device != "all":
        return [*device]
    found = devices()
    gpus = [each for each in found if each.describe().type == "GPU"]
    return [*gpus, *[each for each in found if each not in gpus][:1]]


def _made_again(source: Any, arguments: Mapping[str, Any]) -> Predictor:
    return Predictor(source, **arguments)
