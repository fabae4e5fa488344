"""The parts of a report: frozen records that become JSON directly, from which the page is drawn."""

from dataclasses import dataclass

Place = tuple[int, int]  # a subgraph and a node in it


@dataclass(frozen=True)
class Tensor:
    """A tensor. shape: None if known only at run time."""

    name: str
    type: str
    shape: tuple[int, ...] | None
    size_bytes: int
    constant: bool = False
    tensor: int = -1


@dataclass(frozen=True)
class Signature:
    """An entry point with its arguments and results."""

    key: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class ModelFacts:
    """The model. operators: counts by name. values: describes how input values were chosen."""

    name: str
    sha256: str
    size_bytes: int
    constant_bytes: int
    description: str
    subgraphs: int
    nodes: int
    operators: dict[str, int]
    signatures: tuple[Signature, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    values: str


@dataclass(frozen=True)
class Latency:
    """Times of invokes in measured order, and their statistics, in milliseconds.

    threads: None if litecl chose. warnings: reasons to doubt the times.
    """

    name: str
    threads: int | None
    prepare_ms: float
    first_ms: float
    times_ms: tuple[float, ...]
    min_ms: float
    mean_ms: float
    median_ms: float
    percentiles_ms: dict[str, float]
    outliers: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Phase:
    """A part of a start, in seconds."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Start:
    """The start of a new process up to the end of its first invoke. caches: "empty" or "filled"."""

    caches: str
    phases: tuple[Phase, ...]
    total_s: float


@dataclass(frozen=True)
class Roofs:
    """A device's measured peaks: operations per second, and bytes per second by the size of the memory read.

    operations_per_s: by arithmetic: "float32", and the kinds of integer products in the model.
    """

    operations_per_s: dict[str, float]
    bytes_per_s: dict[int, float]

    def bandwidth(self, size_bytes: int) -> float:
        """Return the bandwidth measured for the next larger or equal size."""
        return next((rate for size, rate in sorted(self.bytes_per_s.items()) if size >= size_bytes), self.slowest)

    def or_more(self, other: "Roofs") -> "Roofs":
        """Return the higher of two measurements for each peak."""
        rates = {kind: max(rate, other.operations_per_s[kind]) for kind, rate in self.operations_per_s.items()}
        return Roofs(rates, {size: max(rate, other.bytes_per_s[size]) for size, rate in self.bytes_per_s.items()})

    @property
    def slowest(self) -> float:
        """The bandwidth of the largest size."""
        return self.bytes_per_s[max(self.bytes_per_s)]


@dataclass(frozen=True)
class Work:
    """Time on the device or the host, and how close it comes to the device's peaks.

    size_bytes: of its memory arguments, each counted once. bound: "arithmetic" or "memory", whichever alone would take
    longer; "" if neither is known. of_bound: that time over the actual one; above 1 if the device exceeded its measured
    peak.
    """

    ms: float
    share: float
    flops: int
    size_bytes: int
    intensity: float | None
    flops_per_s: float | None
    bytes_per_s: float | None
    bound: str
    of_bound: float | None


@dataclass(frozen=True)
class LaunchFacts:
    """A launch: its node, its runs per invoke, and its total time.

    arithmetic: which operations peak applies; "" for none.
    """

    number: int
    partition: int
    place: Place
    op: str
    kernel: str
    runs: int
    arithmetic: str
    work: Work


@dataclass(frozen=True)
class OperatorFacts:
    """All nodes of an operator in one place. where: "device" or "CPU"."""

    op: str
    where: str
    nodes: int
    launches: int
    work: Work


@dataclass(frozen=True)
class NodeFacts:
    """A node. where: "device", "CPU", "constant" (computed at preparation) or "nothing" (without a launch).

    into: the node whose launch includes this one. launched: each launch with its work-items and macros, such as tiles.
    """

    place: Place
    op: str
    where: str
    region: int | None
    reason: str
    into: Place | None
    kernels: tuple[str, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    ms: float
    share: float
    launched: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused:
    """The nodes that the CPU runs for one reason, their cost, and advice on avoiding it."""

    reason: str
    lift: str
    ops: dict[str, int]
    nodes: tuple[Place, ...]
    ms: float
    share: float


@dataclass(frozen=True)
class Merged:
    """The nodes computed by the launches of one of them."""

    kernel: str
    nodes: tuple[Place, ...]
    ops: tuple[str, ...]


@dataclass(frozen=True)
class Span:
    """An activity in an invoke; times are relative to its start. lane: "host", "copies", "queue" or "device".

    op: the first operator. runs: how many iterations are folded into it.
    """

    lane: str
    name: str
    op: str
    start_ms: float
    ms: float
    runs: int = 1
    note: str = ""


@dataclass(frozen=True)
class Block:
    """A part of an arena. first, last: the steps between which it is in use."""

    name: str
    kind: str
    offset: int
    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class RegionFacts:
    """A region: how it runs, and its memory. constants: bytes by kind. steps: of the plan."""

    number: int
    subgraph: int
    nodes: int
    launches: int
    manner: str
    loops: tuple[str, ...]
    arena_bytes: int
    needed_bytes: int
    constants: dict[str, int]
    steps: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Difference:
    """A tensor's difference from a reference. relative: to the largest expected magnitude.

    steps: in quantization steps. place: the node that computed it.
    """

    tensor: Tensor
    place: Place | None
    op: str
    largest: float
    relative: float
    steps: int | None
    departs: bool


@dataclass(frozen=True)
class Accuracy:
    """Outputs compared with a reference, and layers if requested. departed: the first layer that departs."""

    reference: str
    tolerance: float
    outputs: tuple[Difference, ...]
    layers: tuple[Difference, ...] = ()
    departed: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Changed:
    """A time then and now. chance, verdict: as from ``litecl compare``, if single times are known."""

    name: str
    old_ms: float
    new_ms: float
    chance: float | None = None
    verdict: str = ""


@dataclass(frozen=True)
class Earlier:
    """An earlier report of the model: times of invokes and operators then and now, and other differences."""

    file: str
    date: str
    command: str
    times: tuple[Changed, ...]
    operators: tuple[Changed, ...]
    differences: tuple[str, ...]
