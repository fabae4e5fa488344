"""Programs as they are found in public: on LiteRT, with the import changed, and unchanged under ``install_as``."""

import importlib.metadata
import importlib.util
import pkgutil
import re
import runpy
import subprocess
import sys
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litecl
from litecl.interpreter import Interpreter
from support.pattern_models import write_all

SCRIPTS = sorted((Path(__file__).resolve().parents[1] / "support" / "patterns").glob("*.py"))
WRITTEN_FOR = re.compile(r"\b(?:ai_edge_litert|tflite_runtime)\b")
DELEGATED = "litecl.drop_in.interpreter"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every model that the programs ask for."""
    folder = tmp_path_factory.mktemp("patterns")
    write_all(folder)
    return folder


def _as_if_for(package: str, script: Path) -> Any:
    """What a program leaves in ``result`` when every name of a package in it is changed."""
    names: dict[str, Any] = {"__name__": "__main__"}
    text = WRITTEN_FOR.sub(package, script.read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, str(script), "exec"), names)
    return names["result"]


def _unchanged(script: Path) -> dict[str, Any]:
    with ExitStack() as installed:
        for package in ("ai_edge_litert", "tflite_runtime"):
            installed.enter_context(litecl.install_as(package))
        return runpy.run_path(str(script), run_name="__main__")


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_close, a, b))
    if isinstance(a, dict):
        return bool(a.keys() == b.keys()) and all(_close(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray | np.floating | float):
        # Scores of 8 bits may be one step apart: XNNPACK sums in another order.
        integers = np.asarray(a).dtype.kind in "iu"
        return np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=2e-5, atol=1 if integers else 1e-6)
    return bool(a == b)


def test_there_are_twenty() -> None:
    assert len(SCRIPTS) == 20
    assert all(WRITTEN_FOR.search(script.read_text()) for script in SCRIPTS)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_program_runs(script: Path, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(models)
    expected = _as_if_for("ai_edge_litert", script)
    changed = _as_if_for("litecl", script)
    assert _close(expected, changed), ("import changed", expected, changed)
    names = _unchanged(script)
    assert _close(expected, names["result"]), ("install_as", expected, names["result"])
    for value in names.values():
        if isinstance(value, Interpreter) and value._preparation.delegates:
            assert type(value).__module__ == DELEGATED
            assert value.delegation_report().device != "none"


def test_a_program_runs_by_a_command(models: Path) -> None:
    script = next(script for script in SCRIPTS if script.stem == "pycoral")
    code = f"import runpy; runpy.run_path({str(script)!r}); import tflite_runtime.interpreter as t; print(t.__name__)"
    (models / "main.py").write_text(f"import sys\nprint(sys.argv[1:])\n{code}\n")
    command = [sys.executable, "-m", "litecl.run_as", "main.py", "--flag", "a"]
    done = subprocess.run(command, cwd=models, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["['--flag', 'a']", DELEGATED]


def test_ai_edge_quantizer(models: Path) -> None:
    """Calibrates, quantizes and validates through litecl's interpreter as it does through LiteRT's."""
    pytest.importorskip("ai_edge_quantizer")
    program = """
import sys
import ai_edge_litert.interpreter
from ai_edge_quantizer import quantizer, recipe
from ai_edge_quantizer.utils import tfl_interpreter_utils as utils
q = quantizer.Quantizer("classifier.tflite")
q.load_quantization_recipe(recipe.static_wi8_ai8())
details = utils.create_tfl_interpreter("classifier.tflite").get_signature_runner().get_input_details()
data = {"serving_default": utils.create_random_dataset(details, 4, 0)}
q.quantize(q.calibrate(data))
errors = q.validate(data).get_all_tensor_results()
errors = {name: f"{value['mse']:.1e}" for name, value in errors.items()}
print(ai_edge_litert.interpreter.Interpreter.__module__, errors)
"""
    (models / "quantize.py").write_text(program)
    said = []
    for how in ([], ["-m", "litecl.run_as"]):
        command = [sys.executable, *how, "quantize.py"]
        done = subprocess.run(command, cwd=models, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.splitlines()[-1])
    (theirs, their_errors), (ours, our_errors) = (line.split(" ", 1) for line in said)
    assert (theirs, ours) == ("ai_edge_litert.interpreter", DELEGATED)
    assert their_errors == our_errors


def test_programs_that_look_before_they_import() -> None:
    """A package that is not installed is found, has a version, submodules, and may be loaded again."""
    name = "tflite_runtime"
    assert importlib.util.find_spec(name) is None
    with litecl.install_as(name):
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.name == name
        assert importlib.util.find_spec(f"{name}.interpreter") is not None
        assert importlib.util.find_spec(f"{name}.nothing") is None
        package = importlib.import_module(name)
        assert package.__version__ == importlib.metadata.version(name) == importlib.metadata.version("tflite-runtime")
        assert Path(package.__file__ or "").is_file()
        assert importlib.reload(package) is package
        assert package.interpreter.Interpreter is importlib.import_module(f"{name}.interpreter").Interpreter
        assert [module.name for module in pkgutil.iter_modules(package.__path__)] == []
        assert importlib.metadata.version("numpy") == np.__version__
    assert importlib.util.find_spec(name) is None
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version(name)


def test_programs_that_look_under_run_as(tmp_path: Path) -> None:
    """EdjeElectronics' detection scripts ask so whether to import TensorFlow."""
    script = tmp_path / "look.py"
    script.write_text(
        "import importlib.util\n"
        "if importlib.util.find_spec('tflite_runtime'):\n"
        "    from tflite_runtime.interpreter import Interpreter\n"
        "print(Interpreter.__module__)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "litecl.run_as", "--cpu", str(script)], capture_output=True, text=True, check=False
    )
    assert ran.stdout == f"{DELEGATED}\n", ran.stderr
