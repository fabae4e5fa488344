"""Runs a model as a function of batches, dictionaries of arrays in and out, on one or more devices."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from litecl.background import Background
from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.devices import devices
from litecl.delegate.required import require_all
from litecl.frames import Results, from_frame, is_frame
from litecl.interpreter.errors import DelegateError, LiteclError, ModelError
from litecl.interpreter.graph import Array, Shape
from litecl.interpreter.html import block, paragraph, table
from litecl.interpreter.numbers import Numbers
from litecl.lane import Lane
from litecl.pool import Pool, is_within

Batch = Mapping[str, Any] | Array | Sequence[Any]


class Predictor:
    """Runs one signature of a model on batches, from any number of threads. It can be pickled.

    A signal handler may call it too; if it interrupted a call, it gets its own memory and variables.

    model: the path or the bytes of a file; a pickled predictor reads the path again.
    signature: the key of a signature; None is the only one, or the whole model by tensor names.
    device: as for ``CLDelegate``; a list, or "all", alternates between several. cpu: run on numpy, which uses only the
    option ``dynamic_range``, by default "reference".
    require_device: raise DelegateError unless each device runs every node. numbers: as for ``Interpreter``.
    buffers: sets of memory per device; with two, the next batch is written while one computes.
    keep: columns of a batch to pass through to the results, such as an id. options: those of ``CLDelegate``.

    A batch maps input names to arrays with any number of rows; a model with one input also takes the bare array.
    Values are those of the model's tensors: the file's metadata doesn't normalize them.
    A batch may also be a pandas or polars data frame with a column per input; ``results.frame()`` returns the results
    as one. A model with an open first dimension takes all rows at once; a model with a fixed batch size runs as often
    as needed, and one without a batch dimension once per row.

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
        numbers: Numbers = "reference",
        **options: Any,
    ) -> None:
        source = model if isinstance(model, bytes) else str(Path(model).absolute())
        where = {"device": device, "cpu": cpu, "require_device": require_device}
        self._made_from = (
            source,
            {
                "signature": signature,
                **where,
                "buffers": buffers,
                "keep": keep,
                "numbers": numbers,
                **options,
            },
        )
        self._keep = frozenset(keep)
        given = {name: value for name, value in options.items() if name != "dynamic_range" or not cpu}  # a lane's then
        chosen = [CLDelegate(one, **given) for one in _devices(device, cpu)]  # raises for unknown options, cpu's too
        delegates_of = [[] if cpu else [delegate] for delegate in chosen]
        lane = partial(Lane, source, signature, dynamic_range=options.get("dynamic_range"), numbers=numbers)
        self._reports = [_run_once(lane, delegates) for delegates in delegates_of]
        if require_device:
            for report in self._reports:
                require_all("require_device", report)
        self._lanes = [lane(delegates=delegates) for delegates in delegates_of * buffers]
        self._pool = Pool(self._lanes, partial(lane, delegates=delegates_of[0]))
        self._background = Background(len(self._lanes))

    @property
    def inputs(self) -> dict[str, tuple[Shape, np.dtype[Any]]]:
        """Shape, with -1 for open dimensions, and type of every input by name."""
        return {name: (details.shape, details.dtype) for name, details in self._lanes[0].inputs.items()}

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs."""
        return [*self._lanes[0].outputs]

    @property
    def results(self) -> dict[str, tuple[Shape, np.dtype[Any]]]:
        """Shape, with -1 for open dimensions, and type of every output by name."""
        return dict(self._lanes[0].results)

    @property
    def keeps_states(self) -> bool:
        """True if a batch may change the results of later ones: the model writes variables."""
        return self._lanes[0].keeps_states

    @property
    def devices(self) -> list[str]:
        """Names of the devices that run the batches; "none" for numpy."""
        return [*dict.fromkeys(lane.device for lane in self._lanes)]

    def delegation_report(self) -> DelegationReport:
        """Return where every node runs on the first device. Raises DelegateError with ``cpu=True``."""
        report = self._reports[0]
        if report is None:
            raise DelegateError("cpu=True: numpy runs every node")
        return report

    @property
    def at_once(self) -> int:
        """The number of batches that can run at once."""
        return len(self._lanes)

    def __call__(self, batch: Batch) -> Results:
        """Return the outputs of a batch by name, row by row with its inputs. Raises ModelError and ShapeError."""
        named = self._named(batch)
        kept = {name: value for name, value in named.items() if name in self._keep}
        given = {name: x for name, x in named.items() if name not in self._keep}
        return Results(kept | self._pool.run(lambda lane: lane.run(given)))

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name} {dtype}[{','.join(map(str, s))}]" for name, (s, dtype) in self.inputs.items())
        return f"<Predictor: {inputs} -> {', '.join(self.outputs)}; on {', '.join(self.devices)}>"

    def prepare(self, batch: Batch) -> None:
        """Run a batch on every lane, so that later batches of its shape start without preparation."""
        for lane in self._lanes:
            lane.run(self._named(batch))

    def _repr_html_(self) -> str:
        """Return inputs and outputs as HTML for notebooks."""
        rows = [
            (kind, name, dtype, f"[{','.join(map(str, shape))}]")
            for kind, tensors in (("input", self.inputs), ("output", self.results))
            for name, (shape, dtype) in tensors.items()
        ]
        title = paragraph(f"Predictor on {', '.join(self.devices)}")
        return block(title, table(("", "name", "type", "shape"), rows))

    def submit(self, batch: Batch) -> "Future[Results]":
        """Start a batch in a thread and return at once; ``result()`` waits. Leave its arrays alone until then.

        A signal handler that interrupted a call runs the batch itself: threads may wait for the interrupted call.
        """
        if is_within(self, (Predictor.submit.__code__, Predictor.__call__.__code__)):
            return _ran(self, batch)
        return self._background.submit(self, batch)

    def map(self, batches: Iterable[Batch]) -> Iterator[Results]:
        """Yield the results of batches in order, while later batches are fetched and computed."""
        under_way: deque[Future[Results]] = deque()
        for batch in batches:
            under_way.append(self.submit(batch))
            if len(under_way) > len(self._lanes):
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()

    def close(self) -> None:
        """Wait for the batches under way and release the model."""
        self._background.close()
        for lane in self._lanes:
            lane.interpreter.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, self._made_from

    def _named(self, batch: Batch) -> Mapping[str, Any]:
        """Return a batch by name. Raises ModelError for a bare array if the model has several inputs."""
        if is_frame(batch):
            return from_frame(batch, {name: shape for name, (shape, _) in self.inputs.items()})
        if hasattr(batch, "keys"):
            return cast("Mapping[str, Any]", batch)
        names = [*self._lanes[0].inputs]
        if len(names) != 1:
            raise ModelError(f"expected a batch of {sorted(names)} by name, got {type(batch).__name__}")
        return {names[0]: batch}


def _run_once(load: Callable[..., Lane], delegates: Sequence[CLDelegate]) -> DelegationReport | None:
    """Run the model on zeros, with separate variables: drivers finish compiling on the first run. Return the delegation
    report, or None without delegates.
    """
    if not delegates:
        return None
    lane = load(delegates=delegates)
    with suppress(LiteclError):  # the model may reject zeros
        lane.interpreter._invoke(lane.subgraph)
    report = DelegationReport.of(lane.interpreter)
    lane.interpreter.close()
    return report


def _ran(predictor: Predictor, batch: Batch) -> "Future[Results]":
    """Run a batch; return a done future with its results or error."""
    future: Future[Results] = Future()
    try:
        future.set_result(predictor(batch))
    except Exception as error:
        future.set_exception(error)
    return future


def _devices(device: Any, cpu: bool) -> list[Any]:
    """Return the devices that a caller asks for. "all" means every GPU and the preferred CPU device."""
    if cpu or not (device == "all" or isinstance(device, list | tuple)):
        return [None if cpu else device]
    if device != "all":
        return [*device]
    every = devices()
    gpus = [each for each in every if each.describe().type == "GPU"]
    return [*gpus, *[each for each in every if each not in gpus][:1]]


def _made_again(source: Any, arguments: Mapping[str, Any]) -> Predictor:
    return Predictor(source, **arguments)
