"""The parts of a report: frozen records, which become JSON as they are, and of which the page is drawn."""

from dataclasses import dataclass

Place = tuple[int, int]  # a subgraph and a node in it


@dataclass(frozen=True)
class Tensor:
    """A tensor: shape is None where it is known only at run time."""

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
    """The model. operators: their names with counts. inputs: how their values were chosen."""

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
    """Times of invokes in the order in which they were taken, and what they come to, in milliseconds.

    threads: None where litecl chose. warnings: what makes the times doubtful.
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
    """A start of a new process up to the end of its first invoke. caches: "empty" or "filled"."""

    caches: str
    phases: tuple[Phase, ...]
    total_s: float


@dataclass(frozen=True)
class Roofs:
    """The most that a device was seen to do: operations a second, and bytes a second by the size of what is read.

    operations_per_s: by the kind of arithmetic, "float32", and of integer products those that the model has.
    """

    operations_per_s: dict[str, float]
    bytes_per_s: dict[int, float]

    def bandwidth(self, size_bytes: int) -> float:
        """Return the bandwidth measured at the next size that is not smaller."""
        return next((rate for size, rate in sorted(self.bytes_per_s.items()) if size >= size_bytes), self.slowest)

    def or_more(self, other: "Roofs") -> "Roofs":
        """Return the higher of two measurements of each peak."""
        rates = {kind: max(rate, other.operations_per_s[kind]) for kind, rate in self.operations_per_s.items()}
        return Roofs(rates, {size: max(rate, other.bytes_per_s[size]) for size, rate in self.bytes_per_s.items()})

    @property
    def slowest(self) -> float:
        """Return the bandwidth of the largest size."""
        return self.bytes_per_s[max(self.bytes_per_s)]


@dataclass(frozen=True)
class Work:
    """Times of something on the device or the host, and how near it comes to what the device could do.

    size_bytes: of the memory that it is given, each part once. bound: "arithmetic" or "memory", whichever alone would
    take longer; "" where neither is known. of_bound: that time over the one that it took; above 1 where the device did
    more than was measured of it before.
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
    """A launch: on behalf of which node, how often in an invoke, and its time in all.

    arithmetic: which of the roofs for operations it has; "" for none.
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
    """All nodes of an operator that run at one place, "device" or "CPU"."""

    op: str
    where: str
    nodes: int
    launches: int
    work: Work


@dataclass(frozen=True)
class NodeFacts:
    """A node. where: "device", "CPU", "constant" (computed at preparation) or "nothing" (no launch of its own).

    into: the node in whose launch this one is. launched: each launch with its work-items and macros, such as tiles.
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
    """The nodes that the CPU runs for one reason, their cost, and how to lift it."""

    reason: str
    lift: str
    ops: dict[str, int]
    nodes: tuple[Place, ...]
    ms: float
    share: float


@dataclass(frozen=True)
class Merged:
    """The nodes that one launch, or the launches of one node, computes; the first gives it its name."""

    kernel: str
    nodes: tuple[Place, ...]
    ops: tuple[str, ...]


@dataclass(frozen=True)
class Span:
    """Something that took time in an invoke, from its beginning on. lane: "host", "copies", "queue" or "device".

    op: the operator; of several the first. runs: how many iterations are folded into it.
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
    """A part of an arena: where it lies, and from which step to which it is needed."""

    name: str
    kind: str
    offset: int
    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class RegionFacts:
    """A region: how it runs, and its memory. constants: by what they are, in bytes. steps: of the plan."""

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
    """How far a tensor is from a reference. relative: to the largest magnitude of what was expected.

    steps: of its quantization. place: the node that made it.
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
    """Outputs against a reference, and layers where they were asked for. departed: the first layer that departs."""

    reference: str
    tolerance: float
    outputs: tuple[Difference, ...]
    layers: tuple[Difference, ...] = ()
    departed: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Changed:
    """A time then and now. chance, verdict: of ``litecl compare``, where single times are known."""

    name: str
    old_ms: float
    new_ms: float
    chance: float | None = None
    verdict: str = ""


@dataclass(frozen=True)
class Earlier:
    """An earlier report of the model: times of invokes and of operators then and now, and what else is not the same."""

    file: str
    date: str
    command: str
    times: tuple[Changed, ...]
    operators: tuple[Changed, ...]
    differences: tuple[str, ...]
