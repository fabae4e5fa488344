"""What ``import litecl`` gives."""

import subprocess
import sys

import litecl
import litecl.errors
from litecl.converter import Converter
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter import errors as raised


def test_names() -> None:
    """Every listed name is there, and is the one of its package."""
    assert {"Interpreter", "CLDelegate", "Converter", "Predictor", "Generator", "bisect"} < {*dir(litecl)}
    assert all(getattr(litecl, name) is not None for name in dir(litecl))
    assert (litecl.Interpreter, litecl.CLDelegate, litecl.Converter) == (Interpreter, CLDelegate, Converter)
    assert not hasattr(litecl, "Interpretor")


def test_errors() -> None:
    """``litecl.errors`` has every class that is raised or warned of, and nothing else."""
    classes = {each for each in vars(raised).values() if isinstance(each, type) and each.__module__ == raised.__name__}
    assert {each for name, each in vars(litecl.errors).items() if not name.startswith("_")} == classes


def test_imports_wait() -> None:
    """The package alone imports nothing else, numpy included."""
    code = "import sys, litecl; print([m for m in sys.modules if m.startswith(('litecl.', 'numpy'))], dir(litecl))"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("[] ['CLDelegate', ")
