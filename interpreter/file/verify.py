"""Checks that a decoded model is consistent: every index is in range and every tensor has one origin.

``flatbuffer.decode`` ensures that the file can be decoded; this checks the numbers in it before their use. Every fault
is a ModelError that names subgraph, operator or tensor by index.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from litecl.interpreter.errors import ModelError, UnsupportedOp
from litecl.interpreter.file import external
from litecl.interpreter.file.flatbuffer import Record
from litecl.interpreter.file.tables import BUILTIN_OPERATORS
from litecl.interpreter.graph import ABSENT
from litecl.interpreter.options import COMPILED_FOR, compiled_for
from litecl.interpreter.schema import TensorType

_TYPES = frozenset(TensorType)
_MAX_RANK = 32  # the limit of numpy 1; models stay below 8
_MAX_BYTES = 2**63 - 1

# Operators that are meaningless without the subgraphs that their options name.
_CALLERS = {
    "IF": "IfOptions",
    "WHILE": "WhileOptions",
    "CALL": "CallOptions",
    "CALL_ONCE": "CallOnceOptions",
    "STABLEHLO_COMPOSITE": "StableHLOCompositeOptions",
}
# The number of inputs and outputs of a called subgraph, given those of its caller.
_ARITY: dict[tuple[str, str], Callable[[int, int], tuple[int, int]]] = {
    ("IfOptions", "then_subgraph_index"): lambda inputs, outputs: (inputs - 1, outputs),
    ("IfOptions", "else_subgraph_index"): lambda inputs, outputs: (inputs - 1, outputs),
    ("WhileOptions", "cond_subgraph_index"): lambda inputs, outputs: (inputs, 1),
    ("WhileOptions", "body_subgraph_index"): lambda inputs, outputs: (inputs, outputs),
    ("CallOnceOptions", "init_subgraph_index"): lambda inputs, outputs: (0, 0),
    ("CallOptions", "subgraph"): lambda inputs, outputs: (inputs, outputs),
    ("StableHLOCompositeOptions", "decomposition_subgraph_index"): lambda inputs, outputs: (inputs, outputs),
}


def verify(model: Record, size_bytes: int) -> None:
    """Raise ModelError if a decoded model from a file of ``size_bytes`` contradicts itself."""
    subgraphs = model.subgraphs or []
    if not subgraphs:
        raise ModelError("the model has no subgraph")
    for index, code in enumerate(model.operator_codes or []):
        _operator_code(f"operator code {index}", code)
    for index, buffer in enumerate(model.buffers or []):
        _span(f"buffer {index}", buffer.offset, buffer.size, size_bytes)
    external.verify(model)
    for index, subgraph in enumerate(subgraphs):
        _subgraph(f"subgraph {index}", subgraph, model, size_bytes)
    _no_recursion(subgraphs)
    for index, entry in enumerate(model.metadata or []):
        _index(f"metadata {index}", "buffer", entry.buffer, "buffers", model.buffers or [])
    for index, signature in enumerate(model.signature_defs or []):
        _signature(f"signature {index}", signature, subgraphs)


def builtin_code(code: Record) -> int:
    """Return the operator of an operator code: files older than 2020 have it in the first field, newer ones in both."""
    return max(int(code.deprecated_builtin_code), int(code.builtin_code))


def _options(operator: Record) -> Record | None:
    options: Record | None = operator.builtin_options or operator.builtin_options2
    return options


def _callees(operator: Record) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the subgraphs that an operator's options name, each with its table and its field."""
    options = _options(operator)
    if options is None:
        return
    for name, value in options.fields.items():
        if name.endswith("subgraph_index") or (options.table, name) == ("CallOptions", "subgraph"):
            yield (options.table, name), int(value)
        elif name == "branch_subgraph_indices":
            yield from (((options.table, name), index) for index in _ints(value))


def _operator_code(where: str, code: Record) -> None:
    value = builtin_code(code)
    if not 0 <= value < len(BUILTIN_OPERATORS):
        raise UnsupportedOp(f"{where}: builtin operator {value} is not one of {len(BUILTIN_OPERATORS)} known ones")
    if BUILTIN_OPERATORS[value] == "CUSTOM" and not code.custom_code:
        raise ModelError(f"{where}: a custom operator without a custom code")


def _subgraph(where: str, subgraph: Record, model: Record, size_bytes: int) -> None:
    tensors = subgraph.tensors or []
    for index, tensor in enumerate(tensors):
        _tensor(f"{where}, tensor {index}", tensor, model, tensors)
    for index, operator in enumerate(subgraph.operators or []):
        _operator(f"{where}, operator {index}", operator, model, tensors, size_bytes)
    for role in ("inputs", "outputs"):
        for tensor in _ints(subgraph.fields[role]):
            _index(where, role[:-1], tensor, "tensors", tensors)
    _origins(where, subgraph, model)


def _tensor(where: str, tensor: Record, model: Record, tensors: Sequence[Record]) -> None:
    if tensor.type not in _TYPES:
        raise ModelError(f"{where}: element type {tensor.type} is not known")
    shape = _ints(tensor.shape)
    if len(shape) > _MAX_RANK:
        raise ModelError(f"{where}: rank {len(shape)} is more than {_MAX_RANK}")
    if any(d < 0 for d in shape):
        raise ModelError(f"{where}: negative dimension in shape {list(shape)}")
    # Leaves out zeros, because numpy refuses a shape whose other dimensions overflow.
    if math.prod(d for d in shape if d) * TensorType(tensor.type).dtype.itemsize > _MAX_BYTES:
        raise ModelError(f"{where}: shape {list(shape)} has more elements than memory can hold")
    if any(d < -1 for d in _ints(tensor.shape_signature)):
        raise ModelError(f"{where}: dimension below -1 in shape signature {list(_ints(tensor.shape_signature))}")
    if tensor.buffer or model.buffers:
        _index(where, "buffer", tensor.buffer, "buffers", model.buffers or [])
    if tensor.is_variable and has_data(tensor, model):
        raise ModelError(f"{where}: a variable tensor must not have a buffer")
    if tensor.quantization is not None:
        _quantization(where, tensor.quantization, shape, tensors)
    if tensor.sparsity is not None:
        _sparsity(where, tensor.sparsity, len(shape))


def has_data(tensor: Record, model: Record) -> bool:
    """Return whether a tensor is a constant with values in this or another file."""
    if tensor.external_buffer:
        return True
    buffer = model.buffers[tensor.buffer] if model.buffers else None
    if buffer is None:
        return False
    return is_outside(buffer) or (buffer.data is not None and buffer.data.size > 0)


def is_outside(buffer: Record) -> bool:
    """Return whether a buffer's bytes are stored after the FlatBuffer (an offset or a size of 1 is a placeholder)."""
    return bool(buffer.offset > 1 and buffer.size > 1)


def _quantization(where: str, quantization: Record, shape: Sequence[int], tensors: Sequence[Record]) -> None:
    scales = 0 if quantization.scale is None else quantization.scale.size
    zero_points = 0 if quantization.zero_point is None else quantization.zero_point.size
    axis = quantization.quantized_dimension
    if scales and zero_points not in (0, 1, scales):
        raise ModelError(f"{where}: {scales} scales and {zero_points} zero points")
    if scales > 1 and not 0 <= axis < len(shape):
        raise ModelError(f"{where}: quantized dimension {axis} out of range for rank {len(shape)}")
    if scales > 1 and scales != shape[axis]:
        raise ModelError(f"{where}: {scales} scales for dimension {axis} of shape {list(shape)}")
    details = quantization.details
    if details is None or details.table != "BlockwiseQuantization":
        return
    _index(where, "tensor of scales", details.scales, "tensors", tensors)
    held = _ints(tensors[details.scales].shape)
    if details.block_size <= 0 or blocked_axis(shape, held, details.block_size) is None:
        raise ModelError(
            f"{where}: expected scales for blocks of {details.block_size} along a dimension of {list(shape)}, "
            f"got them of shape {list(held)}"
        )


def blocked_axis(shape: Sequence[int], scales: Sequence[int], size: int) -> int | None:
    """Return the dimension of a tensor that its scales divide into blocks; None if they fit none.

    A file's quantized dimension does not help: ai-edge-quantizer writes 0 for blocks along the last one.
    """
    for axis in reversed(range(len(shape))):
        if (*shape[:axis], shape[axis] / size, *shape[axis + 1 :]) == tuple(scales):
            return axis
    return None


def _sparsity(where: str, sparsity: Record, rank: int) -> None:
    """Check a layout of https://arxiv.org/abs/1804.10112 (TACO): levels in traversal order, blocks last."""
    order, blocks = _ints(sparsity.traversal_order), _ints(sparsity.block_map)
    levels = sparsity.dim_metadata or []
    if sorted(order) != list(range(len(order))) or len(levels) != len(order) or len(order) != rank + len(blocks):
        raise ModelError(f"{where}: sparsity of {len(levels)} levels, order {list(order)} and blocks {list(blocks)}")
    if any(not 0 <= dimension < rank for dimension in blocks):
        raise ModelError(f"{where}: sparsity block map {list(blocks)} out of range for rank {rank}")
    for index, level in enumerate(levels):
        if level.format == 0 and level.dense_size < 0:
            raise ModelError(f"{where}: sparsity level {index} has the dense size {level.dense_size}")
        if level.format not in (0, 1):
            raise ModelError(f"{where}: sparsity level {index} has the unknown format {level.format}")
        if level.format == 1:
            _sparse_level(f"{where}: sparsity level {index}", level)


def _sparse_level(where: str, level: Record) -> None:
    if level.array_segments is None or level.array_indices is None:
        raise ModelError(f"{where} has no segments or no indices")
    segments, indices = (
        np.asarray(() if part.values is None else part.values, np.int64)
        for part in (level.array_segments, level.array_indices)
    )
    if not segments.size or segments[0] or np.any(np.diff(segments) < 0) or segments[-1] != indices.size:
        raise ModelError(f"{where}: segments do not divide {indices.size} indices")
    if np.any(indices < 0):
        raise ModelError(f"{where}: negative index")


def _operator(where: str, operator: Record, model: Record, tensors: Sequence[Record], size_bytes: int) -> None:
    _index(where, "operator code", operator.opcode_index, "operator codes", model.operator_codes or [])
    for role in ("inputs", "outputs", "intermediates"):
        for tensor in _ints(operator.fields[role]):
            if tensor != ABSENT:
                _index(where, role[:-1], tensor, "tensors", tensors)
    both = set(_ints(operator.inputs)) & set(_ints(operator.outputs)) - {ABSENT}
    if both:
        raise ModelError(f"{where}: tensor {min(both)} is both input and output")
    name, options = BUILTIN_OPERATORS[builtin_code(model.operator_codes[operator.opcode_index])], _options(operator)
    if name in _CALLERS and (options is None or options.table != _CALLERS[name]):
        raise ModelError(f"{where}: {name} without {_CALLERS[name]}")
    for field, callee in _callees(operator):
        _index(where, "subgraph", callee, "subgraphs", model.subgraphs)
        _arity(where, operator, field, callee, model.subgraphs[callee])
    _span(where, operator.large_custom_options_offset, operator.large_custom_options_size, size_bytes)


def _arity(where: str, operator: Record, field: tuple[str, str], index: int, callee: Record) -> None:
    if field not in _ARITY:
        return
    expected = _ARITY[field](len(_ints(operator.inputs)), len(_ints(operator.outputs)))
    got = (len(_ints(callee.inputs)), len(_ints(callee.outputs)))
    if got != expected:
        raise ModelError(
            f"{where}: subgraph {index}, its {field[1]}, has {got[0]} inputs and {got[1]} outputs, "
            f"expected {expected[0]} and {expected[1]}"
        )


def _origins(where: str, subgraph: Record, model: Record) -> None:
    """Check that every tensor read is an input, a constant, a variable, or was written by an earlier operator."""
    tensors, operators = subgraph.tensors or [], subgraph.operators or []
    written: dict[int, int] = {}
    given = {ABSENT, *_ints(subgraph.inputs)}
    for index, operator in enumerate(operators):
        for tensor in _ints(operator.outputs):
            if tensor in written and tensor != ABSENT:
                raise ModelError(
                    f"{where}, operator {index}: tensor {tensor} is already written by operator {written[tensor]}"
                )
            if tensor != ABSENT and has_data(tensors[tensor], model):
                raise ModelError(f"{where}, operator {index}: output tensor {tensor} is a constant")
            if tensor != ABSENT and tensor in given:
                raise ModelError(f"{where}, operator {index}: output tensor {tensor} is an input of the subgraph")
            written[tensor] = index
    for index, operator in enumerate(operators):
        for tensor in _ints(operator.inputs):
            known = tensor in given or (tensor not in written and _has_value(tensors[tensor], model))
            if not known and written.get(tensor, index) >= index:
                name = model.operator_codes[operator.opcode_index].custom_code
                fault = compiled_for(name) if name in COMPILED_FOR else f"input tensor {tensor} has no value yet"
                raise ModelError(f"{where}, operator {index}: {fault}")
    for tensor in _ints(subgraph.outputs):
        if tensor not in given and tensor not in written and not _has_value(tensors[tensor], model):
            raise ModelError(f"{where}: output tensor {tensor} is never written")


def _has_value(tensor: Record, model: Record) -> bool:
    return bool(tensor.is_variable) or has_data(tensor, model) or 0 in _ints(tensor.shape)


def _no_recursion(subgraphs: Sequence[Record]) -> None:
    """Refuse a subgraph that calls itself, directly or through others: it would never end."""
    calls = [
        {callee for operator in subgraph.operators or [] for _, callee in _callees(operator)} for subgraph in subgraphs
    ]
    left = set(range(len(calls)))
    while left:
        leaves = {index for index in left if not calls[index] & left}
        if not leaves:
            raise ModelError(f"subgraph {min(left)} calls itself, directly or through subgraphs {sorted(left)}")
        left -= leaves


def _signature(where: str, signature: Record, subgraphs: Sequence[Record]) -> None:
    _index(where, "subgraph", signature.subgraph_index, "subgraphs", subgraphs)
    tensors = subgraphs[signature.subgraph_index].tensors or []
    for entry in (*(signature.inputs or []), *(signature.outputs or [])):
        _index(where, f"tensor of {entry.name!r}", entry.tensor_index, "tensors", tensors)


def _span(where: str, offset: int, size: int, size_bytes: int) -> None:
    if offset > 1 and size > 1 and offset + size > size_bytes:
        raise ModelError(f"{where}: {size} bytes at {offset} reach past the end of the file of {size_bytes} bytes")


def _index(where: str, role: str, index: int, things: str, all_: Sequence[Any]) -> None:
    if not 0 <= index < len(all_):
        raise ModelError(f"{where}: {role} {index} out of range for {len(all_)} {things}")


def _ints(values: Iterable[int] | None) -> tuple[int, ...]:
    return () if values is None else tuple(np.asarray(values).tolist())
