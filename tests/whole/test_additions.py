"""Additions cost what CONTRIBUTING.md says: a made-up operator and a made-up fusion are added to a copy of the project,
and the files that had to know of them are counted.
"""

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from litecl.delegate.native import compiler

pytestmark = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor")

ROOT = Path(__file__).resolve().parents[2]
_COPIED = (
    *("interpreter", "kernels_cl", "converter", "delegate", "perf", "src", "docs"),
    *("tests/cases", "tests/random_graphs", "tests/support", "tests/delegate"),
    *("pyproject.toml", "tests/conftest.py"),
)


class Tree:
    """A copy of the project to add to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in _COPIED:
            source, target = ROOT / name, folder / name
            if source.is_dir():
                shutil.copytree(
                    source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
                )
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)

    def insert(self, file: str, after: str, line: str) -> None:
        """Add a line behind one that a file has."""
        path = self.folder / file
        text = path.read_text()
        assert text.count(f"{after}\n") == 1, f"{file}: {after!r}"
        path.write_text(text.replace(f"{after}\n", f"{after}\n{line}\n"))

    def replace(self, file: str, old: str, new: str) -> None:
        """Change a line."""
        path = self.folder / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file}: {old!r}"
        path.write_text(text.replace(old, new))

    def write(self, file: str, text: str) -> None:
        """Add a file."""
        assert not (self.folder / file).exists()
        (self.folder / file).write_text(dedent(text).lstrip())

    def changed(self) -> set[str]:
        """The files that are not as in the project."""
        files = (path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file())
        mine = [file for file in files if "__pycache__" not in file.parts and not file.parts[0].startswith(".")]
        return {
            str(file)
            for file in mine
            if not (ROOT / file).is_file() or not filecmp.cmp(ROOT / file, self.folder / file, shallow=False)
        }

    def run(self, *arguments: str) -> None:
        """Run Python on it, which must come to its end."""
        paths = os.pathsep.join(str(self.folder / name) for name in ("src", "tests"))
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def keeps_contracts(self) -> None:
        """Check who may import whom."""
        self.run("-c", "import importlinter.cli as cli; cli.lint_imports_command()", "--no-cache")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


_FOO = """
import numpy as np
from litecl.cases.unary import CASES
from litecl.converter.lower.elementwise import LOWERINGS
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import BUILTINS
from litecl.interpreter.ops.unary import EXP, FOO
from support.build import Graph, model

assert BUILTINS["FOO"] is FOO and "Foo" in LOWERINGS
assert sum(case.op is FOO for case in CASES) > 3
for ops, kernel, expected in (
    ((FOO,), "unary", lambda x: x * abs(x)),
    ((FOO, EXP), "chain", lambda x: np.exp(x * abs(x))),
    ((EXP, FOO), "chain", lambda x: np.exp(2 * x)),
):
    g = Graph()
    y = x = g.input((3, 41))
    for op in ops:
        y = g.op(op, [y], NoOptions())
    for delegates in ([], [CLDelegate("native", strict=True, cache_dir=None)]):
        interpreter = Interpreter(model(g.build(y)), delegates=delegates)
        interpreter.allocate_tensors()
        value = np.linspace(-2, 2, 123, dtype=np.float32).reshape(3, 41)
        interpreter.set_tensor(x, value)
        interpreter.invoke()
        np.testing.assert_allclose(interpreter.get_tensor(y), expected(value.astype(np.float64)), rtol=1e-5)
        if delegates:
            (row,) = interpreter.delegation_report().partitions
            assert row.launches == 1 and [name.split(":")[0] for name in row.kernels] == [kernel], row
"""


def test_an_operator_of_one_input(tree: Tree) -> None:
    """Five files with everything: interpreter, cases, kernel, chains, converter; and none of them lists names twice."""
    tree.insert(
        "interpreter/ops/unary.py", 'SQUARE = unary("SQUARE", np.square)', 'FOO = unary("FOO", lambda x: x * np.abs(x))'
    )
    tree.insert("tests/cases/unary.py", "    ops.SQUARE,", "    ops.FOO,")
    tree.insert("kernels_cl/functions.h", "#define SQUARE(x) ((x) * (x))", "#define FOO(x) ((x) * abs_v(x))")
    tree.insert(
        "delegate/ops/unary.py", "    _function(unary.SQUARE, chains=True),", "    _function(unary.FOO, chains=True),"
    )
    tree.insert("converter/lower/elementwise.py", '    "Abs": unary.ABS,', '    "Foo": unary.FOO,')
    tree.run("-c", _FOO)
    changed = tree.changed()
    assert len(changed) == 5, changed
    tree.keeps_contracts()


_RECORD = '''
"""The sine of what is negated, as one kernel. No file has this operator: the pass ``negated_sines`` finds it."""

from dataclasses import dataclass

from litecl.delegate.cl_op import Call, ClOp, Record, Step
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.kit.schedule import elements
from litecl.interpreter.op import NoOptions


@dataclass(frozen=True)
class NegatedSine(Record):
    """What is multiplied with the sine."""

    factor: float


def _lower(call: Call) -> list[Step]:
    (y,) = call.outputs
    share = elements("negated_sine", y.spec.size, call.target)
    return [share.launch("negated_sine", (call.input(0), y, NegatedSine(-1.0), *share.args), {}, 2 * y.spec.size)]


NEGATED_SINE = ClOp(composed("NEGATED_SINE", NoOptions), claim=takes(*FLOAT), lower=_lower)
'''
_PASS = '''
"""Negations before a sine are part of it."""

from litecl.delegate.ops.negated_sine import NEGATED_SINE
from litecl.delegate.plan.fusion import Found, fuse, matching
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.match import Any, Pattern
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.unary import NEG, SIN

_NEGATED = Pattern(SIN, [Pattern(NEG, [Any("x")])])


def negated_sines(graph: RegionGraph) -> RegionGraph:
    """Fuse the negation of floats into the sine that alone reads it."""
    return fuse(graph, matching(_NEGATED, _negated))


def _negated(graph: RegionGraph, node: RegionNode, found: Found) -> RegionNode:
    return node.behind(found.nodes[1], kernel=NEGATED_SINE, inputs=[found["x"]], options=NoOptions())
'''
_KERNEL = """
// The sine of what is negated: y[i] = factor * sin(x[i]). A work-item takes per_item elements.
#include "common.h"
#include <NegatedSine>

KERNEL void negated_sine(ITEM __global const float *x, __global float *y, __global const NegatedSine *s, int n,
                         int per_item) {
    SHARE(n, per_item);
    for (int i = start; i < end; ++i) y[i] = s->factor * sin(x[i]);
}
"""
_TEST = '''
"""The pass that makes a negation part of the sine behind it."""

import numpy as np

from litecl.delegate import CLDelegate
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter import Interpreter
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.unary import NEG, SIN
from support.build import Graph, model
from support.regions import after, names


def test_whole() -> None:
    g = Graph()
    x = g.input((3, 41))
    y = g.op(SIN, [g.op(NEG, [x], NoOptions())], NoOptions())
    assert names(after(PASSES, g, y)) == ["NEGATED_SINE"]
    interpreter = Interpreter(model(g.build(y)), delegates=[CLDelegate("native", strict=True, cache_dir=None)])
    interpreter.allocate_tensors()
    value = np.linspace(-2, 2, 123, dtype=np.float32).reshape(3, 41)
    interpreter.set_tensor(x, value)
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(y), np.sin(-value.astype(np.float64)), rtol=1e-5, atol=1e-6)
    assert "negated_sine" in str(interpreter.delegation_report().partitions[0].kernels)


def test_what_others_read() -> None:
    g = Graph()
    negative = g.op(NEG, [g.input((3, 41))], NoOptions())
    assert names(after(PASSES, g, g.op(SIN, [negative], NoOptions()), negative)) == ["NEG", "SIN"]
'''


def test_a_fusion(tree: Tree) -> None:
    """Six files: the pattern, the record and the text of its kernel, a test, a line in the list, one in the docs."""
    tree.write("delegate/ops/negated_sine.py", _RECORD)
    tree.write("delegate/plan/passes/negated_sines.py", _PASS)
    tree.write("kernels_cl/negated_sine.cl", _KERNEL)
    tree.write("tests/delegate/test_pass_negated_sines.py", _TEST)
    pipeline = "delegate/plan/pipeline.py"
    (joins,) = (line for line in (ROOT / pipeline).read_text().splitlines() if line.endswith(" import joins"))
    tree.insert(
        pipeline, joins, joins.replace("passes.joins import joins", "passes.negated_sines import negated_sines")
    )
    tree.replace(
        pipeline,
        "    pads,\n",
        "    negated_sines,\n    pads,\n",
    )
    (row,) = (
        line
        for line in (ROOT / "docs/architecture/delegate.md").read_text().splitlines()
        if line.startswith("| `in_place` ")
    )
    tree.insert("docs/architecture/delegate.md", row, "| `negated_sines` | the negation before a sine is part of it |")
    tree.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/delegate/test_pass_negated_sines.py")
    changed = tree.changed()
    assert len(changed) == 6, changed
    tree.keeps_contracts()
