"""The way of a CONV_2D through its lowering: which functions of litecl run until its launches are made, in which files.

    cd tests && python -m tools.lowering_way [--functions]

It is traced, from the call of the record's lowering for a kind of device until that returns: schedule, geometry and
packing included. A function counts once, however often it runs. A comprehension, a lambda or a function within another
is part of the one around it. Properties are not counted: to a reader they are fields of their records. Neither is what
a dataclass makes of its fields when it is made. The second pair of figures counts properties too.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import litecl
from litecl.delegate.cl_op import Target
from litecl.interpreter.graph import Shape
from support.lowerings import CPU, GPU, convolution

TARGETS: dict[str, Target] = {
    "CPU": CPU,
    "GPU": replace(GPU, local_mem_bytes=1 << 15),
    "GPU without local memory": GPU,
}

_ROOT = Path(litecl.__file__).parent
_RECORDS = f"{_ROOT}/interpreter/dataclass.py"

FORMS: dict[str, tuple[Shape, Shape, int, bool]] = {
    "1x1": ((1, 14, 14, 64), (128, 1, 1, 64), 1, True),
    "1x1, filters computed": ((1, 14, 14, 64), (128, 1, 1, 64), 1, False),
    "3x3": ((1, 28, 28, 64), (64, 3, 3, 64), 1, True),
    "3x3, stride 2": ((1, 14, 14, 64), (128, 3, 3, 64), 2, True),
    "3x3, filters computed": ((1, 14, 14, 64), (128, 3, 3, 64), 2, False),
    "first layer": ((1, 224, 224, 3), (32, 3, 3, 3), 2, True),
    "32 groups": ((1, 28, 28, 64), (64, 3, 3, 2), 1, True),
    "a group for each channel": ((1, 28, 28, 64), (64, 3, 3, 1), 1, True),
}
"""Convolutions of floats: image, filters, stride, and whether filters and bias are constants."""


@dataclass(frozen=True)
class Way:
    """What has run: functions and properties, each with its file."""

    functions: frozenset[tuple[str, str]]
    properties: frozenset[tuple[str, str]]

    @property
    def files(self) -> set[str]:
        """The files of the functions."""
        return {file for file, _ in self.functions}


def way(run: Callable[[], Any]) -> Way:
    """Return what of litecl runs while ``run`` does."""
    functions, properties = set(), set()

    def see(frame: FrameType, event: str, arg: Any) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(f"{_ROOT}/") or file == _RECORDS:
            return
        owner, _, name = _function(frame).partition(".")
        is_property = isinstance(vars(frame.f_globals[owner]).get(name), property) if name else False
        is_property |= name == "__post_init__"
        found = (str(Path(file).relative_to(_ROOT)), _function(frame))
        (properties if is_property else functions).add(found)

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        run()
    finally:
        sys.setprofile(before)
    return Way(frozenset(functions), frozenset(properties))


def _function(frame: FrameType) -> str:
    """Return the outermost function whose text a frame runs, with its class."""
    return ".".join(part for part in frame.f_code.co_qualname.split(".<locals>")[0].split(".") if part[0] != "<")


def of_form(name: str, target: Target) -> Way:
    """Return the way of a convolution."""
    x, filter_, stride, known = FORMS[name]
    record, call = convolution(x, filter_, stride, target, known=known)
    lower = target.either(record.cpu, record.gpu)
    return way(lambda: lower(call))


def main() -> None:
    for name in FORMS:
        for kind, target in TARGETS.items():
            found = of_form(name, target)
            both = found.functions | found.properties
            files = len({file for file, _ in both})
            print(
                f"{name:26} {kind:24}: {len(found.functions):2} functions in {len(found.files)} files"
                f" (with properties {len(both):2} in {files})"
            )
            if "--functions" in sys.argv[1:]:
                print(*(f"    {file}: {function}" for file, function in sorted(found.functions)), sep="\n")


if __name__ == "__main__":
    main()
