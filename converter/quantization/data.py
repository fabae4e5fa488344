"""Reads representative data sets in their various forms as samples of named inputs.

A data set is one of:
- a function that returns samples (like TFLiteConverter's ``representative_dataset``), or the samples themselves;
- a mapping of input names to arrays that hold all samples along their first dimension, or an .npz file of one;
- one such array for a model with one input, or a .npy file of one.
A sample is a list or tuple of the inputs in order, a mapping of names to inputs, the only input, or a pair of a
signature key and one of these. It may be a batch, even for a model declared with another batch size, and has any size
along open dimensions.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from os import PathLike
from typing import Any

import numpy as np

from litecl.converter.quantization.options import Quantization
from litecl.interpreter.errors import ConversionError, ModelError, brief
from litecl.interpreter.graph import Array, Model, Signature
from litecl.interpreter.tensor_files import opened

Sample = tuple[Signature, dict[str, Array]]


def signatures_of(model: Model) -> tuple[Signature, ...]:
    """Return the model's signatures; if it has none, one that uses tensor names."""
    if model.signatures:
        return model.signatures
    graph = model.subgraphs[0]
    inputs, outputs = (
        {graph.tensors[t].name or str(t): t for t in tensors} for tensors in (graph.inputs, graph.outputs)
    )
    return (Signature("serving_default", inputs, outputs),)


def samples(how: Quantization, model: Model) -> list[Sample]:
    """Return the samples of a data set, checked against the model's inputs. Raises ConversionError if there are none.

    All are kept in memory, since many functions can be read only once.
    """
    if how.data is None:
        raise ConversionError(
            f'quantize: activations="{how.activations}" need representative data: Quantization(data=...) or --calibrate'
        )
    signatures = signatures_of(model)
    try:
        data = _loaded(how.data) if isinstance(how.data, str | PathLike) else how.data
        drawn = list(islice(_samples(data, model, signatures), how.samples))
    except OSError as error:
        told = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise ConversionError(f"quantize: the representative data cannot be read: {brief(told)}") from error
    if not drawn:
        raise ConversionError("quantize: the representative data has no samples")
    checked = [_checked(index, key, values, model, signatures) for index, (key, values) in enumerate(drawn)]
    return [part for sample in checked for part in _fitting(model, sample)]


def _loaded(path: str | PathLike[str]) -> Any:
    try:
        with opened(path, "an .npz file") as arrays:
            return arrays if isinstance(arrays, np.ndarray) else dict(arrays)
    except ModelError as error:
        raise ConversionError(f"quantize: the representative data cannot be read: {error}") from error


def _samples(data: Any, model: Model, signatures: Sequence[Signature]) -> Iterator[tuple[str | None, Any]]:
    if callable(data):
        data = data()
    if isinstance(data, np.ndarray):
        data = {next(iter(signatures[0].inputs)): data}
    if isinstance(data, Mapping):
        yield from ((None, sample) for sample in _batches(data, _batch(model, signatures[0])))
        return
    for sample in data:
        if isinstance(sample, tuple) and len(sample) == 2 and isinstance(sample[0], str):
            yield sample
        else:
            yield None, sample


def _fitting(model: Model, sample: Sample) -> Iterator[Sample]:
    """Split a batch into batches of the declared size, if that is fixed and divides it."""
    signature, values = sample
    tensors = model.subgraphs[signature.subgraph].tensors
    declared = {name: _dims(tensors[signature.inputs[name]])[:1] for name in values}
    parts = {
        len(value) / d[0] if d and d[0] > 0 else 1.0
        for value, d in zip(values.values(), declared.values(), strict=True)
    }
    count = parts.pop() if len(parts) == 1 else 1.0
    if count <= 1 or not count.is_integer():
        yield sample
        return
    split = {name: np.split(value, int(count)) for name, value in values.items()}
    yield from ((signature, dict(zip(split, part, strict=True))) for part in zip(*split.values(), strict=True))


def _dims(spec: Any) -> tuple[int, ...]:
    """Return the declared dimensions of an input, -1 for open ones."""
    return spec.shape_signature or spec.shape or ()


def _batch(model: Model, signature: Signature) -> int:
    """Return the declared batch size of a signature's inputs; 1 if it is open."""
    specs = [model.subgraphs[signature.subgraph].tensors[t] for t in signature.inputs.values()]
    return max((spec.shape[0] for spec in specs if spec.shape), default=1)


def _batches(data: Mapping[str, Any], size: int) -> Iterator[dict[str, Array]]:
    """Yield samples of ``size`` elements along the first dimension of all arrays."""
    arrays = {name: np.asarray(values) for name, values in data.items()}
    counts = {name: values.shape[0] if values.ndim else 0 for name, values in arrays.items()}
    if len(set(counts.values())) > 1:
        raise ConversionError(f"quantize: the representative data's arrays differ in their first dimension: {counts}")
    for start in range(0, next(iter(counts.values()), 0) // size * size, size):
        yield {name: values[start : start + size] for name, values in arrays.items()}


def _checked(
    index: int, key: str | None, sample: Any, model: Model, signatures: Sequence[Signature]
) -> tuple[Signature, dict[str, Array]]:
    signature = _signature(index, key, sample, signatures)
    if not isinstance(sample, Mapping):
        sample = sample if isinstance(sample, list | tuple) else [sample]
        names = _in_order(model, signature)
        if len(sample) != len(names):
            raise ConversionError(f"quantize: sample {index}: expected inputs {names}, got {len(sample)} arrays")
        sample = dict(zip(names, sample, strict=True))
    if sample.keys() != signature.inputs.keys():
        raise ConversionError(
            f"quantize: sample {index}: expected inputs {sorted(signature.inputs)}, got {sorted(sample)}"
        )
    graph = model.subgraphs[signature.subgraph]
    return signature, {
        name: _value(f"sample {index}, input {name!r}", value, graph.tensors[signature.inputs[name]])
        for name, value in sample.items()
    }


def _signature(index: int, key: str | None, sample: Any, signatures: Sequence[Signature]) -> Signature:
    if key is not None:
        named = next((s for s in signatures if s.key == key), None)
        if named is None:
            raise ConversionError(
                f"quantize: sample {index}: expected a signature of {[s.key for s in signatures]}, got {key!r}"
            )
        return named
    if isinstance(sample, Mapping):
        return next((s for s in signatures if s.inputs.keys() == sample.keys()), signatures[0])
    return signatures[0]


def _in_order(model: Model, signature: Signature) -> list[str]:
    names = {tensor: name for name, tensor in signature.inputs.items()}
    return [names[t] for t in model.subgraphs[signature.subgraph].inputs if t in names]


def _value(where: str, value: Any, spec: Any) -> Array:
    array = np.asarray(value)
    if array.dtype.kind == "f" and spec.dtype.kind == "f":
        array = array.astype(spec.dtype)
    declared = _dims(spec)
    fits = len(array.shape) == len(declared) and all(
        d in (-1, n) or axis == 0 for axis, (d, n) in enumerate(zip(declared, array.shape, strict=True))
    )
    if array.dtype != spec.dtype or not fits:
        raise ConversionError(
            f"quantize: {where}: expected {spec.dtype} {list(declared)}, got {array.dtype} {list(array.shape)}"
        )
    return array
