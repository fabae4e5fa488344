"""Runs a whole model on a runtime, and compares its outputs with litecl's interpreter."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from litecl.conformance.judge import first_line
from litecl.conformance.runtimes import Suspect
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.perf.feeds import labels, random_inputs
from litecl.perf.peers import PEERS
from litecl.where import edgetpu
from litecl.where.making import ask
from litecl.where.observe import apart, loaded, run

PACKAGES: Mapping[str, Mapping[str, str]] = {
    **{name: peer.packages for name, peer in PEERS.items()},
    "tflite_micro": {"tflite_micro": "tflite-micro"},
    "vela": {"ethosu": "ethos-u-vela"},
}
"""A runtime's packages by module."""


@dataclass(frozen=True)
class Measured:
    """What a runtime did with a model. installed: whether its package is, if it has one.

    refused: why it doesn't run it; None if it does. outputs: by name, the share of numbers that differ, the largest
    difference of integers in steps, and of floats relative to the largest magnitude; or what is wrong. placed: how many
    operators a compiler places on its NPU.
    """

    runtime: str
    version: str
    refused: str | None
    outputs: Mapping[str, Mapping[str, Any]]
    installed: bool = True
    placed: str = ""


def measure(content: bytes, runtime: str, seed: int, timeout_s: float) -> Measured:
    """Run a model on random inputs in a process of its own."""
    if runtime == edgetpu.RUNTIME.name:
        why = f"nothing to measure with: {edgetpu.RUNTIME.package} is no Python package"
        return Measured(runtime, "", why, {}, installed=False)
    packages = PACKAGES.get(runtime, {runtime: runtime})
    if not all(map(find_spec, packages)):
        return Measured(runtime, "", f"not installed: pip install {' '.join(packages.values())}", {}, installed=False)
    with TemporaryDirectory(prefix="litecl-where-") as folder:
        (path := Path(folder, "model.tflite")).write_bytes(content)
        try:
            answer = ask({"runtime": runtime, "model": str(path), "seed": seed}, "measured", timeout_s)
        except LiteclError as error:
            return Measured(runtime, "", first_line(error), {})
    return Measured(**answer)


def measured(content: bytes, suspect: Suspect, seed: int) -> dict[str, Any]:
    """Run a model in this process; return the fields of ``Measured``. Raises LiteclError if litecl refuses it."""
    answer: dict[str, Any] = {"runtime": suspect.name, "version": suspect.version, "refused": None, "outputs": {}}
    if suspect.place is not None:
        try:
            return answer | {"placed": str(suspect.place(content))}
        except LiteclError as error:
            return answer | {"refused": first_line(error)}
    reference = Interpreter(model_content=content)
    details = reference.get_input_details()
    values = random_inputs(details, seed)
    feeds = [values[label] for label in labels(details)]
    expected = run(reference, feeds)
    try:
        got = run(loaded(suspect, content), feeds)
    except Exception as error:  # every runtime has its own
        return answer | {"refused": first_line(error)}
    names = labels(reference.get_output_details())
    return answer | {"outputs": {n: apart(x, y) for n, x, y in zip(names, got, expected, strict=True)}}
