"""A whole plan as one kernel: the functions that it calls, and the tables that it executes. Pure data, no OpenCL.

Launching a kernel takes microseconds, and waking a second thread for it tens of microseconds, as long as many operators
run. So a CPU runs a region as one launch of ``kernels_cl/region.cl``, whose workers stay awake from the first operator
to the last. The program depends on the kernels of a region, not on shapes, so similar models share it in the cache.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import field, replace

import numpy as np

from litecl.delegate.cl_op import Arg, Launch, Local, Operand
from litecl.delegate.launch import is_users
from litecl.delegate.plan.region_tables import Control, Entry
from litecl.delegate.plan.steps import Branch, Loop, Part, Steps, Work, works_of
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array

_SCALARS = {
    np.dtype(np.int32): "int",
    np.dtype(np.float32): "float",
    np.dtype(np.int64): "long",
    np.dtype(np.uint8): "uchar",
    np.dtype(np.int8): "char",
    np.dtype(np.int16): "short",
}


_LOCAL = "__local void *"
_MOST = int(np.iinfo(np.int32).max)  # the largest iteration count


@dataclass(frozen=True)
class Variant:
    """A kernel file built with one set of macros; ``suffix`` makes its functions' names unique."""

    kernel: str
    defines: tuple[tuple[str, str | int | float], ...]

    @property
    def suffix(self) -> str:
        """A hash of the kernel's name and macros."""
        return hashlib.sha256(repr((self.kernel, self.defines)).encode()).hexdigest()[:12]

    @property
    def is_users(self) -> bool:
        """True if the kernel is a user's, which may use OpenCL's work-item functions (kernels_cl/users.h)."""
        return is_users(self.kernel)

    @property
    def macros(self) -> dict[str, str | int | float]:
        """The macros to compile it with as part of a region."""
        return dict(self.defines) | {"LITECL_REGION": 1} | ({"LITECL_USERS": 1} if self.is_users else {})


@dataclass(frozen=True)
class Function:
    """A function of a variant. parameters: their C types, None for a pointer to global memory."""

    variant: Variant
    entry: str
    parameters: tuple[str | None, ...]

    @property
    def name(self) -> str:
        """The name of the wrapper that unpacks arguments and calls this function."""
        return f"call_{self.entry}_{self.variant.suffix}"

    @property
    def caller(self) -> str:
        """The wrapper's source, appended to the kernel file so that both are compiled with the same types."""
        count = len(self.parameters)
        given = ["item_0", "item_1", "item_2"]
        given += [f"SCALAR_int({count + d})" for d in range(3)] if self.variant.is_users else []
        given += [_unpacked(t, i) for i, t in enumerate(self.parameters)]
        return f"CALLER({self.name}) {{ {self.entry}({', '.join(given)}); }}\n"

    @property
    def guarded(self) -> str:
        """The source of a kernel, appended to the file, that runs the function only if flags[flag] is not 0."""
        types = ["__global void *" if t is None else t for t in self.parameters]
        declared = [f"{t} a{i}" for i, t in enumerate(types)]
        called = ", ".join(f"a{i}" for i in range(len(types)))
        return (
            f"__kernel void guarded_{self.entry}(__global const int *flags, int flag, {', '.join(declared)}) "
            f"{{ if (flags[flag]) {self.entry}({called}); }}\n"
        )


@dataclass(frozen=True, eq=False)
class RegionProgram:
    """The functions of a region, its entries and the arguments of its launches, in region.cl's layout.

    places: the number of entries that all workers reach, whose progress is counted. launches: the launches among the
    entries, by position. own: the indices of the shifts of buffers that are extra arguments of the kernel.
    """

    functions: tuple[Function, ...]
    works: tuple[Entry, ...]
    args: Array
    places: int
    launches: Mapping[int, Work] = field(default_factory=dict)
    own: tuple[int, ...] = ()

    @property
    def variants(self) -> dict[Variant, str]:
        """The distinct variants to compile, with the callers to append to their source."""
        callers: dict[Variant, str] = {}
        for function in self.functions:
            callers[function.variant] = callers.get(function.variant, "") + function.caller
        return callers

    @property
    def is_straight(self) -> bool:
        """True if it has only launches, without control flow."""
        return len(self.launches) == len(self.works)

    @property
    def functions_macro(self) -> str:
        """The macros from which region.cl generates prototypes, calls, and extra arguments."""
        functions = "#define FUNCTIONS(F) " + " ".join(f"F({i}, {f.name})" for i, f in enumerate(self.functions)) + "\n"
        if not self.own:
            return functions
        return functions + "#define OWN(F) " + " ".join(f"F({i}, {shift})" for i, shift in enumerate(self.own)) + "\n"


def region_program(
    steps: Steps, address: Callable[[Arg], int], most_iterations: int | None = None, *, has_local: bool = False
) -> RegionProgram | None:
    """Return the program that runs steps one after another; None if a launch needs barriers, local memory without
    ``has_local``, or a parameter of an unsupported type.

    address: of every argument but scalars and local memory, as region.cl's POINTER reads it. most_iterations: the limit
    each time a loop runs. has_local: whether functions can use local memory.
    """
    tables = _Tables(address, most_iterations)
    launches = [work.launch for work in works_of(steps)]
    if any(launch.waits or (launch.local_bytes and not has_local) or not function_of(launch) for launch in launches):
        return None
    for part in steps:
        tables.outermost(part)
    args = np.array(tables.args, np.uint64)
    return RegionProgram(tuple(tables.functions), tuple(tables.works), args, tables.places, tables.launches)


class _Tables:
    """The two tables under construction. places: the number of entries whose progress region.cl counts."""

    def __init__(self, address: Callable[[Arg], int], most_iterations: int | None) -> None:
        self._address, self._most = address, most_iterations
        self.functions: dict[Function, int] = {}
        self.works: list[Entry] = []
        self.args: list[int] = []
        self.places = 0
        self.launches: dict[int, Work] = {}

    def outermost(self, part: Part) -> None:
        """Add a part that all workers reach."""
        if isinstance(part, Work):
            self._work(part)
        else:
            block = self._control(Control.BLOCK)
            self._part(part)
            self._land(block)
        self.places += 1

    def _part(self, part: Part) -> None:
        if isinstance(part, Work):
            self._work(part)
        elif isinstance(part, Branch):
            self._branch(part)
        elif isinstance(part, Loop):
            self._loop(part)
        else:
            self._steps(part.steps)

    def _steps(self, steps: Steps) -> None:
        for part in steps:
            self._part(part)

    def _branch(self, branch: Branch) -> None:
        unless = self._under(Control.UNLESS, branch.predicate)
        self._steps(branch.then)
        over = self._control(Control.JUMP)
        self._land(unless)
        self._steps(branch.otherwise)
        self._land(over)

    def _loop(self, loop: Loop) -> None:
        """Add a loop: the body, then a branch back by trip count or, if that is unknown, by the condition."""
        trips = loop.trips if loop.trips is not None and loop.trips <= _MOST else None
        counts = trips is not None or self._most is not None
        if counts:
            self._control(Control.START, loop=loop.number)
        if trips is None:
            first = self._control(Control.JUMP)
            start = self._body(loop, counts)
            self._land(first)
            self._steps(loop.condition)
            self._under(Control.WHILE, loop.predicate, start)
        elif trips:
            self._control(Control.REPEAT, to=self._body(loop, counts), loop=loop.number, times=trips)

    def _body(self, loop: Loop, counts: bool) -> int:
        """Add one iteration; return where it starts."""
        start = len(self.works)
        if counts:
            times = _MOST if self._most is None else self._most
            self._control(Control.COUNT, loop=loop.number, times=times)
        self._steps(loop.body)
        if loop.swapped:
            self._control(Control.SWAP, loop=loop.number)
        return start

    def _work(self, work: Work) -> None:
        launch, function = work.launch, function_of(work.launch)
        assert function is not None
        self.launches[len(self.works)] = work
        case = self.functions.setdefault(function, len(self.functions))
        x, y, z = [*launch.global_size, 1, 1][:3]
        self.works.append(Entry(case, x, y, z, first_arg=len(self.args), place=self.places))
        self.args += map(self._packed, launch.args)
        self.args += (x, y, z) if function.variant.is_users else ()

    def _packed(self, arg: Arg) -> int:
        """Pack an argument for region.h; local memory is passed by its size."""
        if isinstance(arg, Local):
            return arg.size_bytes
        return _bits(arg) if isinstance(arg, np.generic) else self._address(arg)

    def _control(self, code: Control, *, to: int = 0, loop: int = 0, times: int = 0) -> int:
        """Add an entry of control flow; return its position."""
        entry = Entry(code, to=to, loop=loop, times=times, first_arg=len(self.args), place=self.places)
        self.works.append(entry)
        return len(self.works) - 1

    def _under(self, code: Control, predicate: Operand, to: int = 0) -> int:
        """Add an entry that jumps depending on the predicate; return its position."""
        entry = self._control(code, to=to)
        self.args.append(self._address(predicate))
        return entry

    def _land(self, entry: int) -> None:
        """Make an entry jump to the current end of the table."""
        self.works[entry] = replace(self.works[entry], to=len(self.works))


def function_of(launch: Launch) -> Function | None:
    """Return the function that a launch calls; None if a parameter's type can't be passed."""
    scalars = [arg.dtype for arg in launch.args if isinstance(arg, np.generic)]
    if any(dtype not in _SCALARS for dtype in scalars):
        return None
    parameters = tuple(map(_type, launch.args))
    return Function(Variant(launch.kernel, tuple(sorted(launch.defines.items()))), launch.entry, parameters)


def _type(arg: Arg) -> str | None:
    """Return the C type of a parameter; None for a pointer to global memory."""
    if isinstance(arg, Local):
        return _LOCAL
    return _SCALARS[arg.dtype] if isinstance(arg, np.generic) else None


def _unpacked(kind: str | None, i: int) -> str:
    """Return the expression that reads a caller's i-th argument."""
    if kind is None:
        return f"POINTER({i})"
    return f"LOCAL_MEMORY({i})" if kind == _LOCAL else f"SCALAR_{kind}({i})"


def _bits(scalar: np.generic) -> int:
    """Return a scalar's bits, zero-extended."""
    return int.from_bytes(scalar.tobytes(), "little")
