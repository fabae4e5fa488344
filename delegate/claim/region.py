"""The outcome of partitioning a subgraph: its regions, and reasons for the other nodes."""

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.run.variables import VariableKey

FOLDED = "constant: computed at preparation"
"""The reason of nodes whose results are known."""


@dataclass(frozen=True)
class RegionVariable:
    """A variable that a region uses. before: the tensor of its value when the region begins, None if no node reads it;
    after: the tensor of its value when the region ends, None if unchanged.
    """

    key: VariableKey
    before: int | None
    after: int | None


@dataclass(frozen=True)
class Region:
    """Nodes of one subgraph that run on the device together. nodes: their positions in execution order.

    variables: the region's variables in the state store, which are neither inputs nor outputs.
    """

    subgraph: int
    nodes: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    variables: tuple[RegionVariable, ...] = ()


@dataclass(frozen=True)
class Partitioning:
    """The regions of one subgraph, and the reason why each other node is in none."""

    regions: tuple[Region, ...]
    reasons: dict[int, str]
    order: tuple[tuple[int, ...], ...]  # runs of nodes in a valid order; the nodes of a region are one run
