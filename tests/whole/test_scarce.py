"""Little stack, little address space, no file descriptors, no folder: a right answer or a typed error, never a signal.

Everything runs in a process of its own, for limits of a process cannot be raised again, and what goes wrong ends it.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.delegate.native import compiler
from litecl.delegate.opencl.devices.device import devices as opencl_devices
from litecl.delegate.opencl.environment import POCL
from litecl.interpreter.file.writer import write
from litecl.interpreter.ops.cumsum import CUMSUM, CumsumOptions
from support import small_models
from support.build import Graph
from support.build import model as g_model
from support.shared import MODELS, needs_shared
from support.skips import as_itself

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of a process are tried on Linux")
_needs_compiler = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor")
_TESTS = Path(__file__).parents[1]
_MOBILENET = MODELS / "tensorflow-tflite-support" / "mobilenet_v1_0.25_224_1_default_1.tflite"

_COMMON = """
import os, re, resource, sys, threading
import numpy as np
import numpy.testing
from functools import partial
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError, LiteclError, ModelError

def address_space(more_bytes):
    now = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
    resource.setrlimit(resource.RLIMIT_AS, (now + more_bytes, resource.getrlimit(resource.RLIMIT_AS)[1]))

FREE = os.open(os.devnull, 0)  # the lowest number that is free
os.close(FREE)

def descriptors(more):
    resource.setrlimit(resource.RLIMIT_NOFILE, (FREE + more, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

def answer(interpreter):
    interpreter.allocate_tensors()
    (detail,) = interpreter.get_input_details()
    value = np.linspace(-1, 1, np.prod(detail["shape"]), dtype=np.float32)
    interpreter.set_tensor(detail["index"], value.reshape(detail["shape"]))
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

def native(model, **options):
    return Interpreter(model, delegates=[CLDelegate("native", cache_dir=None, **options)])

def message(kind, function, *arguments):
    try:
        function(*arguments)
    except kind as error:
        return str(error)
    raise AssertionError("no error")
"""


def _python(script: str, *arguments: str, **environment: str) -> None:
    """Run a script, which must come to its end."""
    path = os.pathsep.join([str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", _COMMON + textwrap.dedent(script), *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a small model with products."""
    path = tmp_path_factory.mktemp("models") / "chain.tflite"
    path.write_bytes(write(small_models.chain()))
    return str(path)


@_needs_compiler
@pytest.mark.parametrize(("threads", "stack_kib"), [(1, 32), (2, 32), (0, 128)])
def test_little_stack(threads: int, stack_kib: int) -> None:
    """Threads of 32 KiB make, compile and run every kind of model: an image, LSTMs, loops, quantized ones. The CPU
    (threads: 0) needs 128 KiB.
    """
    _python(
        """
        from support.fault_models import Session, expected, subjects

        def use():
            for subject in found:
                options = {"num_threads": threads, **subject.options}
                session = Session(subject, [CLDelegate("native", **options)] if threads else [])
                results.append([step() for step in session.steps()])
                assert not threads or session.interpreter.delegation_report().claimed

        threads, stack_kib = map(int, sys.argv[1:])
        found, results = [s for s in subjects() if "two" not in s.name], []
        wanted = [expected(subject.name) for subject in found]
        threading.stack_size(stack_kib << 10)
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        for got, right in zip(results, wanted, strict=True):
            for arrays in zip(got, right, strict=True):
                for a, b in zip(*arrays, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        """,
        str(threads),
        str(stack_kib),
    )


@pytest.mark.nightly
@pytest.mark.skipif(POCL not in opencl_devices()[0].platform.name, reason="PoCL only")
@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 2, "queue_loops": True}])
def test_little_stack_for_a_driver(options: dict[str, Any]) -> None:
    """PoCL needs 256 KiB to compile and to run kernels. Threads of 32 KiB load it, list its devices, make interpreters,
    and run them and those of another thread, whose own stack is ample; errors arrive where they belong.
    """
    _python(
        """
        from litecl.delegate.devices import devices
        from support.fault_models import Session, expected, subjects

        options, outcomes = eval(sys.argv[1]), []

        def little(function):
            outcome = []
            threading.stack_size(32 << 10)
            thread = threading.Thread(target=lambda: outcome.append(function()))
            thread.start()
            threading.stack_size(0)
            thread.join()
            return outcome[0]

        def here(function):
            return function()

        def made(subject, **more):
            given = {**options, **subject.options, **more}
            return Session(subject, [CLDelegate("pocl", cache_dir=None, strict=True, **given)]).steps()

        assert little(lambda: [device.name for device in devices()])
        from support import pocl_processor
        pocl_processor.watch()
        for subject in [s for s in subjects() if s.name in ("image", "lstm", "limited loop", "integer LSTM")]:
            for first, then in (little, little), (here, little), (little, here):
                allocate, *steps = first(lambda: made(subject))
                first(allocate)
                got = [first(steps[0]), *(then(step) for step in steps[1:])]
                for arrays in zip(got, expected(subject.name)[1:], strict=True):
                    for a, b in zip(*arrays, strict=True):
                        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
                if subject.name == "image":  # which computes the same again
                    for again in [little(steps[0]) for _ in range(20)]:
                        np.testing.assert_allclose(again[-1], got[0][-1], rtol=1e-6)
        allocate, invoke, *_ = made(next(s for s in subjects() if s.name == "loop"), max_loop_iterations=1)
        allocate()
        assert "more than 1 iterations" in little(lambda: message(ModelError, invoke))
        """,
        repr(options),
    )


@_needs_compiler
@needs_shared
def test_little_address_space_for_a_compiler() -> None:
    _python(
        """
        wanted = answer(Interpreter(sys.argv[1]))
        resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
        interpreter = native(sys.argv[1], strict=True)
        np.testing.assert_allclose(answer(interpreter), wanted, rtol=1e-3, atol=1e-5)
        assert interpreter.delegation_report().claimed == len(interpreter.delegation_report().nodes)
        """,
        str(_MOBILENET),
    )


def test_no_address_space_for_products(model: str) -> None:
    """OpenBLAS would end the process; nor can a large input be copied, run through a model, or an output be copied."""
    _python(
        """
        interpreter = Interpreter(sys.argv[1])
        address_space(1 << 20)
        assert "BLAS" in message(ModelError, interpreter.allocate_tensors)
        address_space(80 << 20)
        answer(interpreter)
        interpreter.resize_tensor_input(0, [1 << 18, 5])
        interpreter.allocate_tensors()
        (output,) = [detail["index"] for detail in interpreter.get_output_details()]
        give = partial(interpreter.set_tensor, 0, np.zeros((1 << 18, 5), np.float32))
        for step in (give, interpreter.invoke, partial(interpreter.get_tensor, output)):
            address_space(1 << 20)
            assert re.search("allocate|not enough memory", message(ModelError, step)), step
            address_space(80 << 20)
            step()
        """,
        model,
    )


@as_itself
@pytest.mark.parametrize("error", ["MemoryError()", "ImportError('failed to map segment')", "OSError(24, 'Too many')"])
def test_a_back_end_that_cannot_be_imported(model: str, error: str) -> None:
    """The CPU runs the model, or an error says why the device cannot."""
    _python(
        f"""
        class Refusing:
            def find_spec(self, name, *rest):
                if name == "litecl.delegate.native.backend":
                    raise {error}

        sys.meta_path.insert(0, Refusing())
        assert message(DelegateError, native(sys.argv[1], strict=True).allocate_tensors)
        interpreter = native(sys.argv[1])
        np.testing.assert_allclose(answer(interpreter), answer(Interpreter(sys.argv[1])))
        assert interpreter.delegation_report().failures
        """,
        model,
    )


@pytest.fixture(scope="module")
def rare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a model with an operator that nothing else imports."""
    g = Graph()
    path = tmp_path_factory.mktemp("models") / "cumsum.tflite"
    path.write_bytes(write(g_model(g.build(g.op(CUMSUM, [g.input((3,)), g.const(np.int32(0))], CumsumOptions())))))
    return str(path)


@_needs_compiler
@pytest.mark.parametrize("more", [0, 1, 4, 6])
def test_few_file_descriptors(model: str, rare: str, more: int) -> None:
    """Too few for a compiler's pipes and files; the same interpreter's content is read when there are some again."""
    _python(
        """
        content, rare, more = open(sys.argv[1], "rb").read(), open(sys.argv[3], "rb").read(), int(sys.argv[2])
        descriptors(more)
        if not more:
            assert "open files" in message(ModelError, Interpreter, rare)
            descriptors(20)
        interpreter = native(content)
        wanted = answer(Interpreter(content))
        descriptors(more)
        np.testing.assert_allclose(answer(interpreter), wanted)
        assert "open files" in " ".join(interpreter.delegation_report().failures)
        descriptors(20)
        again = native(content, strict=True)
        np.testing.assert_allclose(answer(again), wanted, rtol=1e-4, atol=1e-5)
        """,
        model,
        str(more),
        rare,
    )


@_needs_compiler
def test_no_folder_to_compile_in(model: str) -> None:
    _python(
        """
        import tempfile
        def refuse(): raise FileNotFoundError(2, "No usable temporary directory")
        tempfile._get_default_tempdir = refuse
        interpreter = native(sys.argv[1])
        np.testing.assert_allclose(answer(interpreter), answer(Interpreter(sys.argv[1])))
        assert "temporary folder" in " ".join(interpreter.delegation_report().failures)
        """,
        model,
    )


@_needs_compiler
def test_no_thread_to_warm_up_in(model: str) -> None:
    """The system starts no more threads: the model is prepared in the thread that asks."""
    _python(
        """
        import _thread
        def refuse(*arguments): raise RuntimeError("can't start new thread")
        threading._start_new_thread = refuse
        interpreter = native(sys.argv[1], warm_up="background", strict=True)
        np.testing.assert_allclose(answer(interpreter), answer(Interpreter(sys.argv[1])), rtol=1e-4, atol=1e-5)
        assert interpreter.delegation_report().claimed
        """,
        model,
    )
