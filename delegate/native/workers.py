"""Helpers: threads that share the work of regions, one crew per process (kernels_cl/crew.c)."""

import ctypes
import os

from litecl.delegate.backend import fork
from litecl.delegate.native.library import Libraries
from litecl.interpreter.dataclass import dataclass

_hiring = fork.Section(needs_runtime=False)
_crew: "Crew | None" = None


@dataclass(frozen=True)
class Crew:
    """The crew's library. door, take, lead: addresses that a region's function needs."""

    library: ctypes.CDLL
    door: int
    take: int
    lead: int

    def hire(self, count: int) -> int:
        """Start helpers until there are ``count``; return their number, which is lower if the system refuses.

        Locked, as a call of the library releases the GIL.
        """
        with _hiring.lock:
            return int(self.library.hire(count))


def crew(libraries: Libraries) -> Crew:
    """Return this process's crew. Raises KernelBuildError."""
    global _crew
    with _hiring.lock:
        if _crew is None:
            library = libraries.crew()
            library.door.restype = ctypes.c_void_p
            take, lead = (ctypes.cast(library[name], ctypes.c_void_p).value or 0 for name in ("take", "lead"))
            new = Crew(library, library.door(), take, lead)
            _crew = _crew or new  # a signal handler may have set it meanwhile
        return _crew


def _forget() -> None:
    """Reset the crew in a child of fork, which has no helpers; the next region bound or run hires them again."""
    if _crew is not None:
        _crew.library.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
