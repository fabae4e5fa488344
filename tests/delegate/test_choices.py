"""A request that can't be met is an error, and every automatic choice is reported."""

import logging
import pickle
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl
import pytest

import litecl
from litecl.delegate import BuildStep, CLDelegate, disk
from litecl.delegate.naming import advice, counted, named
from litecl.delegate.native import compiler
from litecl.interpreter import Interpreter, OpResolverType
from litecl.interpreter.errors import ArgumentError, DelegateError, DeviceNotFound
from litecl.interpreter.file.writer import write
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.unary import TANH
from support import devices
from support.build import Graph, model
from support.pattern_models import classifier

CONTENT = write(classifier())


def _means() -> bytes:
    """Four reductions, which are one kernel of one file, and an operator to refuse."""
    g = Graph()
    x = g.input((2, 2, 2, 2))
    for axis in range(4):
        x = g.op(MEAN, [x, g.const(np.array([axis], np.int32))], ReducerOptions(keep_dims=True))
    return write(model(g.build(g.op(TANH, [x], TANH.options()))))


MEANS = _means()


@dataclass(frozen=True)
class Found:
    """A device that is there."""

    name: str


DEVICES = [Found("cpu-znver3-AMD"), Found("cpu-minimal-znver3-AMD"), Found("GeForce"), Found("GeForce")]


def prepared(*delegates: Any, content: bytes = CONTENT) -> Interpreter:
    """An interpreter with delegates, allocated."""
    interpreter = Interpreter(content, delegates=delegates)
    interpreter.allocate_tensors()
    return interpreter


def test_every_option_is_explained() -> None:
    explained = re.findall(r"^ +([a-z_, ]+): ", str(CLDelegate.__doc__), re.MULTILINE)
    assert {name for names in explained for name in names.split(", ")} >= {item.name for item in fields(CLDelegate)}


@pytest.mark.parametrize(("wanted", "index"), [(0, 0), (3, 3), ("minimal", 1), ("CPU-ZNVER3-AMD", 0), ("cpu-z", 0)])
def test_a_device_by_index_name_or_fragment(wanted: int | str, index: int) -> None:
    assert named(DEVICES, wanted) is DEVICES[index]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (4, "device 4 out of range; the devices are 0: cpu-znver3-AMD, 1: cpu-minimal"),
        (-1, "device -1 out of range"),
        ("Radeon", "there is no device 'Radeon'; the devices are 0: cpu-znver3-AMD, 1: cpu-minimal"),
        ("GPU", ". A GPU is listed once its OpenCL driver is installed"),
        ("amd", "2 devices are named 'amd': give an index, or more of the name; the devices are 0: cpu-znver3-AMD"),
        ("GeForce", "2 devices are named 'GeForce': give an index"),
    ],
)
def test_one_that_is_not_there_or_not_the_only_one(wanted: int | str, said: str) -> None:
    with pytest.raises(DeviceNotFound) as caught:
        named(DEVICES, wanted)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("system", "machine", "package"),
    [
        ("Linux", "x86_64", "pip install 'litecl[pocl]'"),
        ("Linux", "aarch64", "apt install pocl-opencl-icd"),
        ("Darwin", "arm64", "conda install -c conda-forge pocl"),
        ("Windows", "AMD64", "pip install intel-opencl-rt"),
        ("FreeBSD", "amd64", "https://portablecl.org"),
    ],
)
def test_the_package_for_a_platform(system: str, machine: str, package: str) -> None:
    assert package in advice(system, machine)


def test_a_folder_of_drivers_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / "none"))
    assert advice().endswith(f"(OCL_ICD_VENDORS is {tmp_path / 'none'}, which does not exist)")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    assert "OCL_ICD_VENDORS" not in advice()


@pytest.mark.parametrize(
    ("count", "noun", "words"), [(0, "node", "0 nodes"), (1, "launch", "1 launch"), (2, "launch", "2 launches")]
)
def test_numbers_in_words(count: int, noun: str, words: str) -> None:
    assert counted(count, noun) == words


@pytest.mark.parametrize("device", ["no such device", 99])
def test_a_named_device_that_is_not_there_is_no_fallback(device: int | str) -> None:
    with pytest.raises(DeviceNotFound, match="the devices are"):
        prepared(CLDelegate(device))


def _no_opencl() -> Any:
    raise pyopencl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")


def test_without_opencl_there_is_one_warning(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(pyopencl, "get_platforms", _no_opencl)
    monkeypatch.setattr("litecl.delegate.native.compiler.found", lambda directory=None: None)
    monkeypatch.setattr("litecl.delegate.progress._said", set())
    for _ in range(2):
        interpreter = prepared(CLDelegate())
        interpreter.invoke()
        assert interpreter.delegation_report().device == "none"
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "no OpenCL platform" in record.message
    assert advice() in record.message
    for device in ("cpu", 0):
        with pytest.raises(DeviceNotFound, match="no OpenCL platform"):
            prepared(CLDelegate(device))
    with pytest.raises(DelegateError, match="no OpenCL platform"):
        prepared(CLDelegate(strict=True))


def test_without_opencl_the_processors_own_back_end_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    if compiler.found() is None:
        pytest.skip("no compiler for the processor: pip install ziglang")
    monkeypatch.setattr(pyopencl, "get_platforms", _no_opencl)
    interpreter = prepared(CLDelegate(strict=True))
    interpreter.invoke()
    assert interpreter.delegation_report().device == "native"


def test_two_delegates() -> None:
    with pytest.raises(DelegateError, match=r"two CLDelegates for one model.*0: ") as caught:
        prepared(CLDelegate(deny_ops=["SOFTMAX"]), CLDelegate())
    assert all(device.name in str(caught.value) for device in devices.tested())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"deny_ops": ["CONV2D"]}, "deny_ops: there is no operator 'CONV2D'; did you mean one of 'CONV_2D'"),
        ({"allow_ops": ["softmax"]}, "allow_ops: there is no operator 'softmax'; did you mean one of 'SOFTMAX'"),
        ({"allow_ops": ["ADD", "XYZZY"]}, "did you mean one of 'ABS', 'ADD'"),
    ],
)
def test_a_misspelt_operator(options: dict[str, Any], said: str) -> None:
    with pytest.raises(DelegateError) as caught:
        CLDelegate(**options)
    assert said in str(caught.value)


def test_operators_that_only_the_cpu_runs_may_be_named() -> None:
    assert CLDelegate(deny_ops=["HASHTABLE", "TFLite_Detection_PostProcess"], allow_ops=["UNIQUE"])


def test_compiling_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PYOPENCL_BUILD_OPTIONS", "-cl-opt-disable")  # in a tenth of the time
    caplog.set_level(logging.DEBUG, "litecl")
    steps: list[BuildStep] = []
    delegate = CLDelegate(cache_dir=tmp_path, progress=steps.append, deny_ops=["TANH"])
    prepared(delegate, content=MEANS).invoke()
    assert all(0 <= step.done <= step.total for step in steps)
    assert steps[-1].done == steps[-1].total
    assert any(step.what.endswith(".cl") for step in steps)
    told = [record.getMessage() for record in caplog.records if record.name == "litecl"]
    assert any(line.startswith("device ") for line in told)
    assert any(line.startswith("compiling ") and line.endswith(" s") for line in told)
    assert any(line.startswith("kept ") and line.endswith(str(tmp_path / disk.OWN)) for line in told)
    assert any(line.startswith("4 of 5 nodes in 1 region on ") for line in told)
    assert "subgraph 0, node 4 (TANH) stays on the CPU: denied by deny_ops" in told
    steps.clear()
    prepared(delegate, content=MEANS)
    assert not steps, "what is there already is compiled again"


def test_a_listener_that_raises_is_heard(tmp_path: Path) -> None:
    """To stop while compiling."""

    def stop(step: BuildStep) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepared(CLDelegate(cache_dir=tmp_path / "other", progress=stop))


def test_delegates_are_pickled() -> None:
    delegate = CLDelegate(0, deny_ops=["ADD"], deny_nodes=[2], progress=print)
    assert delegate.cl_ops, "which is made anew, not pickled"
    again = pickle.loads(pickle.dumps(delegate))
    assert (again.device, again.deny_ops, again.deny_nodes, again.progress) == (0, {"ADD"}, {(0, 2)}, None)
    with pytest.raises(DelegateError, match="use the name or index of its device"):
        pickle.dumps(CLDelegate(devices.tested()[0]))


def test_installing_is_undone() -> None:
    import ai_edge_litert.interpreter as theirs

    with litecl.install_as("ai_edge_litert", deny_ops=["TANH"]):
        from ai_edge_litert.interpreter import Interpreter as Ours

        assert Ours is not theirs.Interpreter
        g = Graph()
        content = write(model(g.build(g.op(TANH, [g.input((2,))], TANH.options()))))
        with Ours(model_content=content) as interpreter:
            interpreter.allocate_tensors()
            assert not interpreter.delegation_report().claimed
        for plain in (OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
            assert not Ours(model_content=content, experimental_op_resolver_type=plain)._preparation.delegates
        assert Ours(content, num_threads=1)._preparation.delegates[0].num_threads == 1  # type: ignore[attr-defined]
        import ai_edge_litert.compiled_model as compiled
        from ai_edge_litert.tools import flatbuffer_utils  # which litecl has not

        assert compiled.__name__ == "litecl.compiled_model"
        assert flatbuffer_utils.__name__ == "ai_edge_litert.tools.flatbuffer_utils"
    import ai_edge_litert.interpreter as after
    from ai_edge_litert.interpreter import Interpreter as Theirs

    assert after is theirs
    assert Theirs is theirs.Interpreter
    with litecl.install_as("ai_edge_litert", cpu=True):
        from ai_edge_litert.interpreter import Interpreter as OnNumpy

        assert not OnNumpy(CONTENT)._preparation.delegates


def test_installing_for_a_package_that_is_not_there() -> None:
    with litecl.install_as("tflite_runtime"):
        from tflite_runtime.interpreter import Interpreter as Ours

        interpreter = Ours(model_content=CONTENT)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.zeros((1, 8, 8, 3), np.float32))
        interpreter.invoke()
        assert interpreter.delegation_report().claimed
        with pytest.raises(ImportError):
            import tflite_runtime.interpreter_wrapper
    with pytest.raises(ImportError):
        import tflite_runtime.interpreter  # noqa: F401


def test_installing_something_else() -> None:
    with pytest.raises(ArgumentError, match="expected one of ai_edge_litert, tflite_runtime, tensorflow"):
        litecl.install_as("onnxruntime")
    with pytest.raises(TypeError, match=r"CLDelegate: there is no option 'no_such_option'$"):
        litecl.install_as("ai_edge_litert", no_such_option=1)
