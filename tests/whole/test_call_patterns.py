"""Programs as they are found in public: on LiteRT, with the import changed, and unchanged under ``install_as``."""

import importlib.metadata
import importlib.util
import multiprocessing
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
    """Return a program's ``result`` after replacing every name of a package in its source."""
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


def test_there_are_twenty_one() -> None:
    assert len(SCRIPTS) == 21
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


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_a_program_get_litecl(method: str, models: Path, tmp_path: Path) -> None:
    """Those of every start method: Python 3.14 starts them afresh by default, as macOS and Windows do."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform has no {method}")
    script = tmp_path / "workers.py"
    script.write_text(
        "import multiprocessing\n"
        "from tflite_runtime.interpreter import Interpreter\n"
        "def run(path):\n"
        "    return Interpreter(path).__module__\n"
        "if __name__ == '__main__':\n"
        f"    with multiprocessing.get_context({method!r}).Pool(1) as pool:\n"
        f"        print(pool.map_async(run, [{str(models / 'classifier.tflite')!r}]).get(60))\n"
    )
    command = [sys.executable, "-m", "litecl.run_as", "--cpu", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == f"['{DELEGATED}']\n", done.stderr


TENSORFLOW_IMPORTS = (
    "from tensorflow.lite.python.interpreter import Interpreter",  # EdjeElectronics' scripts, frigate
    "from tensorflow.lite.python import interpreter; Interpreter = interpreter.Interpreter",
    "import tensorflow.lite.python.interpreter as i; Interpreter = i.Interpreter",
    "from tensorflow.lite import Interpreter",
    "from tensorflow import lite; Interpreter = lite.Interpreter",  # birdnetlib
    "import tensorflow.lite as tflite; Interpreter = tflite.Interpreter",  # basic-pitch
    "import tensorflow as tf; Interpreter = tf.lite.Interpreter",
    "import tensorflow.compat.v1 as tf; Interpreter = tf.lite.Interpreter",
    "import tensorflow.compat.v2 as tf; Interpreter = tf.lite.Interpreter",  # wav2x
    "from tensorflow.compat.v1 import lite; Interpreter = lite.Interpreter",
)
NO_TENSORFLOW = """
import sys
from importlib.abc import MetaPathFinder
class Missing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("tensorflow", "keras"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""


def _printed(tmp_path: Path, program: str, before: str = "", *flags: str) -> "subprocess.CompletedProcess[str]":
    """Run a program under run_as, after what is to happen first."""
    (tmp_path / "program.py").write_text(program)
    start = f"{before}\nfrom litecl.run_as import main\nmain({[*flags, 'program.py']!r})\n"
    command = [sys.executable, "-c", start]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("missing", [True, pytest.param(False, marks=pytest.mark.tensorflow)], ids=["missing", "there"])
def test_every_way_to_tensorflows_interpreter_leads_to_litecls(missing: bool, tmp_path: Path) -> None:
    """None is left that runs TensorFlow Lite and says nothing of it."""
    program = "\n".join(f"{statement}\nprint(Interpreter.__module__)" for statement in TENSORFLOW_IMPORTS)
    done = _printed(tmp_path, program, NO_TENSORFLOW if missing else "", "--as", "tensorflow", "--cpu")
    assert done.stdout.splitlines()[-len(TENSORFLOW_IMPORTS) :] == [DELEGATED] * len(TENSORFLOW_IMPORTS), done.stderr


def test_names_of_tensorflow_are_as_before_once_it_is_undone() -> None:
    before = {name for name in sys.modules if name.startswith("tensorflow")}
    if importlib.util.find_spec("tensorflow") is not None and "tensorflow" not in before:
        pytest.skip("would load TensorFlow")
    with litecl.install_as("tensorflow", cpu=True):
        lite = importlib.import_module("tensorflow.lite")
        assert lite.Interpreter.__module__ == DELEGATED
    if "tensorflow" not in before:
        assert not [name for name in sys.modules if name.startswith("tensorflow")]
    else:
        assert importlib.import_module("tensorflow").lite.Interpreter.__module__ != DELEGATED


def test_a_program_that_needs_tensorflow_is_told_how_to_do_without(tmp_path: Path) -> None:
    done = _printed(tmp_path, "import tensorflow as tf\n", NO_TENSORFLOW)
    assert "ModuleNotFoundError" in done.stderr and "its tf.lite with: --as tensorflow" in done.stderr
    done = _printed(tmp_path, "import no_such_module\n")
    assert "--as tensorflow" not in done.stderr


def test_a_program_that_wants_no_delegate_is_told_how_to_have_one(models: Path) -> None:
    program = """
from tflite_runtime.interpreter import Interpreter, OpResolverType
for _ in range(2):
    kind = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter("classifier.tflite", experimental_op_resolver_type=kind)
    interpreter.allocate_tensors()
print("device" in repr(interpreter))
"""
    plain = _printed(models, program)
    assert plain.stdout == "False\n" and plain.stderr.count("run_as --always") == 1, plain.stderr
    always = _printed(models, program, "", "--always")
    assert always.stdout == "True\n" and "--always" not in always.stderr, always.stderr
    cpu = _printed(models, program, "", "--cpu")
    assert cpu.stdout == "False\n" and "--always" not in cpu.stderr, cpu.stderr
