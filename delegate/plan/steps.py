"""The elements of a plan: launches in order, with loops and branches around them."""

from collections.abc import Iterator, Mapping, Sequence

from litecl.delegate.cl_op import Const, Launch, Operand, Scratch
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.run.variables import VariableKey

# Iterations of a loop that one kernel may run even if the time of an invoke is limited.
_SURELY_SHORT = 64


@dataclass(frozen=True, eq=False)
class Work:
    """A launch, and the node (its position in its subgraph) that it belongs to."""

    node: int
    launch: Launch
    subgraph: int = 0

    @property
    def size_bytes(self) -> int:
        """Return the bytes of all memory that the launch is given, each part once: the least that it moves."""
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

    number: of the loop within its plan. swaps: whether the loop has two sets of variables (``Slot``) that are swapped
    after every iteration. trips: the number of iterations, if the model determines it: then the condition is not
    needed.
    """

    node: int
    subgraph: int
    number: int
    condition: "Steps"
    predicate: Operand
    body: "Steps"
    swaps: bool
    trips: int | None


@dataclass(frozen=True, eq=False)
class Within:
    """The position of an operand in another's memory: ``offset`` bytes from its beginning."""

    whole: Operand
    offset: int = 0


def place_of(operand: Operand, aliases: Mapping[Operand, Within]) -> tuple[Operand, int]:
    """Return the operand with memory of its own that contains one, and the offset in bytes."""
    offset = 0
    while operand in aliases:
        within = aliases[operand]
        operand, offset = within.whole, offset + within.offset
    return operand, offset


@dataclass(frozen=True, eq=False)
class Slot:
    """The place of a loop variable: ``offset`` bytes into one of the two sets that ``sets`` consists of.

    set_bytes: of each set. written: False in the set that an iteration reads, True in the one that it writes. loop: its
    number; the whole region counts as one more loop, of which every run is an iteration, and states are its variables.
    """

    sets: Scratch
    set_bytes: int
    offset: int
    loop: int
    written: bool


@dataclass(frozen=True, eq=False)
class State:
    """A variable of the state store: where the region reads it, and where it leaves the new value, None if it has none.

    before and after lie in two sets, like a loop's, which change places after every run that ends well. read: whether
    the region reads the variable before it has written it.
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


def works_of(steps: Steps) -> Iterator[Work]:
    """Yield every launch, once each, in listed order."""
    for part in steps:
        if isinstance(part, Work):
            yield part
        else:
            for inner in inside(part):
                yield from works_of(inner)


def control_of(steps: Steps) -> Iterator[Branch | Loop]:
    """Yield every branch and loop, an inner one after the one around it."""
    for part in steps:
        if not isinstance(part, Work):
            if not isinstance(part, OneGroup):
                yield part
            for inner in inside(part):
                yield from control_of(inner)


def groups_of(steps: Steps) -> Iterator[OneGroup]:
    """Yield every part that one group runs."""
    for part in steps:
        if isinstance(part, OneGroup):
            yield part
        elif not isinstance(part, Work):
            for inner in inside(part):
                yield from groups_of(inner)


def inside(part: Branch | Loop | OneGroup) -> tuple[Steps, ...]:
    """Return the sequences that a part consists of."""
    if isinstance(part, OneGroup):
        return (part.steps,)
    return (part.then, part.otherwise) if isinstance(part, Branch) else (part.condition, part.body)


def may_be_long(steps: Steps) -> bool:
    """Return whether steps hold a loop whose iterations are unknown or many, which the time of an invoke may end."""
    return any(loop.trips is None or loop.trips > _SURELY_SHORT for loop in control_of(steps) if isinstance(loop, Loop))
