"""Machine code of a program that is one source, made by PoCL without its library of functions.

PoCL links every program with its library, which it reads anew for each context: 7 MB, 0.3 s. But a program that it is
given as LLVM's code is taken as it is. So a source is compiled, what PoCL returns for it has LLVM's code in it, and
that code is the program. PoCL optimises it then, so the first compilation need not.

PoCL 3.0 does not expect this of programs of its own, so some of its ways are seen to here. It counts such a program
once more than it forgets it, and would end the process when the context is released: so that never is. It keeps the
files of all of them in one folder, by the names of kernels: so these are unique. What is returned has a folder of its
own, and LLVM's code in it as other binaries do, without which it would be counted wrongly too.
"""

import ctypes
import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import pyopencl as cl

from litecl.delegate.backend import fork
from litecl.delegate.opencl.identity import identity
from litecl.delegate.opencl.kernel_objects import OWN
from litecl.delegate.opencl.native import binary_of, native

UNIT: Mapping[str, str | int | float] = {"LITECL_UNIT": "1\t-disable-llvm-passes"}
"""Macros of such a source. PoCL passes on what stands behind a tab as an option of clang's own."""

# PoCL's binaries: the folder that they are unpacked to, AB/CDE.. in letters up to P; a file's name, and its content.
_FOLDER, _NAMED, _LENGTH = slice(32, 72), slice(73, 88), slice(88, 92)
_NAME = b"\x0b\0\0\0/program.bc"
_MISSING = re.compile(rb"_Z\d+(?!builtin_)[a-z_]{3}")  # the name of a function that only the library has
_retain = native(ctypes.PyDLL, "clRetainContext")
_contexts: dict[int, Any] = {}
_compiling = fork.Section()


def machine_code(device: Any, entry: str, source: str, options: Sequence[str]) -> bytes:
    """Return the binary of a program with one kernel, which gets a name of its own (``kernel_object``); empty if the
    source calls functions of PoCL's library. Raises cl.Error.
    """
    digest = hashlib.sha256("\0".join((*identity(device), entry, source, *options)).encode()).hexdigest()
    with _compiling.lock:
        context = _context(device)
        compiled = cl.Program(context, source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pyopencl warns that it cannot cache these: litecl does
            compiled.compile([*options, f"-D{entry}={entry}{OWN}{digest}", "-w"], [device])
        code = _bitcode(compiled)
        if not code or _MISSING.search(code):
            return b""
        binary = binary_of(cl.Program(context, [device], [code]).build(cache_dir=False))
    return _complete(binary, code, digest) if binary[_NAMED] == _NAME else b""


def _complete(binary: bytes, code: bytes, digest: str) -> bytes:
    """Return a binary with LLVM's code, to be unpacked to a folder of its own."""
    letters = "".join(chr(ord("A") + int(digit, 16)) for digit in digest[:39])
    kernels = binary[_LENGTH.stop + int.from_bytes(binary[_LENGTH], "little") :]
    content = binary[_FOLDER.stop : _LENGTH.start] + len(code).to_bytes(4, "little") + code + kernels
    return binary[: _FOLDER.start] + f"{letters[:2]}/{letters[2:]}".encode() + content


def _context(device: Any) -> Any:
    """Return a device's context, which is never released."""
    if device.int_ptr not in _contexts:
        context = _contexts[device.int_ptr] = cl.Context([device])
        _retain(ctypes.c_void_p(context.int_ptr))
    return _contexts[device.int_ptr]


def _bitcode(compiled: Any) -> bytes:
    """Return LLVM's code of a compiled source; empty if it is not where it is expected."""
    binary = bytes(compiled.get_info(cl.program_info.BINARIES)[0])
    return binary[_LENGTH.stop :][: int.from_bytes(binary[_LENGTH], "little")] if binary[_NAMED] == _NAME else b""
