"""Custom sections of a WebAssembly module, which engines ignore."""

from collections.abc import Iterator

_HEADER_BYTES = 8
_SEVEN = 0x7F


def custom_section(name: str, text: str) -> bytes:
    """Return a section; name and text are shorter than 64 characters each."""
    content = bytes([len(name)]) + name.encode() + text.encode()
    assert len(content) <= _SEVEN
    return bytes([0, len(content)]) + content


def custom_sections(module: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield names and contents; nothing more from where a module is damaged on."""
    at = _HEADER_BYTES
    while at < len(module):
        kind = module[at]
        size, start = _number(module, at + 1)
        end = start + size
        if end > len(module):
            return
        if kind == 0:
            length, name = _number(module, start)
            yield module[name : name + length], module[name + length : end]
        at = end


def _number(content: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned number in LEB128 and where it ends."""
    number = 0
    for i, byte in enumerate(content[at : at + 5]):
        number |= (byte & _SEVEN) << 7 * i
        if byte <= _SEVEN:
            return number, at + i + 1
    return len(content), at
