"""The runtimes that damaged models are given to: each reads, prepares and runs a model, or refuses it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np

from litecl.delegate import CLDelegate, delegation
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError, LiteclError
from litecl.interpreter.file.reader import read
from litecl.perf.feeds import Runtime, random_inputs
from litecl.perf.peers import litert

_MOST_FED_BYTES = 1 << 24
RAN, PREPARED = "ran", "prepared"


@dataclass(frozen=True)
class Limits:
    """Limits of a mutant. Slack is memory that is not counted, or not immediately, and time that cannot be interrupted.

    cache_dir: where programs of a device are kept; None keeps none.
    """

    memory_bytes: int = 1 << 28
    time_s: float = 2.0
    slack_bytes: int = 1 << 26
    slack_s: float = 4.0
    cache_dir: Path | None = None

    @property
    def most_bytes(self) -> int:
        """The most by which a worker may grow: the limit, what libraries take in addition, and an eighth."""
        return self.memory_bytes + self.memory_bytes // 8 + self.slack_bytes

    @property
    def most_s(self) -> float:
        """The longest that a mutant may take: two calls, and what cannot be interrupted."""
        return 2 * self.time_s + self.slack_s


LIMITS = Limits()
Attempt = Callable[[bytes, Limits], str]
"""Reads, prepares and runs a model: "ran", "prepared" if its inputs are too large to be fed, or its error's name."""


@dataclass(frozen=True)
class Tried:
    """A runtime. ours: whether it must neither crash nor hang, and raise typed errors alone. slack: times the usual.

    library_bytes: of address space, for threads' stacks and heaps.
    """

    attempt: Attempt
    ours: bool = True
    slack: int = 1
    library_bytes: int = 1 << 30


def interpreter(content: bytes, limits: Limits) -> str:
    """Run a model by litecl's interpreter."""
    return _ours(content, limits, [])


def planned(content: bytes, limits: Limits) -> str:
    """Run it by the interpreter after all that a delegate does but to compile: claims, passes, lowerings, memory."""
    with mock.patch.object(delegation, "Program", _not_built), mock.patch.object(delegation, "warn"):
        return _ours(content, limits, [CLDelegate("native", num_threads=1, cache_dir=None)])


def _not_built(*given: object) -> object:
    raise DelegateError("only planned")


def on_device(content: bytes, limits: Limits) -> str:
    """Run it on the processor as a device; what that does not build, the interpreter runs."""
    return _ours(content, limits, [CLDelegate("native", num_threads=1, cache_dir=limits.cache_dir)])


def _ours(content: bytes, limits: Limits, delegates: list[CLDelegate]) -> str:
    try:
        return _run(
            Interpreter(read(content), delegates=delegates, memory_limit=limits.memory_bytes, time_limit=limits.time_s)
        )
    except LiteclError as error:
        return type(error).__name__


def peer(content: bytes, limits: Limits, resolver: str) -> str:
    """Run it by LiteRT, whose errors are ValueError and RuntimeError; it may end the process."""
    try:
        return _run(litert.load(content, 1, resolver))
    except (ValueError, RuntimeError) as error:
        return type(error).__name__


def _run(runtime: Runtime) -> str:
    runtime.allocate_tensors()
    details = runtime.get_input_details()
    sizes = [float(np.prod(d["shape"], dtype=np.float64)) * np.dtype(d["dtype"]).itemsize for d in details]
    if sum(sizes) > _MOST_FED_BYTES:
        return PREPARED
    for detail, value in zip(details, random_inputs(details, 0).values(), strict=False):
        runtime.set_tensor(detail["index"], value)
    runtime.invoke()
    for detail in runtime.get_output_details():
        runtime.get_tensor(detail["index"])
    return RAN


RUNTIMES: Mapping[str, Tried] = {
    "interpreter": Tried(interpreter),
    "planned": Tried(planned, slack=4),
    "device": Tried(on_device, slack=4, library_bytes=1 << 34),
    "litert": Tried(partial(peer, resolver="AUTO"), ours=False, library_bytes=1 << 32),
    "litert-reference": Tried(partial(peer, resolver="BUILTIN_REF"), ours=False, library_bytes=1 << 32),
}
