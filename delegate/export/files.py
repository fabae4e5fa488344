"""The files of an export, written together: a folder gets all of them or none, and no file of the user's is lost."""

import hashlib
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from litecl.delegate.export.wasm_sections import custom_sections
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.regular_files import open_regular
from litecl.interpreter.whole_files import whole_folder

MARK = "made by litecl"  # by which an export knows an earlier one's files: in the first line of a text
SECTION = "litecl"  # of a module of WebAssembly, which has the mark
UNSEALED = f"{MARK}: {'0' * 64}"  # in a library, whose digest ``sealed`` puts there
_SEAL = re.compile(rf"{MARK}: ([0-9a-f]{{64}})".encode())
_LINE_BYTES = 4096


def require_free(folder: Path, names: Collection[str]) -> None:
    """Raise DelegateError if a file of the folder has one of these names and litecl did not write it; OSError if it
    cannot be read.
    """
    for name in names:
        path = folder / name
        if path.exists() and not _is_own(path):
            raise DelegateError(f"{path} is not a file that litecl made: export into another folder, or remove it")


def _is_own(path: Path) -> bool:
    if not path.is_file():
        return False
    with open_regular(path) as file:
        if path.suffix == ".wasm":
            sections = custom_sections(file.read())
            return any(name == SECTION.encode() and MARK.encode() in content for name, content in sections)
        return _is_sealed(file.read()) if path.suffix == ".a" else MARK.encode() in file.readline(_LINE_BYTES)


def sealed(content: bytes) -> bytes:
    """Return a file with its digest in place of UNSEALED: one with other content, such as a library that has a user's
    objects too, is then not taken for an export.
    """
    return content.replace(UNSEALED.encode(), f"{MARK}: {hashlib.sha256(content).hexdigest()}".encode())


def _is_sealed(content: bytes) -> bool:
    unsealed = _SEAL.sub(UNSEALED.encode(), content)
    return _SEAL.findall(content) == [hashlib.sha256(unsealed).hexdigest().encode()]


def write(folder: Path, files: Mapping[str, bytes], examples: Collection[str]) -> list[str]:
    """Write files by name; make the folder if it is missing. examples: those that stay as they are if they exist, as
    their user may have changed them. Return the names of these.

    Raises OSError, and DelegateError as ``require_free`` does; the earlier files then stay as they were.
    """
    require_free(folder, [name for name in files if name not in examples])  # compiling takes time, others write too
    kept = [name for name in examples if (folder / name).exists()]
    with whole_folder(folder) as new:
        for name, content in files.items():
            if name not in kept:
                new(name).write(content)
    return kept
