"""The contents of a report: a model on devices, composed of ``facts``."""

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
    """Which program was timed. same: whether it is the one that runs without launch times.

    invoke_ms: the median run with launch times. device_ms, cpu_ms: the device's and CPU nodes' parts of it; rest_ms:
    the host's copies, queueing and waiting. plain_ms: the corresponding run without launch times.
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
    """The model on one device. ratios: the peers' medians over its own; empty if the machine was busy."""

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
    """A model on devices and other runtimes. header: as from ``environment.header``.

    load_after: the load average after all measurements. earlier: changes since another report. sources: of the launched
    kernels, by name.
    """

    header: dict[str, Any]
    model: ModelFacts
    runs: tuple[Run, ...]
    peers: tuple[Latency, ...] = ()
    notes: tuple[str, ...] = field(default=())
    load_after: float | None = None
    earlier: Earlier | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
