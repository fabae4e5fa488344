"""Reads a ``.tflite`` file as a ``Model``.

It reads a file whole, and constants are views of its content: only packed small integers and strings are copied. It
does not map the file: if a mapped file is truncated later, the next access to a constant kills the process.
"""

import os
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.buffers import aligned
from litecl.interpreter.errors import ArgumentError, ModelError, ModelFileError, ModelFileNotFound
from litecl.interpreter.file import associated, external, storage
from litecl.interpreter.file.external import ExternalBuffers, Find
from litecl.interpreter.file.flatbuffer import Record, decode
from litecl.interpreter.file.options import decode_custom_options, decode_options
from litecl.interpreter.file.tables import BUILTIN_OPERATORS, FILE_IDENTIFIER
from litecl.interpreter.file.verify import blocked_axis, builtin_code, has_data, is_outside, verify
from litecl.interpreter.graph import (
    Array,
    DimensionMetadata,
    Model,
    Node,
    Quantization,
    Signature,
    Sparsity,
    Subgraph,
    TensorSpec,
)
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops import BUILTINS, CUSTOMS
from litecl.interpreter.options import unknown_op
from litecl.interpreter.regular_files import open_regular
from litecl.interpreter.schema import TensorType


def read(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview | Model,
    find: Find | None = None,
) -> Model:
    """Return the model in a file, given by path or by content. A ``Model`` is returned as it is.

    find: returns other files that hold constants, by name. None: they lie beside a model that is given by its path.
    Raises ModelError for a malformed file, naming the table, the index and the path, and ModelFileError for an
    unreadable path.
    """
    if isinstance(source, Model):
        return source
    content = content_of(source)
    try:
        if content[4:8] != FILE_IDENTIFIER and (other := _described(content)):
            raise ModelError(other)
        root = decode(content, "Model", FILE_IDENTIFIER)
        verify(root, len(content))
        return _Reader(root, content, ExternalBuffers(root, find or _finding(source))).model()
    except ModelError as error:
        if not isinstance(source, bytes | bytearray | memoryview):
            error.add_note(f"in {os.fspath(source)}")
        raise


def _described(content: memoryview) -> str | None:
    from litecl.interpreter.file.other_formats import described  # most files are models

    return described(content)


def _finding(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> Find:
    """Return the lookup of files that hold a model's constants."""
    if isinstance(source, bytes | bytearray | memoryview):
        return external.given({})
    return external.beside(Path(source), content_of)


def content_of(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> memoryview:
    """Return the bytes of a file. Raises ModelError for an empty or too large one, ModelFileError for a bad path."""
    if isinstance(source, bytes | bytearray | memoryview):
        return memoryview(source).cast("B").toreadonly()
    with _opened(source) as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            raise ModelError(f"{os.fspath(source)} is empty")
        if size > limits.MOST_BYTES:
            raise ModelError(f"{os.fspath(source)} has {size} bytes, expected at most {limits.MOST_BYTES}")
        return _aligned(file, size)


def _opened(source: str | os.PathLike[str]) -> FileIO:
    """Open a model file. Raises ModelFileError, which is an OSError too, or ArgumentError unless it is a path."""
    try:
        return open_regular(Path(source))
    except FileNotFoundError as error:
        raise ModelFileNotFound(error.errno, error.strerror, os.fspath(source)) from None
    except OSError as error:
        raise ModelFileError(error.errno, error.strerror, os.fspath(source)) from None
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"expected a path, the bytes of a file or a Model, got {source!r:.100}") from error


def _aligned(file: FileIO, size: int) -> memoryview:
    """Return up to ``size`` bytes of a file, aligned for vectors."""
    try:
        content = aligned(size).data
    except MemoryError:
        raise ModelError(f"{file.name}: not enough memory for {size} bytes") from None
    done = 0
    while count := file.readinto(content[done:]):
        done += count
    return content[:done].toreadonly()


class _Reader:
    """Turns the verified records of a file into a model."""

    def __init__(self, root: Record, content: memoryview, outside: ExternalBuffers) -> None:
        self._root = root
        self._outside = outside
        self._content = content
        self._codes = [_operator(code) for code in root.operator_codes or []]
        self._constants: dict[tuple[Any, ...], Array] = {}

    def model(self) -> Model:
        root = self._root
        return Model(
            subgraphs=tuple(self._subgraph(index, record) for index, record in enumerate(root.subgraphs)),
            signatures=tuple(_signature(record) for record in root.signature_defs or []),
            metadata={entry.name or "": self._buffer(entry.buffer).tobytes() for entry in root.metadata or []},
            description=root.description or "",
            associated=associated.read(self._content),
        )

    def _buffer(self, index: int) -> Array:
        """Return the bytes of a buffer, in the FlatBuffer or after it."""
        buffer = self._root.buffers[index]
        if is_outside(buffer):
            return np.frombuffer(self._content, np.uint8, buffer.size, buffer.offset)
        return np.zeros(0, np.uint8) if buffer.data is None else buffer.data

    def _subgraph(self, index: int, record: Record) -> Subgraph:
        records = record.tensors or []
        computed = {tensor for operator in record.operators or [] for tensor in _ints(operator.outputs)}
        computed |= set(_ints(record.inputs))
        values: list[Array | None] = []
        for position, tensor in enumerate(records):
            try:
                values.append(self._value(tensor, position in computed))
            except ModelError as error:
                raise ModelError(f"subgraph {index}, tensor {position} ({tensor.name!r}): {error}") from None
        nodes: list[Node] = []
        for position, operator in enumerate(record.operators or []):
            try:
                nodes.append(self._node(operator))
            except ModelError as error:
                raise type(error)(f"subgraph {index}, operator {position}: {error}") from None
        return Subgraph(
            tensors=tuple(_tensor(tensor, value, values) for tensor, value in zip(records, values, strict=True)),
            inputs=_ints(record.inputs),
            outputs=_ints(record.outputs),
            nodes=tuple(nodes),
            name=record.name or "",
        )

    def _value(self, tensor: Record, computed: bool) -> Array | None:
        """Return the value of a constant; a tensor without elements is one if nothing computes it."""
        type_, shape = TensorType(tensor.type), _ints(tensor.shape)
        if not has_data(tensor, self._root):
            empty = 0 in shape and not computed and not tensor.is_variable
            return np.zeros(shape, type_.dtype) if empty else None
        key = (tensor.buffer, tensor.external_buffer, type_, shape, tensor.sparsity is None)
        if key not in self._constants:
            raw = self._outside[tensor.external_buffer] if tensor.external_buffer else self._buffer(tensor.buffer)
            stored = shape if tensor.sparsity is None else (storage.stored_elements(type_, raw.nbytes),)
            self._constants[key] = storage.load(raw, type_, stored)
        return self._constants[key]

    def _node(self, operator: Record) -> Node:
        op, version = self._codes[operator.opcode_index]
        table = operator.builtin_options or operator.builtin_options2
        options = decode_custom_options(op, self._custom_options(operator)) if op.custom else decode_options(op, table)
        if isinstance(op, Op) and op.select is not None:
            op = op.select(options)
        return Node(
            op=op,
            inputs=_ints(operator.inputs),
            outputs=_ints(operator.outputs),
            options=options,
            intermediates=_ints(operator.intermediates),
            version=version,
        )

    def _custom_options(self, operator: Record) -> bytes:
        start, size = operator.large_custom_options_offset, operator.large_custom_options_size
        if start > 1 and size > 1:
            return bytes(self._content[start : start + size])
        return b"" if operator.custom_options is None else bytes(operator.custom_options)


def _operator(code: Record) -> tuple[Op | ControlOp, int]:
    name = BUILTIN_OPERATORS[builtin_code(code)]
    if name == "CUSTOM":
        return CUSTOMS.get(code.custom_code) or unknown_op(code.custom_code, custom=True), code.version
    return BUILTINS.get(name) or unknown_op(name, custom=False), code.version


def _tensor(record: Record, value: Array | None, values: list[Array | None]) -> TensorSpec:
    return TensorSpec(
        type=TensorType(record.type),
        shape=_ints(record.shape),
        name=record.name or "",
        data=value,
        quantization=_quantization(record, values),
        sparsity=None if record.sparsity is None else _sparsity(record.sparsity),
        shape_signature=_ints(record.shape_signature) or None,
        is_variable=record.is_variable,
    )


def _quantization(tensor: Record, values: list[Array | None]) -> Quantization | None:
    """Return affine parameters; None if a file has none or only the range. values: hold the scales of blocks."""
    record = tensor.quantization
    if record is None:
        return None
    details, axis, block_size = record.details, record.quantized_dimension, 0
    scale, zero_point = record.scale, record.zero_point
    if details is not None and details.table == "BlockwiseQuantization":
        scale, block_size = values[details.scales], details.block_size
        axis = 0 if scale is None else blocked_axis(_ints(tensor.shape), scale.shape, block_size)
        zero_point = values[details.zero_points] if 0 < details.zero_points < len(values) else None
    if scale is None or not scale.size:
        return None
    if zero_point is None or zero_point.size != scale.size:
        zero_point = np.full(scale.shape, zero_point[0] if zero_point is not None and zero_point.size else 0, np.int64)
    return Quantization(scale, zero_point, axis, record.min, record.max, block_size)


def _sparsity(record: Record) -> Sparsity:
    return Sparsity(
        traversal_order=_ints(record.traversal_order),
        block_map=_ints(record.block_map),
        dimensions=tuple(_dimension(level) for level in record.dim_metadata or []),
    )


def _dimension(level: Record) -> DimensionMetadata:
    if level.format == 0:
        return DimensionMetadata(dense_size=level.dense_size)
    return DimensionMetadata(segments=level.array_segments.values, indices=level.array_indices.values)


def _signature(record: Record) -> Signature:
    inputs, outputs = (
        {entry.name or "": entry.tensor_index for entry in entries or []} for entries in (record.inputs, record.outputs)
    )
    return Signature(record.signature_key or "", inputs, outputs, record.subgraph_index)


def _ints(values: Array | None) -> tuple[int, ...]:
    return () if values is None else tuple(values.tolist())
