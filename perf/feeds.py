"""Feeds and compares models through the interface shared by TFLite's interpreter and ours."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from litecl import comparison
from litecl.interpreter.errors import LiteclError, ModelError
from litecl.interpreter.feeding import told_apart
from litecl.interpreter.graph import Array
from litecl.interpreter.whole_files import whole_folder

Details = Mapping[str, Any]


class Runtime(Protocol):
    """An interpreter, ours or TFLite's."""

    def allocate_tensors(self) -> None:
        """Prepare the model for the shapes of its inputs."""

    def get_input_details(self) -> Sequence[Details]:
        """Return name, index, shape and dtype of every input."""

    def get_output_details(self) -> Sequence[Details]:
        """Return the same for every output."""

    def resize_tensor_input(self, input_index: int, tensor_size: npt.ArrayLike, /) -> None:
        """Resize an input."""

    def set_tensor(self, tensor_index: int, value: Array, /) -> None:
        """Set an input."""

    def get_tensor(self, tensor_index: int, /) -> Array:
        """Return a copy of an output."""

    def invoke(self) -> None:
        """Run the model."""


def random_inputs(details: Sequence[Details], seed: int) -> dict[str, Array]:
    """Return a value for every input by label, reproducible by seed.

    Floats are standard normal; 8- and 16-bit integers use their whole range, as quantized values do; wider integers
    are 0 or 1, so that they may serve as indices; strings are empty.
    """
    rng = np.random.default_rng(seed)
    shapes = [tuple(int(n) for n in d["shape"]) for d in details]
    values = [_random(rng, shape, np.dtype(d["dtype"])) for d, shape in zip(details, shapes, strict=True)]
    return dict(zip(labels(details), values, strict=True))


def named_inputs(details: Sequence[Details], inputs: Mapping[str, Array], seed: int) -> dict[str, Array]:
    """Return a value for every input by label, filling in random ones. Raises ModelError for an unknown name."""
    names = labels(details)
    if unknown := {*inputs} - {*names}:
        raise ModelError(f"inputs: there is no input {', '.join(map(repr, sorted(unknown)))}; the model has {names}")
    return {**random_inputs(details, seed), **inputs}


def _random(rng: "np.random.Generator", shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if comparison.is_float(dtype):
        return rng.standard_normal(shape).astype(dtype)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = (info.min, info.max + 1) if dtype.itemsize <= 2 else (0, 2)
        return rng.integers(low, high, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    return np.full(shape, b"", np.object_)


def labels(details: Sequence[Details]) -> list[str]:
    """Return unique names of tensors: their own, with "#" and their position if repeated."""
    return told_apart([str(d["name"]) for d in details])


def prepare(runtime: Runtime, inputs: Mapping[str, Array]) -> None:
    """Set input shapes and values by label; other inputs keep theirs."""
    details = runtime.get_input_details()
    given = [(d, inputs[label]) for label, d in zip(labels(details), details, strict=True) if label in inputs]
    for detail, value in given:
        if value.shape != tuple(detail["shape"]):
            runtime.resize_tensor_input(detail["index"], value.shape)
    runtime.allocate_tensors()
    for detail, value in given:
        runtime.set_tensor(detail["index"], value)


def outputs_of(runtime: Runtime) -> list[Array]:
    """Return the outputs in the model's order."""
    return [runtime.get_tensor(d["index"]) for d in runtime.get_output_details()]


def run_on(runtime: Runtime, values: Sequence[Array]) -> list[Array]:
    """Run a model on input values and return its outputs, both in the model's order."""
    prepare(runtime, dict(zip(labels(runtime.get_input_details()), values, strict=True)))
    runtime.invoke()
    return outputs_of(runtime)


def difference(got: Sequence[Array], expected: Sequence[Array]) -> float:
    """Return the largest difference of any element, relative to the largest magnitude in its expected tensor, or
    absolute where only zeros are expected. Their types may differ.

    Infinite if shapes differ, if strings differ, or if only one of two elements is finite or they are different
    non-finite values.
    """
    return max(
        (_relative(comparison.difference(a, b, any_type=True)) for a, b in zip(got, expected, strict=True)), default=0.0
    )


def steps(details: Sequence[Mapping[str, Any]], got: Sequence[Array], expected: Sequence[Array]) -> int | None:
    """Return the largest difference of any element in quantization steps; None if no output is quantized."""
    apart = [
        int(comparison.difference(a, b, any_type=True).absolute)
        for detail, a, b in zip(details, got, expected, strict=True)
        if detail["quantization_parameters"]["scales"].size
        and {a.dtype.kind, b.dtype.kind} <= {"i", "u"}
        and a.shape == b.shape
    ]
    return max(apart, default=None)


def _relative(apart: comparison.Difference) -> float:
    return float("inf") if apart.wrong else apart.absolute / (apart.magnitude or 1.0)


def save_outputs(outputs: Sequence[Details], values: Sequence[Array], folder: Path) -> list[Path]:
    """Write output values as .npy files named after the outputs, all or none; return the paths.

    Raises LiteclError for strings.
    """
    if strings := [
        details["name"] for details, value in zip(outputs, values, strict=True) if value.dtype == np.object_
    ]:
        raise LiteclError(f"output {strings[0]!r} holds strings, which .npy files do not store")
    paths: list[Path] = []
    with whole_folder(folder) as new:
        for position, (details, value) in enumerate(zip(outputs, values, strict=True)):
            safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in details["name"])
            paths.append(folder / f"{position}_{safe}.npy")
            np.save(new(paths[-1].name), value)
    return paths
