"""OpenVINO's CPU plugin, which reads ``.tflite`` files, in 32-bit floats and for the least latency."""

import sys
from collections.abc import Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array
from litecl.perf.feeds import Runtime
from litecl.perf.peers.positional import Positional, Shapes, positions

PACKAGES = {"openvino": "openvino"}
_OPTIONS = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1}
_TELEMETRY = "openvino_telemetry"


def load(content: bytes, num_threads: int) -> Runtime:
    """Return the model. Raises LiteclError for one that OpenVINO can't read or compile."""
    return Positional(content, partial(_Compiled, content, num_threads))


class _Compiled:
    """See ``positional.Compiled``."""

    def __init__(self, content: bytes, num_threads: int, shapes: Shapes, outputs: Sequence[str]) -> None:
        core = module().Core()
        with TemporaryDirectory() as folder, _last_line():
            (file := Path(folder, "model.tflite")).write_bytes(content)
            model = core.read_model(file)
            self._inputs = positions("inputs", [*shapes], [each.get_names() for each in model.inputs])
            self._outputs = positions("outputs", outputs, [each.get_names() for each in model.outputs])
            model.reshape(dict(zip((model.inputs[at] for at in self._inputs), map(list, shapes.values()), strict=True)))
            compiled = core.compile_model(model, "CPU", {**_OPTIONS, "INFERENCE_NUM_THREADS": num_threads})
            self._request = compiled.create_infer_request()

    def set(self, position: int, value: Array) -> None:
        """Set an input."""
        self._request.get_input_tensor(self._inputs[position]).data[...] = value

    def run(self) -> None:
        """Run the model."""
        self._request.infer()

    def get(self, position: int) -> Array:
        """Return a copy of an output."""
        return np.array(self._request.get_output_tensor(self._outputs[position]).data)

    def reset(self) -> None:
        """Reset variables."""
        self._request.reset_state()


def module() -> Any:
    """Import OpenVINO without its telemetry, which would send an event over the network at import."""
    absent = _TELEMETRY not in sys.modules
    if absent:
        sys.modules[_TELEMETRY] = None  # type: ignore[assignment]
    try:
        import openvino
    finally:
        if absent:
            del sys.modules[_TELEMETRY]
    return openvino


@contextmanager
def _last_line() -> Any:
    """Raise OpenVINO's errors as LiteclError with the last line: the others name its source files."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, LiteclError):
            raise
        raise LiteclError(str(error).strip().splitlines()[-1]) from error
