"""The plan of a region: steps over operands, with assigned memory."""

from collections.abc import Mapping
from dataclasses import field

from litecl.delegate.claim.region import Region
from litecl.delegate.launch import Operand
from litecl.delegate.plan.memory import Arena, Usage
from litecl.delegate.plan.steps import Branch, Loop, Slot, State, Steps, Within, Work, control_of, place_of
from litecl.interpreter.dataclass import dataclass


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a runner needs to run a region.

    ``works`` are all launches of ``steps``. ``aliases`` are the positions of operands without memory of their own.
    ``slots`` are the positions of loop variables and states that lie in their loop's sets. ``lstms`` are the loops
    (subgraph and node) that run as an LSTM. ``arena`` has the offsets of the sets and of all other operands and scratch
    except constants; ``usages`` are their lifetimes. ``merged`` maps nodes (subgraph and position) that are fused into
    another one to that one. ``overwritten`` are the region's inputs whose memory a run writes to; ``apart`` are those
    of their operands that are not in the arena: the caller of the region provides the memory.
    """

    region: Region
    steps: Steps
    works: tuple[Work, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    states: tuple[State, ...]
    aliases: Mapping[Operand, Within]
    slots: Mapping[Operand, Slot]
    lstms: tuple[tuple[int, int], ...]
    arena: Arena
    usages: tuple[Usage, ...] = ()
    merged: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    overwritten: frozenset[int] = frozenset()
    apart: frozenset[Operand] = frozenset()

    @property
    def flops(self) -> int:
        """The arithmetic operations of all launches, counting a loop's body once."""
        return sum(work.launch.flops for work in self.works)

    @property
    def has_kernels_of_users(self) -> bool:
        """Return whether it launches users' kernels."""
        return any(work.launch.is_users for work in self.works)

    @property
    def control(self) -> tuple[Branch | Loop, ...]:
        """Every branch and loop."""
        return tuple(control_of(self.steps))

    @property
    def loops(self) -> tuple[Loop, ...]:
        """Every loop, by number."""
        return tuple(part for part in self.control if isinstance(part, Loop))

    @property
    def turns(self) -> int:
        """The loop number that ``slots`` use for the states' two sets."""
        return len(self.loops)

    @property
    def predicates(self) -> tuple[Operand, ...]:
        """The predicates of loops and branches."""
        return tuple(part.predicate for part in self.control)

    def place(self, operand: Operand) -> tuple[Operand, int]:
        """Return the operand whose memory contains this one, and the offset in bytes."""
        return place_of(operand, self.aliases)

    def root(self, operand: Operand) -> Operand:
        """Return the operand whose memory contains this one."""
        return self.place(operand)[0]
