"""A whole plan as one kernel: which functions it calls, and the tables that it walks through. Pure data, no OpenCL.

Launching a kernel costs microseconds and putting a second thread to work on it tens of them, which is as long as many
operators take. So a CPU device gets a region as one launch of ``kernels_cl/region.cl``, whose workers stay awake from
the first operator to the last. The program depends on which kernels a region uses, not on their shapes, so models of
one kind share it in the cache.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from litecl.delegate.cl_op import Arg, Launch
from litecl.interpreter.graph import Array

_SCALARS = {
    np.dtype(np.int32): "int",
    np.dtype(np.float32): "float",
    np.dtype(np.int64): "long",
    np.dtype(np.uint8): "uchar",
    np.dtype(np.int8): "char",
}


@dataclass(frozen=True)
class Variant:
    """A kernel file built with one set of macros; ``suffix`` keeps its functions apart from those of other variants."""

    kernel: str
    defines: tuple[tuple[str, str | int | float], ...]

    @property
    def suffix(self) -> str:
        """A name that follows from the macros."""
        return hashlib.sha256(repr((self.kernel, self.defines)).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Function:
    """One entry of a variant, with the types of its parameters: None for a pointer, a C type for a scalar."""

    variant: Variant
    entry: str
    parameters: tuple[str | None, ...]

    @property
    def name(self) -> str:
        """The name, in the linked program, of the function that unpacks arguments and calls this one."""
        return f"call_{self.entry}_{self.variant.suffix}"

    @property
    def caller(self) -> str:
        """That function, to stand behind the kernel file: so both sides of the linker see the same types."""
        given = ["item_0", "item_1", "item_2"]
        given += [f"POINTER({i})" if t is None else f"SCALAR_{t}({i})" for i, t in enumerate(self.parameters)]
        return f"CALLER({self.name}) {{ {self.entry}({', '.join(given)}); }}\n"


@dataclass(frozen=True, eq=False)
class RegionProgram:
    """The functions of a region and its two tables, in region.cl's layout."""

    functions: tuple[Function, ...]
    works: Array
    args: Array

    @property
    def variants(self) -> dict[Variant, str]:
        """What has to be compiled, each once, and what is to stand behind its source."""
        callers: dict[Variant, str] = {}
        for function in self.functions:
            callers[function.variant] = callers.get(function.variant, "") + function.caller
        return callers

    @property
    def functions_macro(self) -> str:
        """The macro that region.cl makes prototypes and calls of."""
        return "#define FUNCTIONS(F) " + " ".join(f"F({i}, {f.name})" for i, f in enumerate(self.functions)) + "\n"


def region_program(launches: Sequence[Launch], address: Callable[[Arg], int]) -> RegionProgram | None:
    """The program that runs launches one after another, or None where a parameter has a type that it cannot pass.

    address: of everything but a scalar, as region.cl's POINTER reads it.
    """
    functions: dict[Function, int] = {}
    works: list[list[int]] = []
    args: list[int] = []
    for launch in launches:
        function = _function(launch)
        if function is None:
            return None
        case = functions.setdefault(function, len(functions))
        sizes = [*launch.global_size, 1, 1][:3]
        works.append([case, *sizes, len(args), 0])
        args += [_bits(arg) if isinstance(arg, np.generic) else address(arg) for arg in launch.args]
    return RegionProgram(tuple(functions), np.array(works, np.int32), np.array(args, np.uint64))


def _function(launch: Launch) -> Function | None:
    scalars = [arg.dtype for arg in launch.args if isinstance(arg, np.generic)]
    if any(dtype not in _SCALARS for dtype in scalars) or any(size != 1 for size in launch.local_size):
        return None
    parameters = tuple(_SCALARS[arg.dtype] if isinstance(arg, np.generic) else None for arg in launch.args)
    return Function(Variant(launch.kernel, tuple(sorted(launch.defines.items()))), launch.entry, parameters)


def _bits(scalar: np.generic) -> int:
    """A scalar's bits, widened with zeros."""
    return int.from_bytes(scalar.tobytes(), "little")
