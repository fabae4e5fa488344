"""Compares a converted file with its source model, signature by signature, on random inputs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.perf.feeds import random_inputs

# TensorFlow's function, from inputs to results by name.
Source = Callable[[Mapping[str, Array]], Mapping[str, Array]]

_RUNS = 3  # states carry over between runs
TOLERANCE = 1e-4  # relative to a result's largest magnitude


@dataclass(frozen=True)
class Difference:
    """A result's largest difference from TensorFlow's over several runs, relative to its largest magnitude."""

    signature: str
    output: str
    largest: float

    @property
    def small(self) -> bool:
        """True if another order of arithmetic explains it."""
        return self.largest <= TOLERANCE


def differences(content: bytes, sources: Mapping[str, Source], seed: int = 0) -> list[Difference]:
    """Return the difference of every result of every signature; infinite if shapes differ."""
    interpreter = Interpreter(model_content=content)
    found: dict[tuple[str, str], float] = {}
    for key, source in sources.items():
        runner = interpreter.get_signature_runner(key)
        details = [{**detail, "name": name} for name, detail in runner.get_input_details().items()]
        for run in range(_RUNS):
            inputs = random_inputs(details, seed + run)
            results, expected = runner(**inputs), source(inputs)
            for name, wanted in expected.items():
                difference = _relative(np.asarray(results[name]), wanted)
                found[key, name] = max(found.get((key, name), 0.0), difference)
    return [Difference(key, name, largest) for (key, name), largest in found.items()]


def _relative(got: Array, wanted: Array) -> float:
    if got.shape != wanted.shape:
        return float("inf")
    if wanted.dtype.kind in "OSU" or wanted.dtype == bool:
        return float((got != wanted).any())
    magnitude = float(np.abs(wanted).max(initial=0)) or 1.0
    return float(np.abs(got.astype(np.float64) - wanted.astype(np.float64)).max(initial=0)) / magnitude
