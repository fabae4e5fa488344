"""The symbols that a shared library expects others to have: of ELF, Mach-O and PE files."""

import struct


def imported(content: bytes) -> set[str]:
    """Return their names, without the underscore that macOS puts before them."""
    if content[:4] == b"\x7fELF":
        return _elf(content)
    return _pe(content) if content[:2] == b"MZ" else _macho(content)


def _text(content: bytes, start: int) -> str:
    return content[start : content.index(b"\0", start)].decode()


def _elf(content: bytes) -> set[str]:
    """Undefined symbols of the dynamic table."""
    wide = content[4] == 2
    table, size, count = (
        struct.unpack_from("<Q10xHH", content, 40)[0],
        *struct.unpack_from("<HH", content, 58 if wide else 46),
    )
    if not wide:
        (table,) = struct.unpack_from("<I", content, 32)
    form = "<IIQQQQII" if wide else "<IIIIIIII"
    sections = [struct.unpack_from(form, content, table + i * size) for i in range(count)]
    found = set()
    for section in sections:
        if section[1] != 11:  # SHT_DYNSYM
            continue
        names, step = sections[section[6]][4], 24 if wide else 16
        for at in range(section[4] + step, section[4] + section[5], step):
            name, defined = struct.unpack_from("<I2xH" if wide else "<I10xH", content, at)
            if not defined:
                found.add(_text(content, names + name))
    return found


def _macho(content: bytes) -> set[str]:
    """Undefined external symbols, but for the loader's own."""
    (commands,) = struct.unpack_from("<I", content, 16)
    at, found = 32, set()
    for _ in range(commands):
        command, size = struct.unpack_from("<II", content, at)
        if command == 2:  # LC_SYMTAB
            symbols, count, names, _ = struct.unpack_from("<IIII", content, at + 8)
            for i in range(count):
                name, kind = struct.unpack_from("<IB", content, symbols + 16 * i)
                if kind & 0x0F == 1:  # external and undefined
                    found.add(_text(content, names + name).removeprefix("_"))
        at += size
    return found - {"dyld_stub_binder"}


def _pe(content: bytes) -> set[str]:
    """Names in the import tables, after their libraries: ``ucrtbase.dll!memcpy``."""
    (start,) = struct.unpack_from("<I", content, 60)
    count, optional = struct.unpack_from("<H12xH", content, start + 6)
    sections = [
        struct.unpack_from("<8x4I", content, start + 24 + optional + 40 * i) for i in range(count)
    ]  # their size, address, size in the file, place in the file

    def place(address: int) -> int:
        return next(raw + address - at for size, at, _, raw in sections if at <= address < at + size)

    (table,) = struct.unpack_from("<I", content, start + 24 + 112 + 8)
    at, found = place(table) if table else None, set()
    while at is not None:
        names, _, _, library, _ = struct.unpack_from("<5I", content, at)
        if not names:
            break
        entry = place(names)
        while (hint := struct.unpack_from("<Q", content, entry)[0]) != 0:
            found.add(f"{_text(content, place(library))}!{_text(content, place(hint) + 2)}")
            entry += 8
        at += 20
    return found
