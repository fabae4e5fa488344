"""Data shared by the host and a whole region's kernel (kernels_cl/region.cl): a plan's table, and memory layouts."""

from enum import IntEnum

from litecl.interpreter.dataclass import dataclass


class Control(IntEnum):
    """Codes of entries other than launches. The codes of launches are the numbers of their functions.

    BLOCK: everything up to the entry ``to``. JUMP: continue there. UNLESS, WHILE: do so if the boolean that the first
    argument points to is false, or true. REPEAT: do so until ``loop`` has run ``times``. SWAP: swap the loop's two sets
    of variables. START: the loop has not run yet. COUNT: it runs once more; the run ends if it has run ``times``
    already.
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
    """An entry of the table: a launch, or a step of control flow, which uses ``to``, ``loop`` and ``times``.

    size_0, size_1, size_2: a launch's work-items in three dimensions. first_arg: position of its first argument.
    place: its index among the entries that all workers reach.
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
    """The times of an entry, by the processor's counter: when it first began, how many cycles those of its runs took
    that were measured, how often it ran, and how many of these runs were measured.
    """

    FIRST = 0
    CYCLES = 1
    RUNS = 2
    MEASURED = 3


class LaunchLine(IntEnum):
    """Cache lines that tell workers waiting for a block about its launch. NUMBER is odd while others are written."""

    NUMBER = 0
    ENTRY = 1
    FIRST = 2
    TICKET = 3
    DONE = 4


class NativeCall(IntEnum):
    """The arguments of a region's function (kernels_cl/region_native.h), in units of 8 bytes: addresses, then
    numbers.

    FUNCTIONS: of the addresses of functions, by number. DOOR, TAKE, LEAD: of the crew (kernels_cl/crew.c), and ALONG:
    of what its helpers call, unless there is one worker. TIMES: where the times of steps begin behind progress. NUMBER:
    of the run, which the crew writes.
    GATE: before Python's lock (kernels_cl/gate.h), or 0. MEASURED: whether runs find out if helpers pay. RUNS, ALONE,
    TOGETHER: what they have found (kernels_cl/region_native.h).
    """

    ARENA = 0
    WORKS = 1
    ARGS = 2
    SHIFTS = 3
    COUNTS = 4
    PROGRESS = 5
    FUNCTIONS = 6
    DOOR = 7
    TAKE = 8
    LEAD = 9
    ALONG = 10
    COUNT = 11
    WORKERS = 12
    TIMES = 13
    NUMBER = 14
    GATE = 15
    MEASURED = 16
    RUNS = 17
    ALONE = 18
    TOGETHER = 19


class Shift(IntEnum):
    """The addend of an offset: nothing, the distance to the constants, or, from SETS on, to one of a loop's
    two sets.
    """

    NONE = 0
    CONSTANTS = 1
    SETS = 2


class Count(IntEnum):
    """The number of the loop that ran too often plus 1, then how often each has run."""

    ENDLESS = 0
    LOOPS = 1


class RegionSize(IntEnum):
    """LINE_BYTES: the space for a counter that one worker writes. OFFSET_BITS: the bits of an address below its
    shift.
    """

    LINE_BYTES = 64
    OFFSET_BITS = 48


class LoopFlag(IntEnum):
    """The state of a queued loop on the device (kernels_cl/control.cl): whether it continues, and its iterations."""

    GOES_ON = 0
    COUNT = 1


class BranchFlag(IntEnum):
    """The state of a queued branch on the device: whether one side runs, and whether the other does."""

    THEN = 0
    OTHERWISE = 1
