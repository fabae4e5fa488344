"""What the host and the kernel of a whole region (kernels_cl/region.cl) share: a plan's table, and places in memory."""

from dataclasses import dataclass
from enum import IntEnum


class Control(IntEnum):
    """Codes of entries that are no launches. The codes of launches are the numbers of their functions.

    BLOCK: everything up to the entry ``to``. JUMP: go on there. UNLESS, WHILE: do so where the truth value that the
    first argument names is false, or true. REPEAT: do so until ``loop`` has run ``times``. SWAP: the loop's two sets of
    variables change places. START: the loop has not run yet. COUNT: it runs once more, and everything ends if it has
    run ``times`` already.
    """

    BLOCK = -1
    JUMP = -2
    UNLESS = -3
    WHILE = -4
    REPEAT = -5
    SWAP = -6
    START = -7
    COUNT = -8


@dataclass(frozen=True)
class Entry:
    """An entry of the table: a launch, or a step of control flow, for which ``to``, ``loop`` and ``times`` are.

    size_0, size_1, size_2: a launch's work-items in three dimensions. first_arg: position of its first argument.
    place: of how many entries that all workers come to it is the next.
    """

    code: int
    size_0: int = 0
    size_1: int = 0
    size_2: int = 0
    to: int = 0
    loop: int = 0
    times: int = 0
    first_arg: int = 0
    place: int = 0


class StepTime(IntEnum):
    """The times of an entry, by the processor's counter: when it first began, cycles in all, and how often it ran."""

    FIRST = 0
    CYCLES = 1
    RUNS = 2


class LaunchLine(IntEnum):
    """Cache lines that tell workers which wait for a block of its launch. NUMBER is odd while others are written."""

    NUMBER = 0
    ENTRY = 1
    FIRST = 2
    TICKET = 3
    DONE = 4


class Shift(IntEnum):
    """What is added to an offset: nothing, the way to the constants, or to one of a loop's two sets from SETS on."""

    NONE = 0
    CONSTANTS = 1
    SETS = 2


class Count(IntEnum):
    """The number of the loop that ran too often plus 1, then how often each has run."""

    ENDLESS = 0
    LOOPS = 1


class RegionSize(IntEnum):
    """LINE_BYTES: what a counter takes that one worker writes. OFFSET_BITS: the bits of an address below its shift."""

    LINE_BYTES = 64
    OFFSET_BITS = 48


class LoopFlag(IntEnum):
    """What a queued loop keeps on the device (kernels_cl/control.cl): whether it goes on, and its iterations."""

    GOES_ON = 0
    COUNT = 1


class BranchFlag(IntEnum):
    """What a queued branch keeps on the device: whether the one side runs, and whether the other."""

    THEN = 0
    OTHERWISE = 1
