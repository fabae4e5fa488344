"""The capabilities of a device's compiler, probed by a small kernel and cached on disk.

A driver may report processor features that its compiler does not use. Vectors wider than the compiler's registers are
not just slow: separately compiled functions then disagree on how such vectors are passed.
"""

import json
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from litecl.delegate import disk
from litecl.delegate.backend.sources import source_of
from litecl.delegate.backend.stack import on_ample_stack
from litecl.delegate.opencl.environment import POCL, check_room
from litecl.delegate.opencl.identity import identity
from litecl.delegate.opencl.kernel_objects import kernel_object
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import KernelBuildError

_VERSION = 9  # of the file format; incremented when the probe changes
_MACROS = (
    *("__SSE2__", "__AVX__", "__AVX2__", "__FMA__", "__F16C__"),
    *("__AVX512F__", "__AVX512BW__", "__AVX512VL__", "__AVX512VNNI__"),
    *("__x86_64__", "__aarch64__", "__ARM_NEON", "__linux__", "cl_khr_fp64", "cl_khr_fp16"),
)
_WIDTHS = (("__AVX512F__", 16), ("__AVX__", 8), ("__SSE2__", 4), ("__ARM_NEON", 4))  # floats in a register
_WIDEST = 16


class _Feature(NamedTuple):
    """A feature that kernels do without if a compiler rejects it or computes a wrong result.

    before, statement: code of a kernel that uses it, before the kernel and in it. options: the kernel's build options.
    right: a condition that holds afterwards. there: whether to probe a device for it.
    """

    statement: str
    before: str = ""
    options: tuple[str, ...] = ()
    right: str = "1"
    there: Callable[[Any], bool] = lambda device: True


class _WrongResultError(Exception):
    """A probe was built, but computed a wrong result."""


_DOTS = "cl_khr_integer_dot_product"
_DOT_VENDORS = ("nvidia", "advanced micro devices", "amd")  # their compilers have dot products without the extension


def _may_have_dots(device: Any) -> bool:
    return _DOTS in device.extensions.split() or device.vendor.lower().startswith(_DOT_VENDORS)


_ONLY_X86 = "\n#if !defined(__x86_64__) || !defined(__linux__)\n#error\n#endif\n"
_FEATURES = {
    # Instructions that region.cl uses directly. A compiler that defines the macros may still reject them.
    "assembly": _Feature(_ONLY_X86 + '__asm__ volatile("pause" : : "i"(0), "i"(0), "i"(0)); __builtin_ia32_pause();\n'),
    # 3 + (-128)(-128) + (-1)(1) + 127(-128) + 2 * 5, of values unknown at compile time; unsigned, with 128 and 255.
    "dots": _Feature(
        "out[3] = add_dot(3 + out[4], 0x027fff80 ^ out[5], 0x05800180 ^ out[6]);\n"
        "if (add_unsigned_dot(3 + out[4], 0x027fff80 ^ out[5], 0x05800180 ^ out[6]) != -32372) out[3] = 0;\n",
        source_of("dots.h"),
        ("-DLITECL_DOTS=1",),
        right="out[3] == 140",
        there=_may_have_dots,
    ),
}
_known: dict[str, "Capabilities"] = {}
_contexts: dict[int, Any] = {}  # the probes' contexts, by device


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of a device's compiler. macros: the probed ones (``_MACROS``) that it defines. assembly: whether
    it accepts x86-64 assembly. dots: whether it has dot products of four bytes (``kernels_cl/dots.h``).
    """

    macros: frozenset[str]
    assembly: bool = False
    dots: bool = False

    @property
    def float64(self) -> bool:
        """Return whether kernels can compute in float64."""
        return "cl_khr_fp64" in self.macros

    @property
    def multiplies_bytes(self) -> bool:
        """Return whether one instruction multiplies bytes and accumulates the products."""
        return "__AVX512VNNI__" in self.macros

    def vector_width(self, reported: int) -> int:
        """Return the number of floats in one of the compiler's vector registers, at least 4.

        reported: the device's own figure, used if it is smaller or no macro gives the registers' width.
        """
        known = next((width for macro, width in _WIDTHS if macro in self.macros), _WIDEST)
        return max(4, min(known, reported))


@on_ample_stack
def capabilities(device: Any, directory: Path | None = None) -> Capabilities:
    """Return the capabilities of a pyopencl device, probed once. directory: their cache, or None.

    Raises KernelBuildError if the device can't build or run a kernel.
    """
    key = disk.key("capabilities", identity(device))
    if key not in _known:
        path = None if directory is None else directory / f"{key}.json"
        kept = _load(path)
        if kept is None:
            kept = _ask(device)
            if path is not None:
                with suppress(OSError):
                    disk.write_atomically(path, _encoded(device, kept))
        _known[key] = kept
    return _known[key]


def _encoded(device: Any, probed: Capabilities) -> bytes:
    content = {"version": _VERSION, "device": device.name, **asdict(probed), "macros": sorted(probed.macros)}
    return json.dumps(content, indent=1).encode()


def _load(path: Path | None) -> Capabilities | None:
    """Return the cached capabilities; None unless the file is intact and of this version."""
    kept = None if path is None else disk.read(path)
    if kept is None:
        return None
    try:
        content = json.loads(kept)
        features = {name: content[name] for name in _FEATURES}
        if content["version"] != _VERSION or not all(isinstance(there, bool) for there in features.values()):
            return None
        probed = Capabilities(frozenset(content["macros"]), **features)
    except Exception:  # the file may be incomplete or of another program
        return None
    return probed if probed.macros <= {*_MACROS} else None


_REFUSALS = (
    cl.status_code.BUILD_PROGRAM_FAILURE,
    cl.status_code.COMPILE_PROGRAM_FAILURE,
    cl.status_code.LINK_PROGRAM_FAILURE,
)  # a compiler rejected the source: a retry can't help


def _ask(device: Any) -> Capabilities:
    """Probe all features at once; if that fails, probe each alone."""
    names = [name for name, feature in _FEATURES.items() if feature.there(device)]
    try:
        if device.platform.name == POCL:
            check_room()
        return Capabilities(_probe(device, names), **dict.fromkeys(names, True))
    except _WrongResultError:
        pass
    except cl.Error as error:
        if error.code not in _REFUSALS:  # such a failure may be transient: retry before caching
            with suppress(cl.Error):
                return Capabilities(_probe(device, names), **dict.fromkeys(names, True))
    try:
        return Capabilities(_probe(device, ()), **{name: _accepts(device, name) for name in names})
    except cl.Error as error:
        raise KernelBuildError(
            f"{device.name} ({device.platform.name}) cannot build or run a kernel of {len(_MACROS)} lines. Choose "
            f"another device (`litecl devices` shows them), or another OpenCL driver for it.\n{error}"
        ) from error


def _accepts(device: Any, name: str) -> bool:
    """Return whether a compiler accepts a feature and computes it correctly. Raises cl.Error."""
    try:
        _probe(device, (name,))
    except _WrongResultError:
        return False
    except cl.Error as error:
        if error.code not in _REFUSALS:
            raise
        return False
    return True


def _probe(device: Any, names: Sequence[str]) -> frozenset[str]:
    """Run a kernel that uses some features; return the macros that are defined. Raises cl.Error and
    _WrongResultError.
    """
    features = [_FEATURES[name] for name in names]
    before = "".join(f.before for f in features)
    statements = "int right = 1;\n" + "".join(f"{f.statement}right &= {f.right};\n" for f in features)
    tests = "".join(f"#ifdef {macro}\nout[{i}] = 1;\n#else\nout[{i}] = 0;\n#endif\n" for i, macro in enumerate(_MACROS))
    source = f"{before}__kernel void probe(__global int *out) {{\n{statements}{tests}out[{len(_MACROS)}] = right;\n}}\n"
    defined = np.zeros(len(_MACROS) + 1, np.int32)
    context = _contexts[device.int_ptr] = cl.Context([device])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        options = [option for feature in features for option in feature.options]
        program = cl.Program(context, source).build(options, cache_dir=False)
    queue = cl.CommandQueue(context, device)
    out = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=defined)
    kernel = kernel_object(program, "probe")
    kernel.set_args(out)
    cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
    cl.enqueue_copy(queue, defined, out, is_blocking=True)
    if not defined[-1]:
        raise _WrongResultError
    return frozenset(macro for macro, there in zip(_MACROS, defined[:-1], strict=True) if there)


def context_of(device: Any) -> Any:
    """Return a context of a device; the first call reuses the probe's, as PoCL reads its builtin library for each."""
    return _contexts.pop(device.int_ptr, None) or cl.Context([device])
