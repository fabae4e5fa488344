"""Distribution of an LSTM's units to a GPU's groups."""

from collections.abc import Mapping, Sequence

from litecl.delegate.cl_op import Arg, Launch, Local
from litecl.delegate.gpu.groups import MOST_ITEMS
from litecl.delegate.gpu.target import GpuTarget
from litecl.interpreter.dataclass import dataclass

_LANES, _DEPTHS = (4, 8, 16, 32, 64), (4, 8, 16)  # work-items per unit, outputs per work-item


@dataclass(frozen=True)
class CellShare:
    """How groups share an LSTM's units: ``lanes`` work-items per unit, ``depth`` outputs per work-item.

    at_once: whether all groups are sure to run at the same time, so that they may wait for each other.
    """

    lanes: int
    depth: int
    items: int
    groups: int
    batch: int
    at_once: bool

    @property
    def units(self) -> int:
        """Units of a group."""
        return self.items // self.lanes

    @property
    def local(self) -> Local:
        """Local memory of a group: sums of four gates, and the outputs of all units."""
        return Local(16 * self.items + 4 * self.lanes * self.depth)

    @property
    def defines(self) -> dict[str, str | int | float]:
        """The macros of lstm_local.cl."""
        return {"UNITS": self.units, "ITEMS_PER_UNIT": self.lanes, "DEPTH": self.depth}

    def launch(self, args: Sequence[Arg], defines: Mapping[str, str | int | float], flops: int) -> Launch:
        """Return a launch of these groups for every batch entry."""
        size, group = (self.groups * self.items, self.batch), (self.items, 1)
        return Launch("lstm_local", "lstm_local", tuple(args), size, group, {**self.defines, **defines}, flops)


def cell_share(target: GpuTarget, units: int, batch: int) -> CellShare | None:
    """Return how a GPU computes an LSTM with its weights in registers; None if these don't suffice."""
    lanes = next((n for n in _LANES if n * _DEPTHS[-1] >= units), None)
    if lanes is None:
        return None
    depth = next(n for n in _DEPTHS if n * lanes >= units)
    items = min(MOST_ITEMS, lanes << (units - 1).bit_length())
    groups = -(-units // (items // lanes))
    share = CellShare(lanes, depth, items, groups, batch, groups * batch <= _surely_at_once(target))
    return share if target.has_room(items, share.local) else None


def _surely_at_once(target: GpuTarget) -> int:
    """Return how many groups of a kernel are sure to run at the same time.

    One for every other compute unit, so that two models side by side can't deadlock. 0 for other vendors: a runtime
    that computes on a CPU doesn't schedule like a GPU.
    """
    return target.compute_units // 2 if target.gpu.vendor in ("nvidia", "amd", "intel") else 0
