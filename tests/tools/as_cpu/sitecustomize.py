"""Lets every Python whose path has this folder first take its processor for another (see tests/tools/as_cpu.sh)."""

import os

import pyopencl as cl

from litecl.delegate.opencl import processor

_WIDE = "wide"
_ZEN_4 = "zen4"  # PoCL 3.0 knows it as a Zen 3

_wanted = os.environ["LITECL_AS_CPU"]
_levels = dict(processor._NAMES)
_in_record = {_WIDE: "x86-64-v3", _ZEN_4: "znver3"}.get(_wanted, _wanted)
_level = "x86-64-v3" if _in_record == "znver3" else _in_record
_name_in, _features = processor.name_in, processor.features


def name_in(record: int) -> processor.Name | None:
    """Give a device's record the name that PoCL would have found on that processor."""
    found = _name_in(record)
    if found is None:
        raise SystemExit("as_cpu: PoCL's record of the device does not tell its processor's name")
    processor.write_name(found.address, _in_record)
    return found._replace(text=_in_record)


def features() -> frozenset[str]:
    """Return the instructions that the processor shares with that one."""
    available = _features()
    if _wanted == _ZEN_4:
        return available
    needed = _levels[_level]
    if not needed <= available:
        raise SystemExit(f"as_cpu: this machine has no {', '.join(sorted(needed - available))}")
    lesser = {name for _, level in processor._NAMES[list(_levels).index(_level) :] for name in level}
    return available & lesser


processor.name_in, processor.features = name_in, features
if _wanted == _WIDE:
    cl.Device.native_vector_width_float = property(lambda device: 16)
