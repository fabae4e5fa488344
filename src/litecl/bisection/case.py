"""Writes a fault to files: the smallest model that shows it, its inputs and the right outputs."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np

from litecl.bisection.find import Bisection
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.whole_files import whole_folder
from litecl.perf.feeds import labels

_MODEL, _INPUTS, _EXPECTED = "case.tflite", "inputs.npz", "expected.npz"


def write_case(found: Bisection, folder: Path) -> list[Path]:
    """Write the wrong nodes as ``case.tflite``, and their inputs and right outputs by name as ``.npz`` files.

    Returns the paths. Raises ModelError if no fault was found.
    """
    if found.fault is None:
        raise ModelError(f"expected a fault to write, and the verdict is {found.verdict}")
    content = write(found.fault.model)
    interpreter = Interpreter(model_content=content)
    named = (
        (_INPUTS, interpreter.get_input_details(), found.fault.inputs),
        (_EXPECTED, interpreter.get_output_details(), found.fault.expected),
    )
    with whole_folder(folder) as new:
        new(_MODEL).write(content)
        for name, details, values in named:
            arrays: dict[str, Any] = dict(zip(labels(details), values, strict=True))
            np.savez(new(name), **arrays)
    return [folder / name for name in (_MODEL, _INPUTS, _EXPECTED)]


def command(bisection: Bisection, folder: Path) -> str:
    """Return a command that reproduces the fault from the files, on the same device with its default options."""
    runtimes = "--suspect", str(bisection.suspect), "--reference", str(bisection.reference)
    bounds = "--relative", str(bisection.tolerance.relative), "--steps", str(bisection.tolerance.steps)
    files = str(folder / _MODEL), "--input", str(folder / _INPUTS)
    numbers = () if bisection.numbers == "reference" else ("--numbers", bisection.numbers)
    return shlex.join(("litecl", "bisect", *files, *runtimes, *bounds, *numbers))
