"""A pack: one file with the compiled libraries of models, for machines without a compiler (docs/native.md).

It is a ZIP file with ``manifest.json``, whose checksum is the ZIP comment, and libraries under the names that
``Libraries`` gives them. The manifest has their checksums and, for each machine, the facts about its compiler, so that
a machine without one plans the same regions and looks up the same names.
"""

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from litecl import kernels_cl
from litecl.delegate.native import features
from litecl.delegate.native.clang import OPTIONS
from litecl.delegate.native.kinds import KINDS
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.dynamic_range import DynamicRange
from litecl.interpreter.errors import DelegateError, KernelBuildError, brief
from litecl.interpreter.records import Matching, Misfit, Within, record
from litecl.interpreter.regular_files import open_regular
from litecl.interpreter.whole_files import put

_FORMAT = 2
_MANIFEST, _FOLDER = "manifest.json", "libraries"
_MOST_BYTES = 1 << 28  # of a manifest or a library, uncompressed
_WHEN = (1980, 1, 1, 0, 0, 0)  # fixed, so that packs are reproducible
# zipfile raises NotImplementedError for an unknown compression method, RuntimeError for an encrypted file, ValueError
# for a name that is not UTF-8 though it says so.
_FAULTS = (zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError, RuntimeError, EOFError, ValueError)

_Digest = Annotated[str, Matching(r"[0-9a-f]{64}", "a SHA-256")]
_Threads = Annotated[tuple[Annotated[int, Within(1, 1 << 12)], ...], Within(1)]


@dataclass(frozen=True)
class Packed:
    """The libraries for one machine.

    machine: its name (delegate/native/kinds.py). version, options, macros: the compiler's. processor: the one that it
    targets. features: the CPU features that it may use (features.py). libraries: the SHA-256 of each, by name.
    """

    machine: str
    version: str
    options: tuple[str, ...]
    processor: str
    macros: Mapping[str, str]
    features: tuple[str, ...]
    libraries: Mapping[str, _Digest]


@dataclass(frozen=True)
class _Manifest:
    """The contents of ``manifest.json``; see ``Pack``."""

    format: Literal[2]
    kernels: _Digest
    models: Mapping[str, str]
    threads: _Threads
    dynamic_range: DynamicRange
    machines: Annotated[tuple[Packed, ...], Within(1)]


@dataclass(frozen=True)
class Pack:
    """A pack with a checked manifest. digest: the manifest's SHA-256. models: file names by SHA-256.

    threads: the thread counts that regions were planned for. dynamic_range: the option of that name.
    """

    path: Path
    digest: str
    threads: tuple[int, ...] = field(compare=False)
    dynamic_range: DynamicRange = field(compare=False)
    models: Mapping[str, str] = field(compare=False)
    machines: tuple[Packed, ...] = field(compare=False)

    def library(self, packed: Packed, name: str) -> bytes | None:
        """Return a library by name, or None. Raises KernelBuildError if it is damaged."""
        if name not in packed.libraries:
            return None
        try:
            with open_regular(self.path) as packed_file, zipfile.ZipFile(packed_file) as file:
                content = _member(file, f"{_FOLDER}/{name}")
        except OSError as error:
            raise KernelBuildError(f"{self.path}: {error.strerror}") from error
        except _FAULTS as error:
            raise KernelBuildError(f"{self.path} is damaged: {name}: {error}") from error
        if (digest := _digest(content)) != packed.libraries[name]:
            raise KernelBuildError(f"{self.path} is damaged: {name}: expected {packed.libraries[name]}, got {digest}")
        return content


def read(path: Path) -> Pack:
    """Read a pack's manifest. Raises DelegateError if the file is no pack, is damaged, or is of another litecl."""
    try:
        with open_regular(path) as packed_file, zipfile.ZipFile(packed_file) as file:
            text, sealed = _member(file, _MANIFEST), file.comment.decode(errors="replace")
    except OSError as error:
        raise DelegateError(f"{path}: {error.strerror}") from error
    except _FAULTS as error:
        raise DelegateError(f"{path} is not a pack of programs, or is damaged: {error}") from error
    if (digest := _digest(text)) != sealed:
        raise DelegateError(
            f"{path} is not a pack of programs, or is damaged: expected a manifest {sealed}, got {digest}"
        )
    try:
        return _parsed(path, digest, json.loads(text))
    except (ValueError, RecursionError) as error:
        raise DelegateError(f"{path}: a manifest that litecl did not write: {error}") from error


def _member(file: zipfile.ZipFile, name: str) -> bytes:
    """Read a member of a ZIP file. Raises RuntimeError if it is too large."""
    if (size := file.getinfo(name).file_size) > _MOST_BYTES:
        raise RuntimeError(f"{name} has {size} bytes, expected at most {_MOST_BYTES}")
    return file.read(name)


def _parsed(path: Path, digest: str, data: Any) -> Pack:
    format_, kernels = (data.get(name) if isinstance(data, dict) else None for name in ("format", "kernels"))
    if isinstance(format_, int) and format_ != _FORMAT:  # checked first: the rest may differ in another format
        raise DelegateError(f"{path}: expected a pack of format {_FORMAT}, got {format_}")
    if isinstance(kernels, str) and kernels != (own := kernels_digest()):
        raise DelegateError(
            f"{path} was made by another version of litecl, with kernels {kernels[:12]}, and this one has {own[:12]}: "
            "make it again with the litecl that runs it"
        )
    manifest = record(_Manifest, data)
    for i, packed in enumerate(manifest.machines):
        _check_machine(f"machines[{i}]", packed)
    return Pack(path, digest, manifest.threads, manifest.dynamic_range, manifest.models, manifest.machines)


def _check_machine(where: str, packed: Packed) -> None:
    """Raise Misfit for an unknown kind of machine, and for features that don't match the compiler's macros: a processor
    would then get instructions that it lacks.
    """
    kind = KINDS.get(packed.machine.partition(":")[0])
    if kind is None:
        raise Misfit(f"{where}.machine: expected one of {[*KINDS]}, got {brief(repr(packed.machine))}")
    asked = [name for name in features.known(kind.architecture) if name in packed.macros]
    missed = set(asked) - set(packed.features) if kind.system != "darwin" else ()  # see ``packing.target``
    if missed or (unknown := set(packed.features) - set(asked)):
        raise Misfit(f"{where}.features: expected those among its macros, {sorted(missed or unknown)} differ")


def write(
    path: Path,
    models: Mapping[str, str],
    threads: Sequence[int],
    machines: Sequence[Packed],
    libraries: Mapping[str, bytes],
    dynamic_range: DynamicRange,
) -> int:
    """Write a pack; return its size in bytes. libraries: of all machines, by name.

    Raises OSError; an existing pack then stays intact.
    """
    data = {
        "format": _FORMAT,
        "kernels": kernels_digest(),
        "models": models,
        "threads": [*threads],
        "dynamic_range": dynamic_range,
        "machines": [asdict(packed) for packed in machines],
    }
    text = json.dumps(data, indent=1, sort_keys=True).encode()
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in [(_MANIFEST, text), *((f"{_FOLDER}/{n}", c) for n, c in sorted(libraries.items()))]:
            file.writestr(zipfile.ZipInfo(name, _WHEN), content, zipfile.ZIP_DEFLATED)
        file.comment = _digest(text).encode()
    put(path, memory.getbuffer())
    return memory.tell()


def digests(libraries: Mapping[str, bytes], names: Collection[str]) -> dict[str, str]:
    """Return the SHA-256 of libraries by name."""
    return {name: _digest(libraries[name]) for name in sorted(names)}


@cache
def kernels_digest() -> str:
    """Return the SHA-256 of litecl's kernel files and compiler options."""
    digest = hashlib.sha256("\0".join(OPTIONS).encode())
    for path in sorted(Path(kernels_cl.__file__).parent.iterdir()):
        if path.suffix in (".c", ".cl", ".h"):
            digest.update(path.name.encode() + b"\0" + path.read_text(encoding="utf-8").encode() + b"\0")
    return digest.hexdigest()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
