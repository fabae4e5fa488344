"""Helpers: threads of this process that share the work of regions (kernels_cl/crew.c), one crew for all of them."""

import ctypes
import os

from litecl.delegate.backend import fork
from litecl.delegate.native.library import Libraries
from litecl.interpreter.dataclass import dataclass

_hiring = fork.Section(needs_runtime=False)
_crew: "Crew | None" = None


@dataclass(frozen=True)
class Crew:
    """The functions of the crew's library. door, take, lead: addresses, for a region's function."""

    library: ctypes.CDLL
    door: int
    take: int
    lead: int

    def hire(self, count: int) -> int:
        """Start threads up to a number, and return their number: fewer if the system refuses.

        One thread at a time does: calls of the library let others run.
        """
        with _hiring.lock:
            return int(self.library.hire(count))


def crew(libraries: Libraries) -> Crew:
    """Return the crew of this process. Raises KernelBuildError."""
    global _crew
    with _hiring.lock:
        if _crew is None:
            library = libraries.crew()
            library.door.restype = ctypes.c_void_p
            take, lead = (ctypes.cast(library[name], ctypes.c_void_p).value or 0 for name in ("take", "lead"))
            made = Crew(library, library.door(), take, lead)
            _crew = _crew or made  # of a signal handler, which may have come in between
        return _crew


def _forget() -> None:
    """In a child of fork the threads do not exist: they are hired again when a region is next bound or run."""
    if _crew is not None:
        _crew.library.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
