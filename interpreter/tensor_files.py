"""Arrays in files: users' own, and tensors in numpy's ``.npz`` with the type of each."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from litecl.interpreter.errors import LiteclError, ModelError, brief
from litecl.interpreter.graph import Array
from litecl.interpreter.regular_files import open_regular
from litecl.interpreter.whole_files import whole_file

_VERSION = 1
_HEAD = "tensors"  # the member that describes the others


@contextmanager
def opened(path: str | PathLike[str], expected: str, **options: Any) -> Iterator[Any]:
    """Open a user's .npy or .npz file: an array, or an archive whose members are read within.

    expected: the kind of file, for errors. options: for ``numpy.load``. Raises ModelError for another kind of file, a
    damaged one, one with Python objects, or one that doesn't fit in memory; OSError if it cannot be read.
    """
    try:
        arrays = np.load(path, allow_pickle=False, **options)
        with arrays if isinstance(arrays, np.lib.npyio.NpzFile) else nullcontext():
            yield arrays
    except (LiteclError, OSError):
        raise
    except MemoryError as error:
        raise ModelError(f"{fspath(path)}: {error}") from error
    except Exception as error:  # damaged bytes: whatever zipfile, zlib and numpy's header parser raise
        if "Object arrays" in str(error):  # numpy suggests loading them unsafely
            raise ModelError(f"{fspath(path)}: an array of Python objects, expected numbers") from error
        why = "" if "pickle" in str(error) else f": {brief(str(error))}"
        raise ModelError(f"{fspath(path)}: not {expected}{why}") from error


def write(path: str | PathLike[str], arrays: Mapping[str, Array]) -> None:
    """Write arrays of numbers. Raises OSError."""
    named = {name: {"dtype": array.dtype.name, "shape": array.shape} for name, array in arrays.items()}
    head = json.dumps({"version": _VERSION, "tensors": named}).encode()
    contents = [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in arrays.values()]
    members: dict[str, Any] = {_HEAD: np.frombuffer(head, np.uint8)}
    members |= {str(i): content for i, content in enumerate(contents)}
    with whole_file(Path(path)) as file:
        np.savez(file, **members)


def read(path: str | PathLike[str]) -> dict[str, Array]:
    """Read a file of ``write``. Raises ModelError for another kind or a damaged file, and FileNotFoundError."""
    try:
        with open_regular(path) as file, np.load(file, allow_pickle=False) as members:
            head = json.loads(bytes(members[_HEAD]))
            if head["version"] != _VERSION:
                raise ModelError(f"{fspath(path)}: tensors of version {head['version']}, expected {_VERSION}")
            named = head["tensors"].items()
            return {
                name: members[str(i)].view(np.dtype(row["dtype"])).reshape(row["shape"])
                for i, (name, row) in enumerate(named)
            }
    except (FileNotFoundError, ModelError):
        raise
    except Exception as error:  # as in ``opened``
        fault = f"{type(error).__name__}: {error}"
        raise ModelError(f"{path!s}: no tensors that can be read ({fault})") from error
