"""What a device's compiler makes of a kernel: asked with a kernel of a few lines, and kept in the cache folder.

A driver may report what the processor has although its compiler does not use it. Vectors wider than the registers that
the compiler knows are no mere loss: functions compiled apart then disagree on how such vectors are passed.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate import disk
from litecl.interpreter.errors import KernelBuildError

_VERSION = 1  # of the file
_MACROS = (
    *("__SSE2__", "__AVX__", "__AVX2__", "__FMA__", "__F16C__"),
    *("__AVX512F__", "__AVX512BW__", "__AVX512VL__", "__AVX512VNNI__"),
    *("__x86_64__", "__aarch64__", "__ARM_NEON", "__linux__", "cl_khr_fp64", "cl_khr_fp16"),
)
_WIDTHS = (("__AVX512F__", 16), ("__AVX__", 8), ("__SSE2__", 4), ("__ARM_NEON", 4))  # floats in a register
_WIDEST = 16
_known: dict[tuple[int, str], "Capabilities"] = {}


@dataclass(frozen=True)
class Capabilities:
    """Macros that the device's compiler defines, out of those that matter here."""

    macros: frozenset[str]

    def vector_width(self, reported: int) -> int:
        """Floats in a vector that the compiler keeps in one register; ``reported`` is the device's own word.

        That word counts where no macro says which registers the compiler knows, and where it is the smaller one.
        """
        known = next((width for macro, width in _WIDTHS if macro in self.macros), _WIDEST)
        return max(4, min(known, reported))


def capabilities(device: Any, directory: Path | None = None) -> Capabilities:
    """Those of a pyopencl device, which are asked for once. Raises KernelBuildError where it can build nothing."""
    key = device.int_ptr, disk.key("capabilities", device)
    if key not in _known:
        path = None if directory is None else directory / f"{key[1]}.json"
        kept = _load(path)
        _known[key] = found = kept or _ask(device)
        if path is not None and kept is None:
            content = {"version": _VERSION, "device": device.name, "macros": sorted(found.macros)}
            disk.write_atomically(path, json.dumps(content, indent=1).encode())
    return _known[key]


def _load(path: Path | None) -> Capabilities | None:
    """What is kept, if it is what was written."""
    if path is None:
        return None
    try:
        content = json.loads(path.read_bytes())
        macros = frozenset(content["macros"]) if content["version"] == _VERSION else None
    except Exception:  # whatever a file holds that another program has written, or half of it
        return None
    return None if macros is None or not macros <= set(_MACROS) else Capabilities(macros)


def _ask(device: Any) -> Capabilities:
    tests = "".join(f"#ifdef {macro}\nout[{i}] = 1;\n#endif\n" for i, macro in enumerate(_MACROS))
    source = f"__kernel void probe(__global int *out) {{\n{tests}}}\n"
    defined = np.zeros(len(_MACROS), np.int32)
    try:
        context = cl.Context([device])
        kernel = cl.Kernel(cl.Program(context, source).build(cache_dir=False), "probe")
        queue = cl.CommandQueue(context, device)
        out = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=defined)
        kernel.set_args(out)
        cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
        cl.enqueue_copy(queue, defined, out, is_blocking=True)
    except cl.Error as error:
        raise KernelBuildError(f"{device.name} builds not even a kernel of {len(_MACROS)} lines: {error}") from error
    return Capabilities(frozenset(macro for macro, there in zip(_MACROS, defined, strict=True) if there))
