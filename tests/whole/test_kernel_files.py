"""The loop is closed: kernel files, device operators, the operator table and the cases name each other."""

import re
from pathlib import Path

from litecl import delegate, kernels_cl, perf
from litecl.cases.tables import TABLES
from litecl.delegate.backend.sources import source_of
from litecl.delegate.ops import CL_OPS
from litecl.interpreter.op import Op
from litecl.interpreter.ops import BUILTINS, CUSTOMS

_FOLDER = Path(kernels_cl.__file__).parent
_SHARED = {"gather_patches"}  # functions that kernels call (delegate/native/library.py)
_KERNELS = sorted({path.stem for path in _FOLDER.glob("*.cl")} - _SHARED)
_ROOMS = [Path(delegate.__file__).parent, Path(perf.__file__).parent]
_LOWERINGS = "\n".join(path.read_text() for room in _ROOMS for path in sorted(room.rglob("*.py")))


def test_every_kernel_file_is_used() -> None:
    """Each .cl file is named where launches are made."""
    assert [name for name in _KERNELS if f'"{name}"' not in _LOWERINGS] == []


def test_every_entry_is_used() -> None:
    """Each kernel function is named where launches are made."""
    entries = {name: _entries(source_of(f"{name}.cl")) for name in _KERNELS}
    assert [name for name in _KERNELS if not entries[name]] == []
    assert [entry for name in _KERNELS for entry in entries[name] if f'"{entry}"' not in _LOWERINGS] == []


def test_what_stands_before_every_file_defines_no_macro_that_options_may_define() -> None:
    """A kernel's own macros, in capitals, are left as they are (kernels_cl/native.h)."""
    given = {"T", "OUT", "OP", "MR", "NV", "PANEL", "WIDTH", "VW", "WORDS", "BYTES"}
    defined = {name for path in _FOLDER.glob("native*.h") for name in re.findall(r"#define (\w+)", path.read_text())}
    assert defined and not defined & given


def _entries(source: str) -> list[str]:
    """The kernel functions of a file (KERNEL is common.h's __kernel with attributes)."""
    plain = re.sub(r"//.*|^#.*|__attribute__\(\(.*\)\)", "", source, flags=re.MULTILINE)
    return re.findall(r"\b(?:__kernel|KERNEL)\s+void\s+(\w+)\(", plain)


def test_every_device_operator_is_in_the_table() -> None:
    """A device operator is an operator of the interpreter, the same record, or a form that the record selects."""
    table = {**BUILTINS, **CUSTOMS}
    others = [op for op in CL_OPS if table[op.name] is not op]
    assert [op.name for op in others if BUILTINS[op.name].select is None] == []


def test_every_device_operator_has_a_case() -> None:
    """Each is run against an independent runtime, by a case that the device is expected to claim."""
    claimed = {case.op for table in TABLES for case in table.CASES if case.device is None}
    assert sorted(op.name for op in CL_OPS if isinstance(op, Op) and op not in claimed) == []
