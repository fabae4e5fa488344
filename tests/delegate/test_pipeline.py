"""The passes of a region: those for operators that few models have are imported for these models alone."""

import subprocess
import sys

import pytest

from litecl.delegate.plan.pipeline import PASSES, seldom
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.unary import ABS
from support.build import Graph
from support.regions import region

_SELDOM = ("attention", "layer_norms", "rope", "siblings", "weight_only")


def test_imported_when_needed() -> None:
    code = (
        "import sys; from litecl.delegate import CLDelegate; from litecl.interpreter import Interpreter\n"
        f"names = ['litecl.delegate.plan.passes.' + name for name in {_SELDOM!r}]\n"
        "print(*(name for name in names if name in sys.modules))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_operators() -> None:
    """A pass runs on graphs with its operators: here one that does not exist, so that running it fails."""
    missing = seldom("no_such_pass", "no_such_pass", "CONCATENATION MEAN")
    assert missing.__name__ == "no_such_pass"
    g = Graph()
    x = g.input((2, 4))
    without = region(g, g.op(ABS, [x], NoOptions()))
    assert missing(without) is without
    having = region(g, g.op(CONCATENATION, [x, x], ConcatenationOptions(0)))
    with pytest.raises(ModuleNotFoundError, match="no_such_pass"):
        missing(having)


def test_names() -> None:
    """Dumps name passes by their functions, which exist."""
    assert {"attention", "rms_norms", "rope", "siblings", "weight_only"} < {run.__name__ for run in PASSES}
