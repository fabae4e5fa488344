"""TensorFlow Lite's own operator tests, read from a folder of them (``op_tests`` of LiteRT's or TensorFlow's sources).

Each file there registers functions that hand a grid of parameters, a function that builds a graph, and one that makes
inputs to ``make_zip_of_tests``. Stand-ins for the modules that they import collect these instead of writing archives.
"""

import importlib.util
import itertools
import string
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import tensorflow as tf

_TYPES = {
    tf.float32: (np.float32, "FLOAT"),
    tf.float16: (np.float16, "FLOAT"),
    tf.float64: (np.float64, "FLOAT64"),
    tf.complex64: (np.complex64, "COMPLEX64"),
    tf.int8: (np.int8, "INT8"),
    tf.int16: (np.int16, "QUANTIZED_INT16"),
    tf.int32: (np.int32, "INT32"),
    tf.int64: (np.int64, "INT64"),
    tf.uint8: (np.uint8, "QUANTIZED_UINT8"),
    tf.uint16: (np.uint16, "UINT16"),
    tf.uint32: (np.uint32, "UINT32"),
    tf.bool: (np.bool_, "BOOL"),
    tf.string: (np.bytes_, "STRING"),
}
_OPTIONS: Mapping[str, Any] = {
    "use_experimental_converter": True,
    "mlir_quantizer": True,
    "run_with_flex": False,
    "make_edgetpu_tests": False,
    "make_forward_compat_test": False,
    "multi_gen_state": None,
    "no_tests_limit": True,
    "no_conversion_report": True,
    "expected_ops_in_converted_model": [],
    "known_bugs": {},
    "skip_high_dimension_inputs": False,
    "tflite_convert_function": None,  # some wrap it, to look for an operator
    "output_path": "",
    "zip_to_output": "",
}


@dataclass(frozen=True)
class OpTest:
    """One set of parameters.

    build: makes the graph; returns placeholders and outputs.
    feed: of the parameters, a session, placeholders and outputs, returns the inputs' values and the outputs'.
    extra: the file's own wishes for the conversion.
    """

    name: str
    parameters: Mapping[str, Any]
    build: Callable[[Any], tuple[Sequence[Any], Sequence[Any]]]
    feed: Callable[..., tuple[Sequence[Any], Sequence[Any]]]
    extra: Any

    @property
    def label(self) -> str:
        """Return the name with all parameters."""
        said = ", ".join(f"{key}={value!r}" for key, value in sorted(self.parameters.items()))
        return f"{self.name}({said})"


def op_tests(folder: Path) -> tuple[list[OpTest], list[str]]:
    """Return every set of parameters of every file, in order of the files' names, and what cannot be read, and why
    (operators that this TensorFlow no longer has).
    """
    makers: dict[str, Callable[[Any], None]] = {}
    collected: list[OpTest] = []
    faults: list[str] = []
    with _in_place(_stand_ins(makers, collected)):
        for path in sorted(folder.glob("*.py")):
            spec = importlib.util.spec_from_file_location(f"tflite_op_test_{path.stem}", path)
            assert spec is not None and spec.loader is not None
            try:
                spec.loader.exec_module(importlib.util.module_from_spec(spec))
            except Exception as error:  # whatever a file of others raises
                faults.append(f"{path.name}: {type(error).__name__}: {error}")
    for name, make in makers.items():
        start = len(collected)
        try:
            make(SimpleNamespace(**_OPTIONS))
        except Exception as error:
            faults.append(f"{name}: {type(error).__name__}: {error}")
        short = name.removeprefix("make_").removesuffix("_tests")
        collected[start:] = [OpTest(short, t.parameters, t.build, t.feed, t.extra) for t in collected[start:]]
    return collected, faults


def create_tensor_data(dtype: Any, shape: Any, min_value: float = -100, max_value: float = 100) -> Any:
    """Return random values of a type from a range, from numpy's global generator, as the tests expect."""
    kind = np.dtype(_TYPES[dtype][0] if dtype in _TYPES else dtype)
    if kind.kind == "b":
        return np.random.choice([True, False], size=shape)
    if kind.kind == "S":
        return np.random.choice(list(string.ascii_uppercase), size=shape).astype(kind)
    if kind.kind in "iu":
        return np.asarray(np.random.randint(int(min_value), int(max_value) + 1, shape)).astype(kind)
    value = (max_value - min_value) * np.random.random_sample(shape) + min_value
    if kind.kind == "c":
        value = value + 1j * ((max_value - min_value) * np.random.random_sample(shape) + min_value)
    return np.asarray(value).astype(kind)


def create_scalar_data(dtype: Any, min_value: float = -100, max_value: float = 100, **_: Any) -> Any:
    """Return one random value."""
    return create_tensor_data(dtype, [], min_value, max_value)


class _Extra:
    """The tests' ExtraConvertOptions: any attribute can be set; those never set are None."""

    allow_custom_ops = False

    def __getattr__(self, name: str) -> Any:
        return None


@contextmanager
def _in_place(modules: Mapping[str, ModuleType]) -> Iterator[None]:
    """Let imports find these modules."""
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _stand_ins(makers: dict[str, Any], collected: list[OpTest]) -> dict[str, ModuleType]:
    def register(name: str | None = None) -> Callable[[Any], Any]:
        return lambda function: makers.setdefault(name or function.__name__, function)

    def make_zip_of_tests(
        options: Any, test_parameters: Any, make_graph: Any, make_test_inputs: Any, extra: Any = None, **others: Any
    ) -> None:
        del options
        extra = extra or next((v for k, v in others.items() if k.startswith("extra_")), None) or _Extra()
        grid = _each(test_parameters)
        collected.extend(OpTest("", parameters, make_graph, make_test_inputs, extra) for parameters in grid)

    utilities: dict[str, Any] = {
        "create_tensor_data": create_tensor_data,
        "create_scalar_data": create_scalar_data,
        "make_zip_of_tests": make_zip_of_tests,
        "register_make_test_function": register,
        "TF_TYPE_INFO": _TYPES,
        "MAP_TF_TO_NUMPY_TYPE": {key: value[0] for key, value in _TYPES.items()},
        "ExtraTocoOptions": _Extra,
        "ExtraConvertOptions": _Extra,
        "RANDOM_SEED": 342,
    }
    modules = {}
    for root in ("tensorflow.lite", "tflite"):  # in TensorFlow's sources and in LiteRT's
        package, module = ModuleType(f"{root}.testing"), ModuleType(f"{root}.testing.zip_test_utils")
        vars(module).update(utilities)
        package.zip_test_utils = module  # type: ignore[attr-defined]
        modules |= {package.__name__: package, module.__name__: module}
    python = ModuleType("tflite.python")
    python.lite = tf.lite  # type: ignore[attr-defined]
    return {**modules, "tflite": ModuleType("tflite"), python.__name__: python}


def _each(grids: Any) -> Iterator[Mapping[str, Any]]:
    for grid in grids:
        for values in itertools.product(*grid.values()):
            yield dict(zip(grid, values, strict=True))
