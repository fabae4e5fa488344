"""A listener that sums each node's time on the host."""

from collections import defaultdict

from litecl.interpreter.dataclass import dataclass


@dataclass(frozen=True)
class HostRow:
    """A node's host time over the whole trace, excluding subgraphs that it called.

    A device region is one node, ``CL_REGION``; its time includes copying and waiting for the device. node: the position
    in the subgraph as rewritten by delegates; -1 for nodes of a region that fell back to the CPU.
    """

    subgraph: int
    node: int
    op: str
    calls: int
    total_ms: float


class Trace:
    """Pass it as ``Interpreter(model, listeners=[trace])``; read ``rows`` after ``invoke``."""

    def __init__(self) -> None:
        self._calls: dict[tuple[int, int, str], int] = defaultdict(int)
        self._total_s: dict[tuple[int, int, str], float] = defaultdict(float)
        self._finished: list[tuple[float, float]] = []  # start and duration of spans that a later caller may enclose

    def ran(self, subgraph: int, node: int, op: str, start_s: float, end_s: float) -> None:
        """Record a node; the executor calls this. Nodes of a called subgraph come before their caller."""
        inside_s = 0.0
        while self._finished and self._finished[-1][0] >= start_s:
            inside_s += self._finished.pop()[1]
        self._finished.append((start_s, end_s - start_s))
        key = subgraph, node, op
        self._calls[key] += 1
        self._total_s[key] += end_s - start_s - inside_s

    def clear(self) -> None:
        """Clear the trace."""
        self._calls.clear()
        self._total_s.clear()
        self._finished.clear()

    @property
    def rows(self) -> tuple[HostRow, ...]:
        """One row per node that ran, costliest first."""
        rows = [HostRow(*key, calls, self._total_s[key] * 1e3) for key, calls in self._calls.items()]
        return tuple(sorted(rows, key=lambda row: -row.total_ms))
