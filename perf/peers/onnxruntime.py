"""ONNX Runtime's CPU provider, on the ONNX model that tf2onnx makes of a ``.tflite`` file."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array
from litecl.perf.feeds import Runtime
from litecl.perf.peers.positional import Positional, Shapes, positions

PACKAGES = {"onnxruntime": "onnxruntime", "tf2onnx": "tf2onnx", "tensorflow": "tensorflow"}
_OPSET = 18  # the newest of tf2onnx 1.17
_TIMEOUT_S = 600
_NOISE = re.compile(
    r"^\[ONNXRuntimeError\] : \d+ : \w+ : |This is an invalid model\. |.*, Error |/onnxruntime_src/\S+:\d+ "
    r"|(Error in execution: )?Non-zero status code returned while running | Name:'.*' Status Message:"
)
"""Codes, files and names that say nothing of the reason."""
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


def load(content: bytes, num_threads: int) -> Runtime:
    """Return the model, converted. Raises LiteclError for one that tf2onnx can't convert."""
    return Positional(content, partial(_Compiled, converted(content), num_threads))


def load_here(content: bytes) -> Runtime:
    """Return the model for one thread, converted in this process: for many small models in a process that may die."""
    return Positional(content, partial(_Compiled, _converted(content, _convert_here), 1))


@lru_cache(maxsize=1)
def converted(content: bytes) -> bytes:
    """Convert a ``.tflite`` file to ONNX, in a process of its own, since tf2onnx loads TensorFlow."""
    return _converted(content, _convert_apart)


def _converted(content: bytes, convert: Callable[[list[str]], None]) -> bytes:
    with TemporaryDirectory() as folder:
        model, onnx = Path(folder, "model.tflite"), Path(folder, "model.onnx")
        model.write_bytes(content)
        convert(["--tflite", str(model), "--output", str(onnx), "--opset", str(_OPSET)])
        if not onnx.exists():
            raise LiteclError("tf2onnx: it wrote no file")
        return onnx.read_bytes()


def _convert_apart(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "tf2onnx.convert", *arguments]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **_QUIET}, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise LiteclError(f"tf2onnx did not end in {_TIMEOUT_S} s") from error
    if ended.returncode:
        raise LiteclError(f"tf2onnx: {(ended.stderr.strip() or str(ended.returncode)).splitlines()[-1]}")


def _convert_here(arguments: list[str]) -> None:
    os.environ.update(_QUIET)
    from tf2onnx import convert

    given, sys.argv = sys.argv, ["tf2onnx", *arguments]
    try:
        convert.main()
    except (Exception, SystemExit) as error:  # of any type
        raise LiteclError(f"tf2onnx: {error}") from error
    finally:
        sys.argv = given


def module() -> Any:
    """Import ONNX Runtime."""
    import onnxruntime

    return onnxruntime


class _Compiled:
    """See ``positional.Compiled``."""

    def __init__(self, content: bytes, num_threads: int, shapes: Shapes, outputs: Sequence[str]) -> None:
        import onnx

        onnxruntime = module()
        model = onnx.load_model_from_string(content)
        inputs = [each.name for each in model.graph.input]
        where = positions("inputs", [*shapes], [[name] for name in inputs])
        for at, shape in zip(where, shapes.values(), strict=True):
            dims = model.graph.input[at].type.tensor_type.shape.dim
            for dim, size in zip(dims, shape, strict=True):
                dim.dim_value = size
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = num_threads, 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = 3  # errors
        options.add_session_config_entry("session.force_spinning_stop", "1")  # its threads would disturb the next turn
        content = model.SerializeToString()
        with _short():
            self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        results = [each.name for each in self._session.get_outputs()]
        self._outputs = positions("outputs", outputs, [[name] for name in results])
        self._inputs = [inputs[at] for at in where]
        self._binding = self._session.io_binding()
        self._values: dict[str, Array] = {}
        for name in results:
            self._binding.bind_output(name)

    def set(self, position: int, value: Array) -> None:
        """Set an input."""
        name = self._inputs[position]
        self._values[name] = np.asarray(value, order="C")  # a scalar stays one; the binding only points to it
        self._binding.bind_cpu_input(name, self._values[name])

    def run(self) -> None:
        """Run the model."""
        with _short():
            self._session.run_with_iobinding(self._binding)

    def get(self, position: int) -> Array:
        """Return a copy of an output."""
        return np.array(self._binding.get_outputs()[self._outputs[position]].numpy())

    def reset(self) -> None:
        """Do nothing: the model has no variables."""


@contextmanager
def _short() -> Iterator[None]:
    """Raise ONNX Runtime's errors as LiteclError with the reason alone."""
    try:
        yield
    except Exception as error:  # it has several types, derived from this one
        raise LiteclError(_NOISE.sub("", str(error))) from error
