"""Modules of operators are imported when they are needed, and all operators are found."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from py_compile import compile as compiled
from types import ModuleType

import pytest

from litecl.delegate.cl_op import ClOp, Variants
from litecl.delegate.ops import CL_OPS, GENERAL, SPECIAL
from litecl.interpreter.kit.modules import Modules
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops import BUILTINS, CUSTOMS, MODULES, every_op
from support.pocl_processor import as_itself


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Modules]:
    """A package of three modules; the last comes without its source."""
    folder = tmp_path / "some_operators"
    (folder / "inner").mkdir(parents=True)
    for name, source in {"__init__": "", "one": "A", "two": "A, B", "three": "C", "inner/__init__": "A"}.items():
        (folder / f"{name}.py").write_text(f'"""{source}"""')
    compiled(str(folder / "three.py"), str(folder / "three.pyc"))
    (folder / "three.py").unlink()
    monkeypatch.syspath_prepend(tmp_path)
    yield Modules("some_operators", [str(folder)], lambda source: source.strip('"').split(", "))
    for name in [name for name in sys.modules if name.startswith("some_operators")]:
        del sys.modules[name]


def _imported(found: Iterator[ModuleType] | Modules) -> list[str]:
    return sorted(module.__name__.removeprefix("some_operators.") for module in found)


def test_modules_are_imported_when_named(package: Modules) -> None:
    """A module without its source may name anything; packages within stay apart."""
    assert _imported(package.naming("B")) == ["three", "two"]
    assert "some_operators.one" not in sys.modules
    assert _imported(package.naming("A")) == ["one", "three", "two"]
    assert _imported(package.naming("D")) == ["three"]
    assert _imported(package) == ["one", "three", "two"]
    assert package.names == {"A", "B"}


def _records(module: ModuleType) -> Iterator[Op | ControlOp]:
    for value in vars(module).values():
        yield from (record for record in (value if isinstance(value, tuple) else (value,)) if _is_op(record))


def _is_op(value: object) -> bool:
    return isinstance(value, Op | ControlOp)


def test_every_operator_is_found_by_name() -> None:
    """What any module defines is found, as the form that selects among several."""
    defined = [op for module in MODULES for op in _records(module)]
    assert {op.name for op in defined} == {op.name for op in every_op()} == {*BUILTINS, *CUSTOMS}
    for op in defined:
        found = (CUSTOMS if op.custom else BUILTINS)[op.name]
        assert found is op or (isinstance(found, Op) and found.select is not None), op.name
    assert "ADD" not in CUSTOMS
    assert BUILTINS.get("NO_SUCH_OPERATOR") is None


def test_every_device_operator_is_found() -> None:
    """What any module defines is found for its operator, and nothing else is."""

    def all_of(modules: Modules) -> dict[Op, list[ClOp]]:
        table: dict[Op, list[ClOp]] = {}
        for cl_op in (cl_op for module in modules for cl_op in getattr(module, "CL_OPS", ())):
            table.setdefault(cl_op.op, []).append(cl_op)
        return table

    general, special = all_of(GENERAL), [(applies, all_of(modules)) for applies, modules in SPECIAL]
    assert {*CL_OPS} == {*general}.union(*(table for _, table in special))
    for op, found in CL_OPS.items():
        variants = [(applies, cl_op) for applies, table in special for cl_op in table.get(op, ())]
        if isinstance(found, Variants):
            assert (list(found.special), [found.default]) == (variants, general[op])
        else:
            assert [found] == [*general.get(op, ()), *(cl_op for _, cl_op in variants)]


_FRESH = """
import sys
from concurrent.futures import ThreadPoolExecutor
from litecl.delegate.ops import CL_OPS
from litecl.interpreter.ops import BUILTINS

names = ["SOFTMAX", "SVDF", "TOPK_V2", "GATHER_ND"] * 8
with ThreadPoolExecutor(16) as pool:
    found = list(pool.map(lambda name: CL_OPS[BUILTINS[name]], names))
assert [cl_op.op.name for cl_op in found] == names
assert len({id(cl_op) for cl_op in found}) == 4
rest = ("interpreter.ops.strings", "interpreter.ops.signal", "delegate.ops.resize", "delegate.ops.quantized.reduce")
assert [name for name in rest if f"litecl.{name}" in sys.modules] == []
"""


@as_itself
def test_threads_find_operators_in_a_fresh_process() -> None:
    """Modules are imported once, by whichever thread is first; those that nothing has asked for are not."""
    done = subprocess.run([sys.executable, "-c", _FRESH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
