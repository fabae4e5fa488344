"""A static library of ELF object files, its sizes in flash and RAM, and the functions that it needs."""

import struct
from collections.abc import Iterator, Sequence

from litecl.delegate.native import clang
from litecl.delegate.native.clang import Compiler
from litecl.delegate.native.processes import run
from litecl.interpreter.dataclass import dataclass

_WRITE, _ALLOC, _SYMBOLS, _NO_BITS, _UNDEFINED, _LOCAL = 1, 2, 2, 8, 0, 0  # ELF's codes
_FRAMES = ".stack_sizes"
_CALLER = "call_"  # begins the names of functions that run a kernel (``Function.name``)


@dataclass(frozen=True)
class Sizes:
    """Of object files: bytes of code and constants, bytes of RAM beside the stack, bytes of the stack that a call takes
    at most, beside what functions outside take, and these functions.
    """

    flash_bytes: int
    ram_bytes: int
    stack_bytes: int
    needs: tuple[str, ...]


@dataclass(frozen=True)
class _Object:
    flash_bytes: int
    ram_bytes: int
    frames: int  # of all its functions, in bytes
    defined: frozenset[str]
    undefined: frozenset[str]


def archive(objects: Sequence[bytes], name: str, compiler: Compiler) -> tuple[bytes, Sizes]:
    """Return a library of the first object file and all that it needs of the others, and its sizes.

    name: precedes those of its members. Raises KernelBuildError.
    """
    used = _used([_read(content) for content in objects])
    with clang.folder() as folder:
        paths = [folder / f"{name}_{number}.o" for number in used]
        for path, number in zip(paths, used, strict=True):
            path.write_bytes(objects[number])
        library = folder / "library.a"
        run((compiler.linker[0], "ar", "rcsD", str(library), *map(str, paths)))
        return library.read_bytes(), _sizes([*used.values()], f"{name}_{_CALLER}")


def _used(objects: Sequence[_Object]) -> dict[int, _Object]:
    """Return the first object and those that it needs, directly or not, by their positions."""
    used = {0: objects[0]}
    while True:
        wanted = {name for each in used.values() for name in each.undefined}
        more = {i: each for i, each in enumerate(objects) if i not in used and not wanted.isdisjoint(each.defined)}
        if not more:
            return used
        used |= more


def _sizes(objects: Sequence[_Object], caller: str) -> Sizes:
    """Return the sizes. caller: begins the names of the functions that run kernels: one at a time."""
    kernels = [each for each in objects if any(name.startswith(caller) for name in each.defined)]
    most = max((each.frames for each in kernels), default=0)
    stack = most + sum(each.frames for each in objects if each not in kernels)
    defined = frozenset[str]().union(*(each.defined for each in objects))
    needs = frozenset[str]().union(*(each.undefined for each in objects)) - defined
    flash, ram = sum(each.flash_bytes for each in objects), sum(each.ram_bytes for each in objects)
    return Sizes(flash, ram, stack, tuple(sorted(needs)))


def _read(content: bytes) -> _Object:
    """Read a little-endian ELF file's sections and symbols."""
    is_64 = content[4] == 2
    header, section = ("<40xQ10xHHH", "<IIQQQQII8xQ") if is_64 else ("<32xI10xHHH", "<10I")
    start, entry_bytes, count, named_by = struct.unpack_from(header, content)
    sections = [struct.unpack_from(section, content, start + i * entry_bytes) for i in range(count)]
    flash = ram = frames = 0
    for name, kind, flags, _, offset, size, *_ in sections:
        if flags & _ALLOC:
            flash += 0 if kind == _NO_BITS else size
            ram += size if flags & _WRITE else 0
        elif _text(content, sections[named_by][4] + name) == _FRAMES:
            frames += sum(_frames(content[offset : offset + size], 8 if is_64 else 4))
    names = [symbol for s in sections if s[1] == _SYMBOLS for symbol in _symbols(content, s, sections[s[6]], is_64)]
    defined = frozenset(name for name, is_defined in names if is_defined)
    return _Object(flash, ram, frames, defined, frozenset(name for name, is_defined in names if not is_defined))


def _frames(table: bytes, address_bytes: int) -> Iterator[int]:
    """Yield the bytes of stack of every function in a table of clang's -fstack-size-section: addresses, each with a
    number of 7 bits a byte.
    """
    at = 0
    while at < len(table):
        at += address_bytes
        size = shift = 0
        while table[at] & 0x80:
            size, shift, at = size | (table[at] & 0x7F) << shift, shift + 7, at + 1
        yield size | table[at] << shift
        at += 1


def _text(content: bytes, start: int) -> str:
    return content[start : content.index(0, start)].decode()


def _symbols(content: bytes, table: Sequence[int], texts: Sequence[int], is_64: bool) -> Iterator[tuple[str, bool]]:
    """Yield the global symbols of a table, and whether they are defined."""
    layout = struct.Struct("<IBxH16x" if is_64 else "<I8xBxH")
    for offset in range(table[4], table[4] + table[5], layout.size):
        name, info, section = layout.unpack_from(content, offset)
        if name and info >> 4 != _LOCAL:
            yield _text(content, texts[4] + name), section != _UNDEFINED
