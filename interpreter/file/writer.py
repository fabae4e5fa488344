"""Writes a ``Model`` as a ``.tflite`` file.

Constants that share memory share a buffer, as do large ones of the same bytes. Every buffer starts at a multiple of
16 bytes. A FlatBuffer holds at most 2 GiB: beyond a limit, buffers follow it, located by ``Buffer.offset`` and
``Buffer.size``.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from litecl.interpreter.errors import ModelError
from litecl.interpreter.file import associated, storage
from litecl.interpreter.file.encoding import encode
from litecl.interpreter.file.flatbuffer import Record
from litecl.interpreter.file.options import encode_custom_options, encode_options
from litecl.interpreter.file.tables import BUILTIN_OPERATORS, FILE_IDENTIFIER, UNIONS
from litecl.interpreter.graph import Array, Model, Node, Quantization, Signature, Sparsity, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.schema import TensorType
from litecl.interpreter.whole_files import whole_file

INLINE_LIMIT_BYTES = 2**31 - 2**27
"""The most bytes of buffers in a FlatBuffer, which leaves 128 MiB for everything else."""

_ALIGNMENT = 16
_LARGE_BYTES = 1024
_SCHEMA_VERSION = 3
_LAST_DEPRECATED_CODE = BUILTIN_OPERATORS.index("PLACEHOLDER_FOR_GREATER_OP_CODES")
_CUSTOM = BUILTIN_OPERATORS.index("CUSTOM")


def write(model: Model, *, inline_limit_bytes: int = INLINE_LIMIT_BYTES) -> bytes:
    """Return the bytes of a ``.tflite`` file; buffers follow the FlatBuffer if they take more than
    ``inline_limit_bytes``.

    Raises ModelError for anything that the format cannot express.
    """
    return b"".join(_chunks(model, inline_limit_bytes))


def write_file(model: Model, path: str | os.PathLike[str], *, inline_limit_bytes: int = INLINE_LIMIT_BYTES) -> None:
    """Write the file in one step, so that a model may overwrite the file that it was read from."""
    with whole_file(Path(path)) as file:
        file.writelines(_chunks(model, inline_limit_bytes))


def _chunks(model: Model, inline_limit_bytes: int) -> Iterator[memoryview | bytes]:
    """Yield the file in pieces; the associated files come last."""
    size = 0
    for chunk in _model_chunks(model, inline_limit_bytes):
        size += memoryview(chunk).nbytes
        yield chunk
    if model.associated:
        yield associated.placed(model.associated, size)


def _model_chunks(model: Model, inline_limit_bytes: int) -> Iterator[memoryview | bytes]:
    """Yield the model: the FlatBuffer, then the buffers outside it, each after its padding."""
    emitter = _Emitter()
    root = emitter.model(model)
    raw = emitter.buffers
    total = sum(buffer.nbytes for buffer in raw)
    if total <= inline_limit_bytes:
        root.fields["buffers"] = [Record("Buffer", data=buffer if buffer.size else None) for buffer in raw]
        yield encode(root, FILE_IDENTIFIER, size_hint_bytes=total + 65536)
        return
    # Runtimes assume that a buffer of at most one byte, or at an offset of at most 1, is stored inside.
    outside = [buffer.nbytes > 1 for buffer in raw]
    # The first pass determines the size of the FlatBuffer, in which any offset but 0 takes the same space.
    root.fields["buffers"] = _buffer_records(raw, outside, start=1)
    root.fields["buffers"] = _buffer_records(raw, outside, start=_aligned(len(encode(root, FILE_IDENTIFIER))))
    content = encode(root, FILE_IDENTIFIER)
    yield content
    end = len(content)
    for buffer in (b for b, out in zip(raw, outside, strict=True) if out):
        yield bytes(_aligned(end) - end)
        yield buffer.data
        end = _aligned(end) + buffer.nbytes


def _buffer_records(raw: Sequence[Array], outside: Sequence[bool], start: int) -> list[Record]:
    records, offset = [], start
    for buffer, out in zip(raw, outside, strict=True):
        if out:
            records.append(Record("Buffer", offset=offset, size=buffer.nbytes))
            offset = _aligned(offset + buffer.nbytes)
        else:
            records.append(Record("Buffer", data=buffer if buffer.size else None))
    return records


def _aligned(position: int) -> int:
    return -(-position // _ALIGNMENT) * _ALIGNMENT


class _Emitter:
    """Turns a model into records of the schema, and collects the buffers and operator codes that its parts share."""

    def __init__(self) -> None:
        self.buffers: list[Array] = [np.zeros(0, np.uint8)]  # the schema keeps buffer 0 empty
        self._shared: dict[tuple[Any, ...], int] = {}
        self._by_digest: dict[bytes, int] = {}
        self._kept: list[Array] = []  # an address identifies an array only while the array lives
        self._codes: dict[tuple[str, bool, int], int] = {}

    def model(self, model: Model) -> Record:
        subgraphs = [self._subgraph(subgraph) for subgraph in model.subgraphs]
        metadata = [
            Record("Metadata", name=name, buffer=self._add(np.frombuffer(data, np.uint8)))
            for name, data in model.metadata.items()
        ]
        return Record(
            "Model",
            version=_SCHEMA_VERSION,
            operator_codes=[_operator_code(*key) for key in self._codes],
            subgraphs=subgraphs,
            description=model.description,
            metadata=metadata or None,
            signature_defs=[_signature(signature) for signature in model.signatures] or None,
        )

    def _subgraph(self, subgraph: Subgraph) -> Record:
        tensors = list(subgraph.tensors)
        records = [self._tensor(spec, tensors) for spec in subgraph.tensors]
        records += [self._tensor(spec, tensors) for spec in tensors[len(records) :]]  # scales of block quantization
        return Record(
            "SubGraph",
            tensors=records,
            inputs=subgraph.inputs,
            outputs=subgraph.outputs,
            operators=[self._operator(node) for node in subgraph.nodes],
            name=subgraph.name,
        )

    def _tensor(self, spec: TensorSpec, tensors: list[TensorSpec]) -> Record:
        return Record(
            "Tensor",
            shape=spec.shape,
            type=int(spec.type),
            buffer=0 if spec.data is None else self._constant(spec.data, spec.type),
            name=spec.name,
            quantization=None if spec.quantization is None else _quantization(spec.quantization, tensors),
            is_variable=spec.is_variable,
            sparsity=None if spec.sparsity is None else _sparsity(spec.sparsity),
            shape_signature=spec.shape_signature,
            has_rank=spec.shape is not None,
        )

    def _constant(self, data: Array, type_: TensorType) -> int:
        """Return the buffer of a constant; equal memory and type, or equal bytes, share one."""
        address = id(data) if data.dtype.hasobject else data.__array_interface__["data"][0]
        key = (address, data.shape, data.strides, data.dtype.str, type_)
        if key not in self._shared:
            self._shared[key] = self._of_bytes(storage.store(data, type_))
            self._kept.append(data)
        return self._shared[key]

    def _of_bytes(self, raw: Array) -> int:
        """Return a buffer of these bytes, which parts share: a layer's weights in a loop and before it, say."""
        if raw.nbytes < _LARGE_BYTES:
            return self._add(raw)
        digest = hashlib.sha256(raw.data).digest()
        if digest not in self._by_digest:
            self._by_digest[digest] = self._add(raw)
        return self._by_digest[digest]

    def _add(self, raw: Array) -> int:
        self.buffers.append(raw)
        return len(self.buffers) - 1

    def _operator(self, node: Node) -> Record:
        key = (node.op.name, node.op.custom, node.version)
        record = Record(
            "Operator",
            opcode_index=self._codes.setdefault(key, len(self._codes)),
            inputs=node.inputs,
            outputs=node.outputs,
            intermediates=node.intermediates or None,
        )
        record.fields.update(_options(node.op, node.options))
        return record


def _options(op: Op | ControlOp, options: object) -> dict[str, Any]:
    if op.custom:
        data = encode_custom_options(options)
        return {"custom_options": np.frombuffer(data, np.uint8)} if data else {}
    table = encode_options(options)
    if table is None:
        return {}
    return {"builtin_options" if table.table in UNIONS["BuiltinOptions"] else "builtin_options2": table}


def _operator_code(name: str, custom: bool, version: int) -> Record:
    if not custom and name not in BUILTIN_OPERATORS:
        raise ModelError(f"{name} is not a builtin operator of the schema")
    code = _CUSTOM if custom else BUILTIN_OPERATORS.index(name)
    return Record(
        "OperatorCode",
        deprecated_builtin_code=min(code, _LAST_DEPRECATED_CODE),
        custom_code=name if custom else None,
        version=version,
        builtin_code=code,
    )


def _quantization(quantization: Quantization, tensors: list[TensorSpec]) -> Record:
    record = Record(
        "QuantizationParameters",
        min=quantization.min,
        max=quantization.max,
        # The shapes of blocks determine the dimension that they divide; XNNPACK refuses files that state it here.
        quantized_dimension=0 if quantization.block_size else quantization.quantized_dimension,
    )
    if quantization.block_size:
        record.fields["details"] = Record(
            "BlockwiseQuantization",
            scales=_tensor_of(quantization.scale, tensors),
            zero_points=_tensor_of(quantization.zero_point, tensors) if np.any(quantization.zero_point) else -1,
            block_size=quantization.block_size,
        )
    else:
        record.fields.update(scale=quantization.scale, zero_point=quantization.zero_point)
    return record


def _tensor_of(data: Array, tensors: list[TensorSpec]) -> int:
    """Return the index of the tensor that holds an array, after appending one if there is none."""
    for index, spec in enumerate(tensors):
        if spec.data is data:
            return index
    tensors.append(TensorSpec(TensorType.of(data.dtype), data.shape, data=data))
    return len(tensors) - 1


def _sparsity(sparsity: Sparsity) -> Record:
    return Record(
        "SparsityParameters",
        traversal_order=sparsity.traversal_order,
        block_map=sparsity.block_map,
        dim_metadata=[
            Record("DimensionMetadata", format=0, dense_size=d.dense_size)
            if d.segments is None or d.indices is None
            else Record(
                "DimensionMetadata",
                format=1,
                array_segments=_index_vector(d.segments),
                array_indices=_index_vector(d.indices),
            )
            for d in sparsity.dimensions
        ],
    )


def _index_vector(values: Array) -> Record:
    tables = {"uint8": "Uint8Vector", "uint16": "Uint16Vector"}
    return Record(tables.get(values.dtype.name, "Int32Vector"), values=values)


def _signature(signature: Signature) -> Record:
    inputs, outputs = (
        [Record("TensorMap", name=name, tensor_index=index) for name, index in names.items()]
        for names in (signature.inputs, signature.outputs)
    )
    return Record(
        "SignatureDef", inputs=inputs, outputs=outputs, signature_key=signature.key, subgraph_index=signature.subgraph
    )
