"""The contents of a report: a model on devices, each with the parts of ``facts``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from litecl.perf.intervals import Ratio
from litecl.report.facts import (
    Accuracy,
    Earlier,
    Latency,
    LaunchFacts,
    Merged,
    ModelFacts,
    NodeFacts,
    OperatorFacts,
    Refused,
    RegionFacts,
    Roofs,
    Span,
    Start,
)


@dataclass(frozen=True)
class ProfileFacts:
    """Which program was timed. same: whether it is the one that runs without times.

    invoke_ms: of the median run with times, and what of it the device and nodes on the CPU took; the rest is the
    host's: copies, queueing, waiting. plain_ms: of one without times, as quick among its like.
    """

    same: bool
    sentence: str
    runs: int
    plain_ms: float
    invoke_ms: float
    device_ms: float
    cpu_ms: float
    rest_ms: float


@dataclass(frozen=True)
class Run:
    """The model on one device. ratios: the medians of peers over its own; none where the machine was busy."""

    device: dict[str, Any]
    verdict: tuple[str, ...]
    nodes_on_device: int
    warnings: tuple[str, ...]
    counters: dict[str, int]
    latency: Latency
    ratios: tuple[Ratio, ...]
    starts: tuple[Start, ...]
    roofs: Roofs | None
    profile: ProfileFacts
    operators: tuple[OperatorFacts, ...]
    launches: tuple[LaunchFacts, ...]
    nodes: tuple[NodeFacts, ...]
    merged: tuple[Merged, ...]
    refused: tuple[Refused, ...]
    timeline: tuple[Span, ...]
    regions: tuple[RegionFacts, ...]
    accuracy: tuple[Accuracy, ...]


@dataclass(frozen=True)
class Report:
    """A model on devices, and beside other runtimes. header: that of ``environment.header``.

    load_after: the load average once all was measured. earlier: what has changed since another report. sources: of the
    kernels that were launched, by name.
    """

    header: dict[str, Any]
    model: ModelFacts
    runs: tuple[Run, ...]
    peers: tuple[Latency, ...] = ()
    notes: tuple[str, ...] = field(default=())
    load_after: float | None = None
    earlier: Earlier | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
