"""What ran where, and why: the delegation report."""

import io
import json
from collections import Counter
from dataclasses import asdict, dataclass, field

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class NodeRow:
    """One node of the model as loaded. ``reason`` says why the CPU runs it, or why nobody needs to."""

    subgraph: int
    node: int
    op: str
    claimed: bool
    partition: int | None
    reason: str


@dataclass(frozen=True)
class PartitionRow:
    """One region on the device: its nodes, launches an invoke, arena size and arithmetic operations.

    Launches and operations within a loop count once. loops: how each loop runs, in words.
    """

    partition: int
    subgraph: int
    nodes: tuple[int, ...]
    launches: int
    arena_bytes: int
    constant_bytes: int
    flops: int
    loops: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelRow:
    """Device time of one launch in the last invoke, from its event (only with ``profile=True``)."""

    partition: int
    node: int
    kernel: str
    entry: str
    duration_ms: float
    flops: int
    subgraph: int = 0


@dataclass
class Counters:
    """What the last invoke cost. Counted by the runner as it goes."""

    kernel_launches: int = 0
    host_syncs: int = 0
    bytes_to_device: int = 0
    bytes_to_host: int = 0
    invocation: int = field(default=-1, repr=False)

    def begin(self, invocation: int) -> None:
        """Starts from zero if this is another invoke than the one last counted."""
        if invocation != self.invocation:
            self.kernel_launches = self.host_syncs = self.bytes_to_device = self.bytes_to_host = 0
            self.invocation = invocation


@dataclass(frozen=True)
class DelegationReport:
    """Rows for every node and partition, and what the last invoke cost.

    build_s: seconds spent building programs and packing weights. cache_hits: programs loaded from the binary cache.
    failures: device failures that sent a region back to the CPU.
    """

    device: str
    nodes: tuple[NodeRow, ...]
    partitions: tuple[PartitionRow, ...]
    counters: Counters
    build_s: float
    cache_hits: int
    kernels: tuple[KernelRow, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def claimed(self) -> int:
        """Number of nodes that the device runs."""
        return sum(row.claimed for row in self.nodes)

    def to_json(self) -> str:
        """The whole report as a JSON object."""
        data = asdict(self)
        data["counters"].pop("invocation")
        return json.dumps(data)

    def __str__(self) -> str:
        out = io.StringIO()
        console = Console(file=out, width=120)
        cost = self.counters
        console.print(
            f"{self.claimed} of {len(self.nodes)} nodes in {len(self.partitions)} partitions on {self.device}; "
            f"built in {self.build_s:.2f} s, {self.cache_hits} programs from the cache"
        )
        console.print(
            f"last invoke: {cost.kernel_launches} launches, {cost.host_syncs} host syncs, "
            f"{cost.bytes_to_device} bytes to the device, {cost.bytes_to_host} bytes to the host"
        )
        for loop in (loop for row in self.partitions for loop in row.loops):
            console.print(loop)
        for failure in self.failures:
            console.print(f"device failure: {failure}")
        console.print(self._table())
        return out.getvalue()

    def _table(self) -> Table:
        """Nodes counted by operator, place and reason."""
        rows = Counter((row.op, row.claimed, row.reason) for row in self.nodes)
        table = Table("operator", "nodes", "where", "reason")
        for (op, claimed, reason), count in sorted(rows.items(), key=lambda item: (-item[1], item[0])):
            table.add_row(op, str(count), "device" if claimed else "CPU", reason)
        return table
