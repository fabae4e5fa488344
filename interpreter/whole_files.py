"""Files that are written in one step: whoever opens one finds it as it was, or as it is to be."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

ENDING = ".tmp"  # of a file that is not whole yet


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file, which takes the path's place at the end; if anything is raised before, the path stays as it was.

    Raises OSError. A process that is killed leaves the new file, beside the path.
    """
    temporary = path.with_name(f"litecl-{os.urandom(8).hex()}{ENDING}")
    try:  # before there is a file: Ctrl-C may come at any time
        with temporary.open("xb") as file:  # Windows removes and replaces no file that is open
            yield file
        temporary.replace(path)
    finally:
        surely(partial(temporary.unlink, missing_ok=True))


def surely(remove: Callable[[], object]) -> None:
    """Remove something that may be gone already, also if Ctrl-C comes meanwhile."""
    try:
        remove()
    except KeyboardInterrupt:
        remove()
        raise
