"""Constants in other files: beside a model's, or in sections of a bundle.

A group of the schema's ``external_buffer_groups`` is a file, named relative to the model's folder.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

import numpy as np

from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.flatbuffer import Record
from litecl.interpreter.graph import Array

Find = Callable[[str], memoryview]  # the content of a file by its name

WEIGHTS = (".bin", ".weights", ".weight", ".data")  # endings; exporters and LiteRT's tests use the first
SECTION = "tflite_weights"  # LiteRT-LM's name for a file, or a bundle's section, of weights
_ENDINGS = f"{', '.join(WEIGHTS[:-1])} or {WEIGHTS[-1]}, or {SECTION!r}"
_PLAIN = (None, "", "unpacked")  # packings that store bytes as in the model's own file


def verify(model: Record) -> None:
    """Raise ModelError unless every tensor's external buffer is listed once, with an existing group."""
    groups, known = model.external_buffer_groups or [], set()
    for index, buffer in enumerate(model.external_buffers or []):
        if buffer.id in known:
            raise ModelError(f"external buffer {index}: its id {buffer.id} is another's too")
        if buffer.group >= len(groups):
            raise ModelError(f"external buffer {index}: group {buffer.group} out of range for {len(groups)} groups")
        if buffer.packing not in _PLAIN:
            raise ModelError(f"external buffer {index}: packing {buffer.packing!r} is not known")
        known.add(buffer.id)
    for position, subgraph in enumerate(model.subgraphs or []):
        for index, tensor in enumerate(subgraph.tensors or []):
            if tensor.external_buffer and tensor.external_buffer not in known:
                raise ModelError(
                    f"subgraph {position}, tensor {index}: external buffer {tensor.external_buffer} is not listed"
                )


class ExternalBuffers:
    """The external buffers of a verified model. find: returns the content of a file by the name of its group."""

    def __init__(self, model: Record, find: Find) -> None:
        self._buffers = {buffer.id: buffer for buffer in model.external_buffers or []}
        self._groups = [group.name or "" for group in model.external_buffer_groups or []]
        self._find = find
        self._files: dict[str, memoryview] = {}

    def __getitem__(self, number: int) -> Array:
        """Return the bytes of a buffer by its id. Raises ModelError if its file is missing or too short."""
        buffer = self._buffers[number]
        name = self._groups[buffer.group]
        if name not in self._files:
            self._files[name] = self._find(name)
        content, end = self._files[name], buffer.offset + buffer.length
        if end > len(content):
            raise ModelError(f"{name!r}: bytes {buffer.offset} to {end} of a file of {len(content)} bytes")
        return np.frombuffer(content, np.uint8, buffer.length, buffer.offset)


def given(files: Mapping[str, memoryview]) -> Find:
    """Return a lookup of files by name among given contents."""

    def find(name: str) -> memoryview:
        if name not in files:
            raise ModelError(f"its values lie in another file, {name!r}, which does not exist; got {sorted(files)}")
        return files[name]

    return find


def beside(model: Path, read: Callable[[Path], memoryview]) -> Find:
    """Return a lookup of weight files in a model's folder, or in folders below it.

    A model must not read arbitrary files: the name must end like one of weights (``WEIGHTS``) or be ``SECTION``, and so
    must the file that links lead to, within the folder. If the model itself is a link, as in the cache of the Hugging
    Face Hub, links may also lead to the folder in which its file lies.
    """

    def find(name: str) -> memoryview:
        parts = {*PurePosixPath(name).parts, *PureWindowsPath(name).parts}
        if not parts or ".." in parts or PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor:
            raise ModelError(f"its values lie in another file, {name!r}: expected one in the folder of the model")
        if not _is_named_like_weights(PurePosixPath(name)):
            raise ModelError(f"its values lie in another file, {name!r}: expected a name that ends in {_ENDINGS}")
        path = Path(os.path.realpath(model.parent / name))
        is_within = path.is_relative_to(os.path.realpath(model.parent)) and _is_named_like_weights(path)
        if not is_within and not (model.is_symlink() and path.parent == Path(os.path.realpath(model)).parent):
            raise ModelError(
                f"its values lie in another file, {name!r}, which is a link: expected one to a file in the folder of "
                f"the model that ends in {_ENDINGS}"
            )
        return read(path)

    return find


def _is_named_like_weights(path: PurePath) -> bool:
    return path.suffix.lower() in WEIGHTS or path.name == SECTION
