"""What ``import litecl`` gives."""

import subprocess
import sys

import litecl
from litecl.converter import Converter
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter


def test_names() -> None:
    """Every listed name is there, and is the one of its package."""
    assert {"Interpreter", "CLDelegate", "Converter", "Predictor", "Generator", "bisect"} < {*dir(litecl)}
    assert all(getattr(litecl, name) is not None for name in dir(litecl))
    assert (litecl.Interpreter, litecl.CLDelegate, litecl.Converter) == (Interpreter, CLDelegate, Converter)
    assert not hasattr(litecl, "Interpretor")


def test_imports_wait() -> None:
    """The package alone imports nothing else, numpy included."""
    code = "import sys, litecl; print([m for m in sys.modules if m.startswith(('litecl.', 'numpy'))], dir(litecl))"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("[] ['CLDelegate', ")
