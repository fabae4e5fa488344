"""Tables and memory layouts shared by the host and a region's kernel (kernels_cl/region.cl)."""

from enum import IntEnum

from litecl.interpreter.dataclass import dataclass


class Control(IntEnum):
    """Codes of control entries. The code of a launch is the index of its function.

    BLOCK: starts a block that ends before entry ``to``. JUMP: jump to ``to``. UNLESS, WHILE: jump if the boolean that
    the first argument points to is false, or true. REPEAT: jump until ``loop`` has run ``times``. SWAP: swap the loop's
    two sets of variables. START: reset the loop's count. COUNT: increment it; the run ends if it is ``times`` already.
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

    size_0, size_1, size_2: a launch's global size. first_arg: the index of the first argument. place: the index among
    the entries that all workers reach.
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
    """The times of an entry, by the processor's cycle counter: its first start, the total cycles of its measured runs,
    the number of runs, and the number of measured ones.
    """

    FIRST = 0
    CYCLES = 1
    RUNS = 2
    MEASURED = 3


class LaunchLine(IntEnum):
    """Cache lines that announce a block's launch to waiting workers. NUMBER is odd while the others are written."""

    NUMBER = 0
    ENTRY = 1
    FIRST = 2
    TICKET = 3
    DONE = 4


class NativeCall(IntEnum):
    """The arguments of a region's function (kernels_cl/region_native.h), in units of 8 bytes: addresses, then numbers.

    FUNCTIONS: the table of functions' addresses. DOOR, TAKE, LEAD: the crew's (kernels_cl/crew.c), and ALONG: the
    function that its helpers call; unused with one worker. TIMES: the index of the step times after PROGRESS. NUMBER:
    the run's, which the crew writes. GATE: the gate before the GIL (kernels_cl/gate.h), or 0. MEASURED: whether runs
    measure if helpers pay. RUNS, ALONE, TOGETHER: their measurements (kernels_cl/region_native.h). REGION: the function
    itself (kernels_cl/python.c).
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
    REGION = 20


class Shift(IntEnum):
    """The index of an offset's addend: 0, the distance to the constants, or, from SETS on, to a loop's two sets."""

    NONE = 0
    CONSTANTS = 1
    SETS = 2


class Count(IntEnum):
    """ENDLESS: the number of a loop that ran too often plus 1, or 0. LOOPS: loops' iteration counts from here on."""

    ENDLESS = 0
    LOOPS = 1


class RegionSize(IntEnum):
    """LINE_BYTES: the size of a cache line, one per counter. OFFSET_BITS: the bits of an address below its shift."""

    LINE_BYTES = 64
    OFFSET_BITS = 48


class LoopFlag(IntEnum):
    """The state of a queued loop on the device (kernels_cl/control.cl): whether it continues, and its iterations."""

    GOES_ON = 0
    COUNT = 1


class BranchFlag(IntEnum):
    """The state of a queued branch on the device: whether each side runs."""

    THEN = 0
    OTHERWISE = 1
