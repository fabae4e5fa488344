"""Public models that keep states in resource variables: whole in one region, step after step as LiteRT's kernels."""

from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from support import shared

_STEPS = 150
_WORDS = "esphome-micro-wake-word-models"
_MODELS = {
    f"{_WORDS}/hey_jarvis.tflite": 1.0,
    f"{_WORDS}/okay_nabu.tflite": 1.0,
    f"{_WORDS}/vad.tflite": 1.0,
    "google-lyra/soundstream_encoder.tflite": 0.95,  # floats that are quantized: now and then one is rounded otherwise
}
"""With the share of steps that are equal."""


@shared.needs_shared
@pytest.mark.parametrize("file", _MODELS)
def test_step_after_step(file: str) -> None:
    path = str(shared.MODELS / file)
    device = Interpreter(path, delegates=[CLDelegate(num_threads=1, strict=True, dynamic_range="reference")])
    alone = Interpreter(path)
    reference = LiteRT(path, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    for runtime in (device, alone, reference):
        runtime.allocate_tensors()
    report = device.delegation_report()
    assert (report.claimed, len(report.partitions)) == (len(report.nodes), 1), str(report)
    (fed,), (made,) = device.get_input_details(), device.get_output_details()
    rng = np.random.default_rng(3)
    equal, outputs = 0, set()
    for step in range(_STEPS):
        x = _fed(rng, fed, step)
        for runtime in (device, alone, reference):
            runtime.set_tensor(fed["index"], x)
            runtime.invoke()
        got, expected = (runtime.get_tensor(made["index"]) for runtime in (device, reference))
        equal += np.array_equal(got, expected)
        outputs.add(expected.tobytes())
    assert equal >= _MODELS[file] * _STEPS
    assert len(outputs) > 1
    for key in [key for key in alone._variables._values if isinstance(key, str)]:
        got, expected = (runtime._variables.read(key) for runtime in (device, alone))
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3 if got.dtype == np.float32 else 0)


@shared.needs_shared
@pytest.mark.parametrize("file", _MODELS)
@pytest.mark.parametrize("delegates", [[], [CLDelegate(num_threads=1)]], ids=["numpy", "device"])
def test_a_new_stream(file: str, delegates: list[CLDelegate]) -> None:
    """Only ``resources=True`` begins one; otherwise LiteRT's interpreter continues the old one too."""
    path = str(shared.MODELS / file)
    runtime, reference = Interpreter(path, delegates=delegates), LiteRT(path)
    for each in (runtime, reference):
        each.allocate_tensors()
    (fed,) = runtime.get_input_details()
    inputs = [_fed(np.random.default_rng(step), fed, step) for step in range(60)]

    def stream(each: Any) -> bytes:
        results = []
        for x in inputs:
            each.set_tensor(fed["index"], x)
            each.invoke()
            results.append(each.get_tensor(each.get_output_details()[0]["index"]))
        return np.array(results).tobytes()

    first, of_reference = stream(runtime), stream(reference)
    runtime.reset_all_variables(), reference.reset_all_variables()
    assert stream(runtime) != first
    assert stream(reference) != of_reference
    runtime.reset_all_variables(resources=True)
    assert stream(runtime) == first


def _fed(rng: np.random.Generator, fed: dict[str, Any], step: int) -> np.ndarray:
    """Return noise that grows and fades: of the whole range of bytes, or of a quiet voice."""
    loud = 0.6 + 0.4 * np.sin(step / 15)
    noise = rng.standard_normal(fed["shape"])
    if fed["dtype"] == np.int8:
        return np.clip(127 * loud * np.sign(np.sin(step / 40)) + 30 * noise, -128, 127).astype(np.int8)
    return (0.1 * loud * noise).astype(np.float32)
