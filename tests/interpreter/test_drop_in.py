"""litecl as a drop-in for ai_edge_litert: names, keywords and methods by introspection, behaviour side by side."""

import enum
import inspect
import pickle
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import ai_edge_litert.interpreter as theirs
import numpy as np
import pytest

import litecl.drop_in.interpreter as delegated
import litecl.interpreter as ours
from litecl.interpreter.errors import FAULTS, ArgumentError, DelegateNotFound, LiteclError, ModelError, ShapeError
from litecl.interpreter.file.reader import read
from support.behaviour_models import CONTENT, INPUT, OUTPUT, X, fresh, ran, ready
from support.behaviours import BEHAVIOURS, DIFFERENCES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "drop_in.md").read_text()
MODULES = (
    "interpreter", "compiled_model", "tensor_buffer", "environment", "hardware_accelerator",
    "options", "cpu_options", "gpu_options", "cpu_kernel_mode",
)  # fmt: skip
OURS = {"cpu_options": "options", "gpu_options": "options", "cpu_kernel_mode": "options"}
INTERNAL = (
    "_get_op_details",
    "_get_ops_details",
    "_get_tensor_details",
    "_get_full_signature_list",
)  # and used outside

_NATIVE = "There is no native object to hand out."
_NPU = "litecl drives no vendor's NPU."
MISSING = {
    "Interpreter._native_handle": _NATIVE,
    "TensorBuffer.capsule": _NATIVE,
    "TensorBuffer(capsule)": _NATIVE,
    "TensorBuffer(environment)": _NATIVE,
    "Environment.capsule": _NATIVE,
    "Environment(capsule)": _NATIVE,
    "CompiledModel(c_model_ptr)": _NATIVE,
    "Options(qualcomm_options)": _NPU,
    "Options(intel_openvino_options)": _NPU,
    "Options.qualcomm_options": _NPU,
    "Options.intel_openvino_options": _NPU,
}
NPU_CLASSES = ("Qualcomm", "IntelOpenVino")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """LiteRT warns of preserved tensors, and its delegates fail to be deleted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _public(module: Any) -> dict[str, Any]:
    """Classes and functions of a module's own, or that it hands on from its package."""
    found = {n: v for n, v in vars(module).items() if not n.startswith("_") and (inspect.isclass(v) or callable(v))}
    return {n: v for n, v in found.items() if getattr(v, "__module__", "").startswith("ai_edge_litert")}


def _names(name: str, value: Any) -> Iterator[str]:
    """A public name, its keywords, and the methods and members of a class with theirs."""
    yield name
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        yield from (f"{name}.{member}" for member in value.__members__)
    elif inspect.isclass(value):
        yield from (f"{name}({keyword})" for keyword in _keywords(value.__init__))
        for method in vars(value):
            if method.startswith("_") and method not in INTERNAL:
                continue
            yield f"{name}.{method}"
            if callable(getattr(value, method)) and not inspect.isclass(getattr(value, method)):
                yield from (f"{name}.{method}({keyword})" for keyword in _keywords(getattr(value, method)))
    else:
        yield from (f"{name}({keyword})" for keyword in _keywords(value))


def _keywords(function: Any) -> list[str]:
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    parameters = inspect.signature(function).parameters.items()
    return [name for name, parameter in parameters if name != "self" and parameter.kind not in kinds]


def _has(module: Any, name: str) -> bool:
    """Whether a name of ``_names`` is there."""
    path, _, keyword = name.removesuffix(")").partition("(")
    value = module
    for part in path.split("."):
        if not hasattr(value, part):
            return part in getattr(value, "__dataclass_fields__", {})
        value = getattr(value, part)
    if not keyword:
        return True
    function = value.__init__ if inspect.isclass(value) and type(value) is not ours.Delegate.__class__ else value
    if type(value) is ours.Delegate.__class__:
        function = type(value).__call__
    return keyword in _keywords(function)


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_there_or_listed(name: str) -> None:
    module, litecl_module = import_module(f"ai_edge_litert.{name}"), import_module(f"litecl.{OURS.get(name, name)}")
    wanted = [item for public, value in _public(module).items() for item in _names(public, value)]
    assert wanted, "nothing was looked at"
    absent = {item for item in wanted if not _has(litecl_module, item)}
    assert {item for item in absent if not item.startswith(NPU_CLASSES)} <= MISSING.keys()
    assert not {item for item in wanted if item in MISSING} - absent, "listed as missing, and there"


def test_what_is_missing_or_different_is_in_the_documentation() -> None:
    assert not [reason for reason in {*MISSING.values(), *DIFFERENCES.values()} if reason not in PAGE]
    assert DIFFERENCES.keys() <= BEHAVIOURS.keys()


def _outcome(behaviour: Any, library: Any) -> Any:
    try:
        return behaviour(library)
    except Exception as error:
        return error


def _same(their: Any, our: Any) -> bool:
    """Equal values; or an error that is caught wherever theirs is."""
    if isinstance(their, Exception):
        return isinstance(our, type(their))
    if type(their) is not type(our):
        return False
    if isinstance(their, dict):
        return their.keys() == our.keys() and all(_same(their[key], our[key]) for key in their)
    if isinstance(their, list | tuple):
        return len(their) == len(our) and all(map(_same, their, our))
    if isinstance(their, np.ndarray):
        return their.dtype == our.dtype and their.shape == our.shape and np.allclose(their, our, rtol=1e-5)
    return bool(their == our)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("library", [ours, delegated], ids=["numpy", "device"])
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_behaviour_is_the_same_or_listed(name: str, library: Any) -> None:
    their, our = (_outcome(BEHAVIOURS[name], either) for either in (theirs, library))
    assert _same(their, our) == (name not in DIFFERENCES), (their, our)
    untyped = isinstance(our, Exception) and not isinstance(our, LiteclError)
    assert not untyped or _is_of_the_call(our), our


def _is_of_the_call(error: Exception) -> bool:
    """Whether Python itself refused the arguments, before any of litecl's code ran."""
    return (type(error) is TypeError and "argument" in str(error)) or isinstance(error, AttributeError)


JUNK = (None, "x", 1.5, -1, 99, 2**70, b"", [], [1, "a"], {}, object(), np.zeros(3), np.array("a"), True, 1j)


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: type(junk).__name__)
def test_no_argument_ends_in_an_error_that_is_not_litecls(junk: Any) -> None:
    """Any argument gives a value or a LiteclError."""
    calls = (
        lambda i: i.get_tensor(junk), lambda i: i.get_tensor(INPUT, junk), lambda i: i.set_tensor(junk, X),
        lambda i: i.set_tensor(INPUT, junk), lambda i: i.tensor(junk)(), lambda i: i.resize_tensor_input(junk, [1, 4]),
        lambda i: i.resize_tensor_input(INPUT, junk), lambda i: i.get_tensor_details(junk),
        lambda i: i._get_tensor_details(junk, 0), lambda i: i._get_tensor_details(0, junk),
        lambda i: i._get_op_details(junk), lambda i: i.get_signature_runner(junk) if junk is not None else None,
        lambda i: i.get_signature_runner()(x=junk), lambda i: fresh(ours, junk), lambda i: ours.Interpreter(junk),
        lambda i: fresh(ours, num_threads=junk), lambda i: fresh(ours, experimental_delegates=junk),
        lambda i: fresh(ours, experimental_op_resolver_type=junk), lambda i: ours.load_delegate(junk),
        lambda i: ours.load_delegate("gpu", junk), lambda i: ours.SignatureRunner(i, junk),
    )  # fmt: skip
    for call in calls:
        with suppress(LiteclError):
            call(ready(ours))


def test_classes_of_errors() -> None:
    """What LiteRT's callers catch."""
    for caught in (ValueError, RuntimeError, OSError, FileNotFoundError, ModelError):
        with pytest.raises(caught):
            ours.Interpreter("/nowhere/model.tflite")
    with pytest.raises(RuntimeError):
        fresh(ours).invoke()
    for caught in (ValueError, OSError, RuntimeError):
        with pytest.raises(caught, match=r"Failed to load delegate from libedgetpu\.so\.1"):
            ours.load_delegate("libedgetpu.so.1")
    with pytest.raises(TypeError):
        ready(ours).get_tensor("x")
    assert ArgumentError in ModelError.__subclasses__() and not issubclass(ModelError, TypeError)
    assert ValueError in FAULTS  # which kernels raise, and which must not swallow what is typed already


def test_a_delegate_is_loaded_with_options_as_strings() -> None:
    delegate = ours.load_delegate(
        "litecl",
        {"num_threads": "1", "deny_ops": "SOFTMAX, ADD", "deny_nodes": "2,0:1", "strict": "true", "cache_dir": "none"},
    )
    assert isinstance(delegate, ours.Delegate)
    assert (delegate.num_threads, delegate.strict, delegate.cache_dir) == (1, True, None)  # type: ignore[attr-defined]
    assert delegate.deny_ops == {"SOFTMAX", "ADD"}  # type: ignore[attr-defined]
    assert delegate.deny_nodes == {(0, 2), (0, 1)}  # type: ignore[attr-defined]
    for name in ("opencl", "gpu", "/usr/lib/litecl"):
        assert isinstance(ours.Delegate(name), ours.Delegate)  # type: ignore[call-arg]
    with pytest.raises(LiteclError, match="did you mean 'num_threads'"):
        ours.load_delegate("gpu", {"num_thread": "1"})
    with pytest.raises(LiteclError, match="profile: expected true or false, got 'perhaps'"):
        ours.load_delegate("gpu", {"profile": "perhaps"})
    with pytest.raises(DelegateNotFound, match="its delegates are litecl, opencl, gpu"):
        ours.load_delegate("libvx.so")


def test_a_closed_interpreter_says_so(tmp_path: Path) -> None:
    with ran(ours) as interpreter:
        view = interpreter.tensor(OUTPUT)()
        runner = interpreter.get_signature_runner()
    assert np.isclose(view.sum(), 1.0)  # its memory is still there
    calls = (
        interpreter.invoke, interpreter.allocate_tensors, interpreter.get_input_details, lambda: runner(x=X),
        lambda: interpreter.get_tensor(0), lambda: interpreter.model, interpreter.delegation_report,
    )  # fmt: skip
    for call in calls:
        with pytest.raises(ModelError, match="closed"):
            call()
    interpreter.close()  # once more is no error


def test_an_interpreter_is_pickled_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.tflite").write_bytes(CONTENT)
    monkeypatch.chdir(tmp_path)
    interpreter = ours.Interpreter("model.tflite", experimental_delegates=[ours.load_delegate("gpu")])
    interpreter.resize_tensor_input(INPUT, [3, 4])
    interpreter.allocate_tensors()
    content = pickle.dumps(interpreter)
    assert len(content) < 4000, "the model itself is in the pickle"
    monkeypatch.chdir("/")
    again = pickle.loads(content)
    again.set_tensor(INPUT, np.repeat(X, 3, axis=0))
    again.invoke()
    assert again.delegation_report().claimed == interpreter.delegation_report().claimed
    np.testing.assert_allclose(again.get_tensor(OUTPUT)[1:2], ran(ours).get_tensor(OUTPUT), rtol=1e-5)
    with pytest.raises(ModelError, match="construct it from a path or the bytes"):
        pickle.dumps(ours.Interpreter(read(CONTENT)))


def test_a_ragged_list_is_a_shape_error() -> None:
    with pytest.raises(ShapeError, match="inhomogeneous"):
        ready(ours).set_tensor(INPUT, [[1.0], [2.0, 3.0]])
    with pytest.raises(ShapeError, match="inhomogeneous"):
        ready(ours).get_signature_runner()(x=[[1.0], [2.0, 3.0]])
