"""A server's counts and times, in the Prometheus text format."""

import bisect
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass
class Histogram:
    """Counts of values per bucket, and their sum. bounds: upper bounds of the buckets, inclusive."""

    bounds: Sequence[float]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str) -> Iterator[str]:
        """Yield the metric's lines, with cumulative counts."""
        below = 0
        for bound, count in zip((*(f"{each:g}" for each in self.bounds), "+Inf"), self.counts, strict=True):
            below += count
            yield f'{name}_bucket{{le="{bound}"}} {below}'
        yield f"{name}_sum {self.total:.9g}"
        yield f"{name}_count {below}"


class Metrics:
    """A server's metrics. Threads may share them. facts: labels that never change, such as the device."""

    def __init__(self, facts: Mapping[str, str]) -> None:
        self._facts = facts
        self._codes = Counter[int]()
        self._request_s, self._invoke_s, self._rows = Histogram(SECONDS), Histogram(SECONDS), Histogram(ROWS)
        self._tokens = Counter[str]()  # of language models
        self._lock = threading.Lock()

    def answered(self, code: int, duration_s: float) -> None:
        """Count an inference request. duration_s: from its arrival to its answer."""
        with self._lock:
            self._codes[code] += 1
            self._request_s.add(duration_s)

    def invoked(self, rows: int, duration_s: float) -> None:
        """Count a batch that has run."""
        with self._lock:
            self._rows.add(rows)
            self._invoke_s.add(duration_s)

    def generated(self, prompt: int, tokens: int) -> None:
        """Count the tokens of a request. prompt: of its prompts. tokens: generated."""
        with self._lock:
            self._tokens["prompt"] += prompt
            self._tokens["generated"] += tokens

    @property
    def requests(self) -> int:
        """The number of requests answered, including refusals."""
        return self._codes.total()

    def text(self, waiting: int) -> str:
        """Return all metrics. waiting: requests that no batch has taken yet."""
        with self._lock:
            return "\n".join(self._lines(waiting)) + "\n"

    def _lines(self, waiting: int) -> Iterator[str]:
        facts = ",".join(f'{name}="{_escaped(value)}"' for name, value in self._facts.items())
        yield from _head("litecl_model_info", "gauge", "The model, its device and litecl's version.")
        yield f"litecl_model_info{{{facts}}} 1"
        yield from _head("litecl_requests_total", "counter", "Requests answered, by HTTP status.")
        yield from (f'litecl_requests_total{{code="{code}"}} {n}' for code, n in sorted(self._codes.items()))
        yield from _head("litecl_waiting_requests", "gauge", "Requests that wait for a batch.")
        yield f"litecl_waiting_requests {waiting}"
        yield from _head("litecl_request_seconds", "histogram", "From a request's arrival to its answer.")
        yield from self._request_s.lines("litecl_request_seconds")
        if self._tokens:
            yield from _head("litecl_tokens_total", "counter", "Tokens of prompts, and generated tokens.")
            yield from (f'litecl_tokens_total{{kind="{kind}"}} {n}' for kind, n in sorted(self._tokens.items()))
            return
        yield from _head("litecl_invoke_seconds", "histogram", "Duration of a batch on the device.")
        yield from self._invoke_s.lines("litecl_invoke_seconds")
        yield from _head("litecl_batch_rows", "histogram", "Rows of a batch.")
        yield from self._rows.lines("litecl_batch_rows")


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
