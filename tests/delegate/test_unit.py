"""A region's files as one source, and its machine code without PoCL's library of functions."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litecl.kernels_cl
from litecl.delegate.backend.sources import source_of
from litecl.delegate.opencl import programs
from litecl.delegate.opencl.capabilities import capabilities
from litecl.delegate.opencl.device import devices
from litecl.delegate.opencl.unit import File, _names, unit
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.binary import MAXIMUM
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.rnn import RNN, RNNOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.unary import LOGISTIC, RELU, SIN, TANH
from support.build import Graph, model, randn
from support.small_models import prepared, reference, run

_KERNELS = Path(litecl.kernels_cl.__path__[0])
_FUNCTION = re.compile(r"^(?:SHARED|INLINE|OUT_OF_LINE|inline|static|KERNEL)\b[^;{}#]*?(\w+)\([^;{}#]*\) \{", re.M)
_TYPE = re.compile(r"^typedef [^;{\n\[]*?(\w+)(?: (?:__attribute__|AT_ANY)\(.*\))?;", re.M)
_MAIN = File("region.cl", ("-DVW=16",))

as_one = pytest.mark.skipif(
    not any(capabilities(device).whole for device in devices()), reason="no compiler makes programs of one source"
)


def network(activation: Op = LOGISTIC) -> Model:
    """Dense layers and an activation each: launches enough for one kernel."""
    g, rng = Graph(), np.random.default_rng(3)
    y = g.input((3, 5))
    for _ in range(3):
        dense = g.op(FULLY_CONNECTED, [y, g.const(randn(rng, 5, 5)), g.const(randn(rng, 5))], FullyConnectedOptions())
        y = g.op(SOFTMAX, [g.op(activation, [dense], NoOptions())], SoftmaxOptions(beta=2.0))
    return model(g.build(y))


@pytest.mark.parametrize("file", sorted(path.name for path in _KERNELS.glob("*.cl")))
def test_all_functions_of_a_file_are_renamed(file: str) -> None:
    functions = {*_FUNCTION.findall(source_of(file))}
    assert functions <= {*_names(file)[0], "call_at", "assist", "attend"} | functions & {*_names(file)[0]}
    assert "get_global_id" not in _names(file)[0]


@pytest.mark.parametrize("file", sorted(path.name for path in _KERNELS.glob("*.cl")))
def test_all_types_of_a_file_are_renamed(file: str) -> None:
    assert {*_TYPE.findall(source_of(file))} <= {*_names(file)[0], *_names("builtins.h")[0]}


def test_functions_that_a_macro_defines_are_renamed() -> None:
    assert {"load_t", "store_t", "t_u", "load_r", "store_r", "r_u"} <= {*_names("binary.cl")[0]}


@as_one
def test_files_with_vectors_of_several_types_need_no_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs.Programs, "_linked", lambda *given: pytest.fail("a linker was needed"))
    g = Graph()
    x, other = g.input((3, 5)), g.input((3, 1))
    y = g.op(SOFTMAX, [g.op(TANH, [x], NoOptions())], SoftmaxOptions(beta=1.0))
    y = g.op(SOFTMAX, [g.op(MAXIMUM, [y, other], MAXIMUM.options())], SoftmaxOptions(beta=1.0))
    y = g.op(LESS, [y, other], LESS.options())
    prepared(model(g.build(y)), cache_dir=None, strict=True, num_threads=1)


def _names_of(files: list[File], function: str) -> list[str]:
    """Return a function's name in each file, in order."""
    return re.findall(rf"#define {function} (\w+)\n", unit(files))


def test_files_that_share_a_function_have_one_name_for_it() -> None:
    wide, narrow = (File("quantized_conv_2d.cl", ("-DT=char", f"-DVW={vw}")) for vw in (16, 8))
    unsigned = File("quantized_conv_2d.cl", ("-DT=uchar", "-DVW=16"))
    files = [narrow, wide, unsigned, wide, _MAIN]
    for function in ("gather_patches", "sum_patches"):
        first, second, third, fourth = _names_of(files, function)
        assert second == fourth
        assert len({first, second, third}) == 3
    assert len({*_names_of(files, "multiply_rows")}) == 4


X = np.linspace(-4, 4, 15, dtype=np.float32).reshape(3, 5)


def _check(content: Model, **options: Any) -> None:
    interpreter = prepared(content, cache_dir=None, strict=True, **options)
    assert interpreter.delegation_report().partitions[0].manner.runs == "one kernel"
    np.testing.assert_allclose(run(interpreter, X), run(reference(content), X), rtol=1e-5, atol=1e-6)


@as_one
@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 2}, {"num_threads": 1, "profile": True}])
def test_a_region_needs_no_linker(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs.Programs, "_linked", lambda *given: pytest.fail("a linker was needed"))
    _check(network(), **options)


@as_one
def test_a_shared_function_is_that_of_a_file_that_compiles_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells of floats do without the function that those of bytes share with convolutions."""
    monkeypatch.setattr(programs.Programs, "_linked", lambda *given: pytest.fail("a linker was needed"))
    g, rng = Graph(), np.random.default_rng(3)
    y = g.input((3, 5))
    of_floats = [g.const(randn(rng, 5, 5)) for _ in range(2)]
    of_bytes = [g.const(rng.integers(-9, 9, (5, 5)).astype(np.int8), scale=0.1) for _ in range(2)]
    for weights in (of_floats, of_bytes):
        y = g.op(RNN, [y, *weights, g.const(randn(rng, 5)), g.variable((3, 5))], RNNOptions())
    content = model(g.build(y))
    interpreter = prepared(content, cache_dir=None, strict=True, num_threads=1)
    np.testing.assert_allclose(run(interpreter, X), run(reference(content), X), rtol=1e-3, atol=1e-3)


def _links(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    keys: list[str] = []
    linked = programs.Programs._linked
    monkeypatch.setattr(
        programs.Programs, "_linked", lambda self, key, files: (keys.append(key), linked(self, key, files))[1]
    )
    return keys


@as_one
def test_what_calls_the_library_is_linked_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that is missing would end the process."""
    keys = _links(monkeypatch)
    _check(network(SIN), num_threads=1)
    assert len(keys) == 1


@pytest.mark.refused
@as_one
def test_files_that_are_not_one_source_are_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = _links(monkeypatch)
    monkeypatch.setattr(programs, "unit", lambda files: "no kernel")
    _check(network(TANH), num_threads=1)
    assert len(keys) == 1


_RUN = """
import sys
import numpy as np
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
for path in sys.argv[2:]:
    interpreter = Interpreter(path, delegates=[CLDelegate(num_threads=1, cache_dir=sys.argv[1], strict=True)])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.load(sys.argv[1] + "/x.npy"))
    interpreter.invoke()
    np.save(path, interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
"""


@as_one
def test_programs_are_told_apart_and_processes_end(tmp_path: Path) -> None:
    """PoCL keeps what it compiles of such programs by the names of kernels, and may miscount them, which ends a process
    with an error. The first process compiles, the second one loads.
    """
    contents = {str(tmp_path / f"{op.name}.tflite"): network(op) for op in (TANH, RELU)}
    for path, content in contents.items():
        Path(path).write_bytes(write(content))
    np.save(tmp_path / "x.npy", X)
    environment = {**os.environ, "POCL_CACHE_DIR": str(tmp_path / "pocl")}
    command = [sys.executable, "-c", _RUN, str(tmp_path), *contents]
    for _ in range(2):
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert (ended.returncode, ended.stderr) == (0, "")
        for path, content in contents.items():
            np.testing.assert_allclose(np.load(f"{path}.npy"), run(reference(content), X), rtol=1e-5, atol=1e-6)
    assert len(list(tmp_path.glob("region*.bin"))) == 2
