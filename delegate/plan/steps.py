"""The elements of a plan: launches in order, with loops and branches around them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from litecl.delegate.cl_op import Const, Launch, Operand, Scratch
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.run.variables import VariableKey

Swapped = tuple[Operand, Operand]
"""A variable in two sets: where an iteration reads it, and where it writes it."""

# Trip count up to which one kernel may run a loop even if the invoke's time is limited.
_SURELY_SHORT = 64


@dataclass(frozen=True, eq=False)
class Work:
    """A launch, and its node (a position in its subgraph)."""

    node: int
    launch: Launch
    subgraph: int = 0

    @property
    def size_bytes(self) -> int:
        """Return the size of all distinct memory arguments: a lower bound on the bytes that the launch moves."""
        return sum(arg.size_bytes for arg in {*self.launch.args} if isinstance(arg, Operand | Const | Scratch))


@dataclass(frozen=True, eq=False)
class Branch:
    """Runs ``then`` if the predicate (a boolean on the device) holds, else ``otherwise``."""

    node: int
    subgraph: int
    predicate: Operand
    then: "Steps"
    otherwise: "Steps"


@dataclass(frozen=True, eq=False)
class Loop:
    """Runs ``condition``, and as long as the predicate holds then ``body`` and ``condition`` again.

    swapped: the variables that iterations compute anew, in two sets (``Slot``) that are swapped after every iteration.
    trips: the trip count if the model determines it; the condition is then unused. number: of the loop within its plan
    (``numbered``).
    """

    node: int
    subgraph: int
    condition: "Steps"
    predicate: Operand
    body: "Steps"
    swapped: Sequence[Swapped]
    trips: int | None
    number: int = 0


@dataclass(frozen=True, eq=False)
class Within:
    """The position of an operand in another's memory: ``offset`` bytes from its beginning."""

    whole: Operand
    offset: int = 0


def place_of(operand: Operand, aliases: Mapping[Operand, Within]) -> tuple[Operand, int]:
    """Follow aliases to the operand with memory of its own; return it and the offset in bytes."""
    offset = 0
    while operand in aliases:
        within = aliases[operand]
        operand, offset = within.whole, offset + within.offset
    return operand, offset


@dataclass(frozen=True, eq=False)
class Slot:
    """The position of a loop variable: ``offset`` bytes into one of the two halves of ``sets``.

    set_bytes: the size of each set. written: False for the set that an iteration reads, True for the one that it
    writes. loop: its number; the region itself counts as one more loop, whose iterations are runs and whose variables
    are states.
    """

    sets: Scratch
    set_bytes: int
    offset: int
    loop: int
    written: bool


@dataclass(frozen=True, eq=False)
class State:
    """A variable of the state store. before: its old value. after: its new value, None if the region doesn't write it.

    before and after lie in two sets, like a loop's, which are swapped after every successful run. read: whether the
    region reads the variable before it writes it.
    """

    key: VariableKey
    before: Operand
    after: Operand | None
    read: bool


@dataclass(frozen=True, eq=False)
class OneGroup:
    """Steps that one work-group of a GPU runs in one launch (kernels_cl/region.cl)."""

    steps: "Steps"


Part = Work | Branch | Loop | OneGroup
Steps = Sequence[Part]


def parts_of(steps: Steps) -> Iterator[Part]:
    """Yield every part in order, each before those inside it."""
    for part in steps:
        yield part
        for inner in inside(part):
            yield from parts_of(inner)


def works_of(steps: Steps) -> Iterator[Work]:
    """Yield every launch once, in order."""
    return (part for part in parts_of(steps) if isinstance(part, Work))


def control_of(steps: Steps) -> Iterator[Branch | Loop]:
    """Yield every branch and loop, outer ones first."""
    return (part for part in parts_of(steps) if isinstance(part, Branch | Loop))


def groups_of(steps: Steps) -> Iterator[OneGroup]:
    """Yield every part that one group runs."""
    return (part for part in parts_of(steps) if isinstance(part, OneGroup))


def inside(part: Part) -> tuple[Steps, ...]:
    """Return a part's sequences of steps."""
    if isinstance(part, Work):
        return ()
    if isinstance(part, OneGroup):
        return (part.steps,)
    return (part.then, part.otherwise) if isinstance(part, Branch) else (part.condition, part.body)


def mapped(part: Part, change: Callable[[Steps], Steps]) -> Part:
    """Return a part with its sequences of steps changed."""
    if isinstance(part, Work):
        return part
    if isinstance(part, Loop):
        return replace(part, condition=change(part.condition), body=change(part.body))
    if isinstance(part, Branch):
        return replace(part, then=change(part.then), otherwise=change(part.otherwise))
    return OneGroup(change(part.steps))


def numbered(steps: Steps) -> Steps:
    """Return steps with their loops numbered, outer ones first."""
    numbers = count()

    def number(part: Part) -> Part:
        own = replace(part, number=next(numbers)) if isinstance(part, Loop) else part
        return mapped(own, lambda inner: [number(each) for each in inner])

    return [number(part) for part in steps]


def may_be_long(steps: Steps) -> bool:
    """Return whether any loop has an unknown or large trip count, so that a time limit may have to end it."""
    return any(loop.trips is None or loop.trips > _SURELY_SHORT for loop in control_of(steps) if isinstance(loop, Loop))
