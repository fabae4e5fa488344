"""Compares a converted file with its source model, signature by signature, on random inputs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.perf.feeds import difference, random_inputs

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
    largest: dict[tuple[str, str], float] = {}
    for key, source in sources.items():
        runner = interpreter.get_signature_runner(key)
        details = [{**detail, "name": name} for name, detail in runner.get_input_details().items()]
        for run in range(_RUNS):
            inputs = random_inputs(details, seed + run)
            results, expected = runner(**inputs), source(inputs)
            for name, wanted in expected.items():
                apart = difference([np.asarray(results[name])], [np.asarray(wanted)])
                largest[key, name] = max(largest.get((key, name), 0.0), apart)
    return [Difference(key, name, apart) for (key, name), apart in largest.items()]
