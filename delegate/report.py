"""The delegation report: where nodes ran, and why."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, Literal, Self

from litecl.delegate.counters import Counters as Counters
from litecl.delegate.naming import counted
from litecl.delegate.progress import info, logger
from litecl.delegate.progress import warn as warn
from litecl.delegate.tuning import Tiled
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.dynamic_range import TOLD
from litecl.interpreter.errors import DelegateError

if TYPE_CHECKING:
    from litecl.interpreter.data_frame import Library


def summary(error: BaseException) -> str:
    """Summarize an error in one line: its first line, and the first error line of a build log, or its first line."""
    first, *log = str(error).splitlines() or [type(error).__name__]
    written = [line.strip() for line in log if line.strip()]
    named = next((line for line in written if "error:" in line), written[0] if written and first.endswith(":") else "")
    return f"{first} {named}".strip().removesuffix(":")


@dataclass(frozen=True)
class Manner:
    """How a region runs, such as "one kernel" or "queued", and why.

    fault: the device's error, in one line, if one kernel was intended.
    """

    runs: str
    reason: str = ""
    fault: str = ""

    def __str__(self) -> str:
        reason = f", because {self.reason}" if self.fault else f" ({self.reason})" if self.reason else ""
        return f"{self.runs}{reason}" + (f": {self.fault}" if self.fault else "")


@dataclass(frozen=True)
class TensorRow:
    """A tensor of a node. shape: None if known only at run time; size_bytes is then 0."""

    tensor: int
    name: str
    type: str
    shape: tuple[int, ...] | None
    size_bytes: int
    constant: bool

    def __str__(self) -> str:
        shape = "?" if self.shape is None else ",".join(map(str, self.shape))
        return f"{self.name or self.tensor} {self.type}[{shape}]"


@dataclass(frozen=True)
class NodeRow:
    """One node of the model as loaded. reason: why the CPU runs it, or why it need not run. kernels: the kernels
    launched for it, as a file, and its function if that has another name; empty if the node is fused into another, or
    moves no data. into: the node that it is fused into, as subgraph and position.
    """

    subgraph: int
    node: int
    op: str
    claimed: bool
    partition: int | None
    reason: str
    inputs: tuple[TensorRow, ...] = ()
    outputs: tuple[TensorRow, ...] = ()
    kernels: tuple[str, ...] = ()
    into: tuple[int, int] | None = None


@dataclass(frozen=True)
class PartitionRow:
    """One region on the device: its nodes, launches per invoke, arena size and arithmetic operations.

    arena_bytes: includes copies of the inputs that runs overwrite, once a run has needed any.
    Launches and operations within a loop count once. manner: whether it is one kernel or queued, and why. loops: how
    each loop runs, as text. kernels: those of its nodes, without duplicates.
    """

    partition: int
    subgraph: int
    nodes: tuple[int, ...]
    launches: int
    arena_bytes: int
    constant_bytes: int
    flops: int
    manner: Manner
    loops: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()


@dataclass(frozen=True)
class LaunchTime:
    """How long a launch took on the device, and when it was queued and started, relative to the queuing of the region's
    first launch. runs: how often it ran; the duration is then the total, and the start that of the first run.
    """

    duration_ms: float
    queued_ms: float = 0.0
    start_ms: float = 0.0
    runs: int = 1


@dataclass(frozen=True)
class KernelRow:
    """Device time of one launch in the last invoke (only with ``profile=True``).

    queued_ms, start_ms, runs: see ``LaunchTime``. size_bytes: the total size of its memory arguments. tiled: the tile
    of a GPU's matrix product.
    """

    partition: int
    node: int
    kernel: str
    entry: str
    duration_ms: float
    flops: int
    subgraph: int = 0
    queued_ms: float = 0.0
    start_ms: float = 0.0
    size_bytes: int = 0
    runs: int = 1
    tiled: Tiled | None = None


@dataclass(frozen=True)
class CopyRow:
    """A copy of a region's inputs to the device, or of its outputs back, including the wait (``profile=True``).

    start_ms: since the region began to run, on the host.
    """

    partition: int
    to: str
    start_ms: float
    duration_ms: float
    size_bytes: int


@dataclass(frozen=True)
class WarmUp:
    """The progress of a background build: ``compiled`` of the ``files`` of a region, in ``seconds``. ready: whether the
    device runs the model. cpu_invokes: the number of invokes that the CPU ran before that.
    """

    compiled: int
    files: int
    cpu_invokes: int
    seconds: float
    ready: bool = False

    def __str__(self) -> str:
        if self.ready:
            return f"the device runs the model since invoke {self.cpu_invokes + 1}, warmed up in {self.seconds:.2f} s"
        return (
            f"warming up: {self.compiled} of {self.files} files compiled in {self.seconds:.2f} s; "
            f"the CPU has run {self.cpu_invokes} invokes"
        )


@dataclass(frozen=True)
class DelegationReport:
    """Rows for every node and partition, and the cost of the last invoke.

    threads: of the processor, if that is the device. build_s: seconds spent building programs and packing weights.
    cache_hits: programs loaded from the binary cache.
    phases: the parts of ``build_s``, in seconds by name (``delegate/progress.py``). kernels, copies: of the last
    invoke, with ``profile=True``. warm_up: the progress of a background build.
    failures: device failures that sent a region, or the whole model, back to the CPU. passed_over: unusable devices,
    with the reason. halves: the use of half precision, by ``precision="fp16"`` or in FLOAT16 models. dynamic_range: how
    products of float activations and integer weights quantize the activations, "" without such products. deterministic:
    which nodes give the same bits on every processor, "" if that wasn't asked for. ``warnings`` sums up everything that
    went wrong.
    """

    device: str
    nodes: tuple[NodeRow, ...]
    partitions: tuple[PartitionRow, ...]
    counters: Counters
    build_s: float
    cache_hits: int
    kernels: tuple[KernelRow, ...] = ()
    failures: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    phases: Mapping[str, float] = field(default_factory=dict)
    copies: tuple[CopyRow, ...] = ()
    warm_up: WarmUp | None = None
    halves: str = ""
    dynamic_range: str = ""
    deterministic: str = ""
    threads: int | None = None

    @classmethod
    def of(cls, interpreter: Any) -> Self:
        """Return CLDelegate's report on an interpreter's model. Raises DelegateError for another delegate's report."""
        report = interpreter.delegation_report()
        if not isinstance(report, cls):
            raise DelegateError(f"expected a report of CLDelegate, got {type(report).__name__}")
        return report

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for every device fault; each makes the model slower than it should be."""
        fallen = "no region runs on a device" if self.device == "none" else "{} fell back to the CPU"
        return (
            *(f"device passed over: {name}" for name in self.passed_over),
            *(f"{fallen.format(counted(n, 'region'))}: {cause}" for cause, n in Counter(self.failures).items()),
            *(f"region {row.partition} is {row.manner}" for row in self.partitions if row.manner.fault),
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """The claimed nodes, the cost of the last invoke, and how regions and loops run, a line each."""
        manners = Counter(row.manner for row in self.partitions if not row.manner.fault)
        return (
            *(() if self.warm_up is None else (str(self.warm_up),)),
            f"{self.claimed} of {counted(len(self.nodes), 'node')} in {counted(len(self.partitions), 'partition')} "
            f"on {self.placed}; built in {self.build_s:.2f} s, {counted(self.cache_hits, 'program')} from the cache",
            *((self._last_invoke,) if self.counters.any else ()),
            *(line for line in (self.halves, self.deterministic) if line),
            *((f"dynamic range: {TOLD[self.dynamic_range]}",) if self.dynamic_range else ()),
            *(f"{counted(count, 'region')}: {manner}" for manner, count in manners.items()),
            *(loop for row in self.partitions for loop in row.loops),
        )

    @property
    def placed(self) -> str:
        """The device, and its threads."""
        return self.device + ("" if self.threads is None else f" with {counted(self.threads, 'thread')}")

    @property
    def _last_invoke(self) -> str:
        cost = self.counters
        return (
            f"last invoke: {counted(cost.kernel_launches, 'launch')}, {counted(cost.host_syncs, 'host sync')}, "
            f"{counted(cost.bytes_to_device, 'byte')} to the device, {counted(cost.bytes_to_host, 'byte')} to the host"
            + self._copies
        )

    @property
    def _copies(self) -> str:
        """The bytes copied on the device, and for signature calls; "" without any."""
        cost = self.counters
        more = f", {counted(cost.bytes_on_device, 'byte')} on the device" if cost.bytes_on_device else ""
        if not (cost.bytes_given or cost.bytes_returned):
            return more
        given, returned = counted(cost.bytes_given, "byte"), counted(cost.bytes_returned, "byte")
        return f"{more}; {given} from arguments, {returned} to results"

    @property
    def claimed(self) -> int:
        """The number of nodes that the device runs."""
        return sum(row.claimed for row in self.nodes)

    def to_json(self) -> str:
        """Return the whole report as a JSON object."""
        counters = _fields(self.counters)
        counters.pop("invocation")
        return json.dumps(_fields(self) | {"counters": counters, "warnings": self.warnings}, default=_fields)

    def frame(
        self, rows: Literal["nodes", "partitions", "kernels", "copies"] = "nodes", library: "Library | None" = None
    ) -> Any:
        """Return rows as a data frame of pandas or polars (``frames.frame``). Raises MissingExtra without either."""
        from litecl.interpreter.data_frame import frame

        return frame(getattr(self, rows), library)

    def _repr_html_(self) -> str:
        """Return the report as HTML, which notebooks show."""
        from litecl.delegate.report_html import html

        return html(self)

    def __repr__(self) -> str:
        from litecl.delegate.report_text import text

        return text(self)

    def __rich__(self) -> Any:
        """Return what a terminal shows."""
        from litecl.delegate.report_text import renderable

        return renderable(self)


def _fields(record: Any) -> dict[str, Any]:
    return {each.name: getattr(record, each.name) for each in fields(record)}


def log(report: DelegationReport) -> None:
    """Log how many nodes were claimed (INFO), and why each of the others was not (DEBUG)."""
    regions, programs = counted(len(report.partitions), "region"), counted(report.cache_hits, "program")
    claimed = f"{report.claimed} of {counted(len(report.nodes), 'node')} in {regions} on {report.device}"
    info("%s, prepared in %.2f s, %s from the cache", claimed, report.build_s, programs)
    for row in report.nodes:
        if not row.claimed:
            logger().debug("subgraph %d, node %d (%s) stays on the CPU: %s", row.subgraph, row.node, row.op, row.reason)
