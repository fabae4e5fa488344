"""Modules of operators are imported when they are needed, and all operators are found."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

from litecl.delegate import ops as delegate_ops
from litecl.delegate.cl_op import ClOp, Variants
from litecl.delegate.ops import CL_OPS, GENERAL, SPECIAL, hybrid, quantized
from litecl.interpreter import ops
from litecl.interpreter.kit.modules import Modules
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops import BUILTINS, CUSTOMS, MODULES, every_op
from support.skips import as_itself


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Modules]:
    """A package of four modules, one of which defines names that are in no row."""
    folder = tmp_path / "some_operators"
    folder.mkdir()
    for name in ("__init__", "one", "two", "three", "rest"):
        (folder / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    rows = {"one": "A", "two": "A B", "three": "C"}
    yield Modules("some_operators", rows, others=("rest",), elsewhere=("E",))
    for name in [name for name in sys.modules if name.startswith("some_operators")]:
        del sys.modules[name]


def _imported(found: Iterable[ModuleType]) -> list[str]:
    return [module.__name__.removeprefix("some_operators.") for module in found]


def test_modules_are_imported_when_named(package: Modules) -> None:
    """By their rows; a name in no row imports the modules that may define it."""
    assert _imported(package.naming("B")) == ["two"]
    assert "some_operators.one" not in sys.modules
    assert _imported(package.naming("A")) == ["one", "two"]
    assert _imported(package.naming("E")) == []
    assert "some_operators.rest" not in sys.modules
    assert _imported(package.naming("D")) == ["rest"]
    assert _imported(package) == ["one", "rest", "three", "two"]
    assert ("A" in package, "D" in package) == (True, False)


def _all_of(package: ModuleType) -> Iterator[ModuleType]:
    """Every module in the folder of a package."""
    for _, name, is_package in iter_modules(package.__path__, f"{package.__name__}."):
        if not is_package:
            yield import_module(name)


def _made_in(module: ModuleType) -> set[str]:
    """The operators that a module defines: those whose names stand in it, not those that it imports."""
    source = Path(module.__file__ or "").read_text()
    return {op.name for op in _records(module) if f'"{op.name}"' in source}


def test_every_operator_has_a_row() -> None:
    """Where it is defined, and nothing else is in that row; those of unary.py and binary.py need none."""
    for module in _all_of(ops):
        short, made = module.__name__.rpartition(".")[2], _made_in(module)
        if short in ("unary", "binary"):
            assert not [name for name in made if name in MODULES]
            continue
        for name in made:
            assert module in MODULES.naming(name), f"{name}: expected it in the row of {short!r} in {ops.__name__}"
    rows = {(name, module) for name in MODULES.names for module in MODULES.naming(name)}
    assert not [(name, module) for name, module in rows if name not in _made_in(module)]


@pytest.mark.parametrize(
    ("package", "modules"),
    [(delegate_ops, GENERAL), (quantized, SPECIAL[0][1]), (hybrid, SPECIAL[1][1])],
    ids=["general", "quantized", "hybrid"],
)
def test_every_device_operator_has_a_row(package: ModuleType, modules: Modules) -> None:
    """In the table of its package, unless it is one of the interpreter's unary.py or binary.py and here, too."""
    made = {module: {cl_op.op.name for cl_op in getattr(module, "CL_OPS", ())} for module in _all_of(package)}
    for module, names in made.items():
        for name in names:
            assert module in modules.naming(name), f"{name}: expected it in the row of {module.__name__}"
    rows = {(name, module) for name in modules.names for module in modules.naming(name)}
    assert not [(name, module) for name, module in rows if name not in made[module]]


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
