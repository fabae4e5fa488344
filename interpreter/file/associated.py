"""The zip behind a model: files that its metadata names, such as labels, as TFLite's metadata tools append them.

Layout: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3.12 and 4.3.16. A directory behind the
files gives the offset of each from the start of the whole file, model included, as Python's ``zipfile`` writes it in
mode "a". So a zip behind a model of another size needs other offsets.
"""

import struct
from collections.abc import Iterator

_END = struct.Struct("<4sHHHHIIH")  # signature, 2 disks, entries here, entries, directory's size, its offset, comment
_ENTRY = struct.Struct("<4s24xHHHHHII")  # signature, sizes of name, extra and comment, disk, attributes, offset
_LOCAL = b"PK\x03\x04"
_MOST_COMMENT = 0xFFFF


def read(content: memoryview) -> bytes:
    """Return the zip that ends a file, with offsets from its own start; nothing if there is none.

    Damaged zips, zips of more than 4 GiB and split ones do not count.
    """
    tail = bytes(content[-_MOST_COMMENT - _END.size :])
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        return b""
    _, disk, first, here, count, size, offset, comment = _END.unpack_from(tail, at)
    start = len(content) - len(tail) + at - size  # of the directory
    if disk or first or here != count or at + _END.size + comment != len(tail) or start < offset:
        return b""
    entries = [*_entries(content[start : start + size])]
    before = start - offset  # the position that offsets count from
    begins = [before + entry for _, entry in entries]
    if len(entries) != count or any(bytes(content[each : each + 4]) != _LOCAL for each in begins):
        return b""
    begin = min(begins, default=start)
    if begin > start:
        return b""
    return _shifted(bytes(content[begin:]), before - begin)


def placed(zipped: bytes, start: int) -> bytes:
    """Return a zip for a file in which it begins at ``start``, with offsets to match if they fit 32 bits."""
    return _shifted(zipped, start) if start + len(zipped) < 2**32 else zipped


def _shifted(zipped: bytes, by: int) -> bytes:
    """Return a zip with all offsets increased by ``by``."""
    shifted, end = bytearray(zipped), zipped.rfind(b"PK\x05\x06")
    size, offset = struct.unpack_from("<II", shifted, end + 12)
    struct.pack_into("<I", shifted, end + 16, offset + by)
    for at, entry in _entries(memoryview(zipped)[end - size : end]):
        struct.pack_into("<I", shifted, end - size + at + _ENTRY.size - 4, entry + by)
    return bytes(shifted)


def _entries(directory: memoryview) -> Iterator[tuple[int, int]]:
    """Yield each entry's position in a directory and the offset in it, up to the first damaged entry."""
    at = 0
    while at + _ENTRY.size <= len(directory):
        signature, name, extra, comment, _, _, _, offset = _ENTRY.unpack_from(directory, at)
        if signature != b"PK\x01\x02":
            return
        yield at, offset
        at += _ENTRY.size + name + extra + comment
