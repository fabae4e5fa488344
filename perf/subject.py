"""A runtime's figures in a benchmark, for a single interpreter or several in parallel threads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array
from litecl.perf.contenders import Contender, start
from litecl.perf.doubts import doubts
from litecl.perf.feeds import Runtime, difference, outputs_of
from litecl.perf.resident import Usage
from litecl.perf.streams import all_at_once, throughput
from litecl.perf.timing import Stats, elapsed_ms

Load = Callable[[], Runtime]
_ROUNDS = 3  # per runtime, in turns with the others


@dataclass(frozen=True)
class Subject:
    """A runtime's figures: preparation (loading, delegating, compiling), the first invoke, and the timed ones.

    num_threads: of each interpreter; None if litecl chose. memory_bytes: litecl's device memory. process: host memory,
    if measured. streams: how many interpreters ran at once; prepare_ms is then the sum over all, first_ms the time of
    their simultaneous first invokes, and differs the largest difference of their outputs. per_second: invokes.
    """

    name: str
    num_threads: int | None
    prepare_ms: float
    first_ms: float
    stats: Stats
    per_second: float
    memory_bytes: int | None = None
    process: Usage | None = None
    streams: int = 1
    differs: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        return {
            "name": self.name,
            "num_threads": self.num_threads,
            "streams": self.streams,
            "prepare_ms": self.prepare_ms,
            "first_ms": self.first_ms,
            "per_second": self.per_second,
            "memory_bytes": self.memory_bytes,
            "process_peak_bytes": None if self.process is None else self.process.peak,
            "process_end_bytes": None if self.process is None else self.process.end,
            "warnings": self.warnings,
            **self.stats.to_dict(),
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings that cast doubt on the figures."""
        if self.streams == 1:
            return doubts(self.stats)
        return (f"outputs of the streams differ, by {self.differs:.1e} of their magnitude",) if self.differs else ()


def alone(contender: Contender, stats: Stats, memory_bytes: int | None, process: Usage | None) -> Subject:
    """Return the figures of an interpreter that ran alone. Invokes per second follow from the median."""
    rate = 1e3 / stats.median_ms
    return Subject(
        contender.name,
        contender.num_threads,
        contender.prepare_ms,
        contender.first_ms,
        stats,
        rate,
        memory_bytes,
        process,
    )


@dataclass(frozen=True)
class _Several:
    """Interpreters of one runtime after a simultaneous first run."""

    first: Contender
    invokes: tuple[Callable[[], object], ...]
    prepare_ms: float
    first_ms: float
    differs: float


def in_streams(
    contenders: Sequence[tuple[Contender, Load]],
    count: int,
    inputs: Mapping[str, Array],
    seconds: float,
) -> list[Subject]:
    """Measure ``count`` interpreters of each runtime in as many threads, taking turns with the other runtimes.

    contenders: each with a function that loads another instance. seconds: per runtime.
    """
    several = [_several(contender, load, count, inputs) for contender, load in contenders]
    rounds = [[throughput(one.invokes, seconds / _ROUNDS) for one in several] for _ in range(_ROUNDS)]
    subjects = []
    for one, taken in zip(several, zip(*rounds, strict=True), strict=True):
        stats = Stats(tuple(ms for _, part in taken for ms in part.times_ms))
        busy_s = sum(len(part.times_ms) / rate for rate, part in taken)
        name, threads, rate = one.first.name, one.first.num_threads, len(stats.times_ms) / busy_s
        figures = one.prepare_ms, one.first_ms, stats, rate
        subjects.append(Subject(name, threads, *figures, streams=count, differs=one.differs))
    return subjects


def _several(contender: Contender, load: Load, count: int, inputs: Mapping[str, Array]) -> _Several:
    started = [start(contender.name, contender.num_threads, load, inputs, run=False) for _ in range(count)]
    runtimes = [one.runtime for one in started]
    invokes = tuple(runtime.invoke for runtime in runtimes)
    first_ms = elapsed_ms(lambda: all_at_once(invokes))
    expected, *others = [outputs_of(runtime) for runtime in runtimes]
    differs = max((difference(got, expected) for got in others), default=0.0)
    return _Several(contender, invokes, sum(one.prepare_ms for one in started), first_ms, differs)
