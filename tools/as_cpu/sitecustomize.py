"""Lets every Python whose path has this folder first take its processor for another (see tools/as_cpu.sh)."""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tests"))

try:
    import peer
    import pyopencl as cl

    from litecl.delegate.native import backend, compiler
    from litecl.delegate.opencl import identity
    from support import pocl_processor
except ImportError as error:  # which Python would only mention, and go on with the whole processor
    raise SystemExit(f"as_cpu: {error}") from error

_WIDE = "wide"
_ZEN_4 = "zen4"  # PoCL 3.0 knows it as a Zen 3

_wanted = os.environ["LITECL_AS_CPU"]
_levels = dict(pocl_processor.LEVELS)
_in_record = {_WIDE: "x86-64-v3", _ZEN_4: "znver3"}.get(_wanted, _wanted)
_level = "x86-64-v3" if _in_record == "znver3" else _in_record
_name_in, _features = pocl_processor.name_in, identity.features


def name_in(record: int) -> pocl_processor.Name | None:
    """Give a device's record the name that PoCL would have found on that processor."""
    found = _name_in(record)
    if found is None:
        raise SystemExit("as_cpu: PoCL's record of the device does not tell its processor's name")
    pocl_processor.write_name(found.address, _in_record)
    return found._replace(text=_in_record)


def features() -> frozenset[str]:
    """Return the instructions that the processor shares with that one."""
    available = _features()
    if _wanted == _ZEN_4:
        return available
    needed = _levels[_level]
    if not needed <= available:
        raise SystemExit(f"as_cpu: this machine has no {', '.join(sorted(needed - available))}")
    lesser = {name for _, level in pocl_processor.LEVELS[list(_levels).index(_level) :] for name in level}
    return available & lesser


pocl_processor.name_in = name_in
identity.features = features
pocl_processor.watch()
compiler.native_target = lambda: (f"-march={'znver4' if _wanted == _ZEN_4 else _in_record}",)
compiler.found.cache_clear()
if _wanted == _WIDE:
    backend._WIDTHS = (("__AVX__", 16),)
    cl.Device.native_vector_width_float = property(lambda device: 16)
if _level == "x86-64-v3":
    peer.limit()
