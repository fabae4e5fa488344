"""Which nodes are alike: runtimes are expected to treat nodes of one kind in the same way.

A kind is written ``OP | operands | results | options``. An operand is its type; ``*`` for a scale, ``**AXIS`` for a
scale of each slice, ``*#`` for scales of blocks; ``z`` for a zero point other than 0 where the format expects 0, ``l``
for the lowest of int16; ``p`` for a power of two as the scale of int16; ``%`` for a sparse tensor; ``=`` for a
constant, ``@`` for a variable; and in brackets its rank, with ``b`` for a batch of more than one, ``e`` for an empty
tensor, and how it broadcasts: ``s`` for one element, ``r`` for the last dimensions of the result, ``x`` otherwise. A
result ends with ``~`` if its scale or zero point is not the operand's.

Nodes that run subgraphs or work on resource variables are alike if the types of their operands and results are. Of
those that run subgraphs, a composite's name must be the same too, whether a subgraph runs others (``nested``), and
whether one hands on what LiteRT overwrites (``overwritten``).
"""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph, TensorSpec, callees_of
from litecl.interpreter.overwritten import handed_on
from litecl.interpreter.schema import TensorType

_SEPARATOR = " | "
_COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
_ARITHMETIC = ("ADD", "SUB", "MUL", "DIV", "FLOOR_DIV", "FLOOR_MOD", "POW", "SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM")
_OTHERS = ("LOGICAL_AND", "LOGICAL_OR", "SELECT", "SELECT_V2", "PRELU", "ATAN2", "BITWISE_XOR", "RIGHT_SHIFT")
_BROADCASTS = frozenset((*_COMPARISONS, *_ARITHMETIC, *_OTHERS))
_REDUCTIONS = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL")
_AXES = frozenset((*_REDUCTIONS, "ARG_MAX", "ARG_MIN", "CUMSUM", "REVERSE_V2", "EXPAND_DIMS"))
_FEW = 8  # axes
CALLERS = frozenset(("CALL", "CALL_ONCE", "IF", "STABLEHLO_COMPOSITE", "WHILE"))
"""Operators that run subgraphs: their numbers are those of the nodes there."""
WITH_OTHERS = CALLERS | {"VAR_HANDLE", "ASSIGN_VARIABLE", "READ_VARIABLE"}
"""Operators that only run together with others."""


@dataclass(frozen=True)
class Kind:
    """The kind of a node: what a runtime may take or refuse it for, or compute otherwise."""

    op: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    options: tuple[str, ...]

    def __str__(self) -> str:
        parts = self.op, *(" ".join(part) for part in (self.operands, self.results, self.options))
        return _SEPARATOR.join(parts)

    @classmethod
    def parse(cls, text: str) -> "Kind":
        """Return the kind that ``str`` writes as ``text``."""
        op, *parts = text.split(_SEPARATOR)
        operands, results, options = (tuple(part.split()) for part in parts)
        return cls(op, operands, results, options)

    @property
    def is_hybrid(self) -> bool:
        """Whether floats meet weights of integers, for which runtimes may quantize the floats."""
        weights = any(text.startswith(("int", "uint")) and "*" in text and "=" in text for text in self.operands)
        floats = any(text.startswith("float") and "=" not in text for text in self.operands)
        return weights and floats and all(text.startswith("float") for text in self.results)

    @property
    def types(self) -> str:
        """The operator and the types of its tensors, with their scales' stars: ``ADD int8* int8* -> int8*``."""
        operands, results = (" ".join(map(type_of, part)) for part in (self.operands, self.results))
        return f"{self.op} {operands} -> {results}"


def type_of(text: str) -> str:
    """Return the type of an operand with its stars: ``int8**`` of ``int8**0=[4]``."""
    match = re.match(r"(intermediate:)?(\w+)(\*#|\*\*|\*)?", text)
    return text if match is None else match[2] + (match[3] or "")


def kind_of(model: Model, graph: Subgraph, node: Node) -> Kind:
    """Return a node's kind. graph: with the shapes of the run; an unknown one is ``?``, like no other's."""
    tensors = graph.tensors
    if node.op.name in WITH_OTHERS:
        read, written = (
            tuple(sorted({tensors[t].type.name.lower() for t in part if t != ABSENT}))
            for part in (node.inputs, node.outputs)
        )
        return Kind(node.op.name, read, written, tuple(_subgraphs(model, node)))
    outputs = [tensors[t] for t in node.outputs]
    result = outputs[0].shape if outputs and node.op.name in _BROADCASTS else None
    operands = tuple("-" if t == ABSENT else _operand(tensors[t], result) for t in node.inputs)
    first = next((tensors[t] for t in node.inputs if t != ABSENT and _has_scale(tensors[t])), None)
    results = tuple(_operand(spec, None) + _rescaled(spec, first) for spec in outputs)
    inner = [f"intermediate:{_operand(tensors[t], None)}" for t in dict.fromkeys(node.intermediates) if t != ABSENT]
    options = (*_options(graph, node), *_axes(graph, node), *dict.fromkeys(inner), *_names(graph, node))
    return Kind(node.op.name.replace(" ", "_"), operands, results, options)


def _subgraphs(model: Model, node: Node) -> Iterator[str]:
    """Yield what matters to some runtimes of a node's subgraphs, and the name of a composite."""
    called = callees_of(node)
    if any(callees_of(inner) for callee in called for inner in model.subgraphs[callee].nodes):
        yield "nested"
    if called and any(one.is_overwritten and one.subgraph in called for one in handed_on(model)):
        yield "overwritten"
    if name := getattr(node.options, "name", ""):
        yield f"name={name}".replace(" ", "_")


def _operand(spec: TensorSpec, result: tuple[int, ...] | None) -> str:
    role = "=" if spec.data is not None else "@" if spec.is_variable else ""
    sparse = "%" if spec.sparsity is not None else ""
    return f"{spec.type.name.lower()}{_scales(spec)}{sparse}{role}[{_shape(spec, result)}]"


def _has_scale(spec: TensorSpec) -> bool:
    return spec.quantization is not None and bool(spec.quantization.scale.size)


def _scales(spec: TensorSpec) -> str:
    if not _has_scale(spec):
        return ""
    assert spec.quantization is not None
    scales, zeros = spec.quantization.scale, spec.quantization.zero_point
    kind = "*#" if spec.quantization.block_size else "*"
    if scales.size > 1 and not spec.quantization.block_size:
        kind = f"**{spec.quantization.quantized_dimension}"
    symmetric = spec.data is not None or spec.type in (TensorType.INT16, TensorType.INT32)
    power = spec.type == TensorType.INT16 and scales.size == 1 and np.frexp(scales.ravel()[0])[0] == 0.5
    lowest = spec.type == TensorType.INT16 and bool((zeros == np.iinfo(np.int16).min).all())
    return kind + ("l" if lowest else "z" if symmetric and zeros.any() else "") + ("p" if power else "")


def _rescaled(spec: TensorSpec, first: TensorSpec | None) -> str:
    """Return ``~`` for a result whose scale or zero point is another than that of the first operand of its type."""
    if first is None or not _has_scale(spec) or spec.type != first.type:
        return ""
    assert spec.quantization is not None and first.quantization is not None
    return "" if spec.quantization.same(first.quantization) else "~"


def _shape(spec: TensorSpec, result: tuple[int, ...] | None) -> str:
    shape = spec.shape
    if shape is None:
        return "?"
    batch = "b" if spec.data is None and len(shape) > 1 and shape[0] > 1 else ""
    empty = "e" if 0 in shape else ""
    return f"{len(shape)}{batch}{empty}{'' if result is None else _broadcast(shape, result)}"


def _broadcast(shape: tuple[int, ...], result: tuple[int, ...]) -> str:
    if shape == result:
        return ""
    if all(n == 1 for n in shape):
        return "s"
    inner = shape[next(i for i, n in enumerate(shape) if n != 1) :]
    return "r" if inner == result[len(result) - len(inner) :] else "x"


def _options(graph: Subgraph, node: Node) -> Iterator[str]:
    if not is_dataclass(node.options):
        return
    for option in fields(node.options):
        value = getattr(node.options, option.name)
        if option.name in ("axis", "seq_dim", "batch_dim", "dim"):
            yield f"{option.name}={_axis(graph, node, value)}"
        elif option.name == "new_shape":
            yield f"{option.name}={_new_shape(graph, node, value)}"
        else:
            yield f"{option.name}={_value(value)}".replace(" ", "_")


def _axis(graph: Subgraph, node: Node, axis: Any) -> str:
    specs = [graph.tensors[t] for t in node.inputs if t != ABSENT]
    rank = max((len(spec.shape) for spec in specs if spec.shape is not None), default=0)
    if not isinstance(axis, int) or not rank or not -rank <= axis < rank:
        return _value(axis)
    at = axis % rank
    return "last" if at == rank - 1 else "first" if at == 0 else "inner"


def _new_shape(graph: Subgraph, node: Node, value: tuple[int, ...]) -> str:
    """Return RESHAPE's option: as none where an operand gives the same shape, else ``other``, as OpenVINO obeys it."""
    result = graph.tensors[node.outputs[0]].shape
    operand = next((graph.tensors[t] for t in node.inputs[1:] if t != ABSENT), None)
    if not value or result is None or operand is None or operand.shape is None or len(operand.shape) != 1:
        return _value(value)
    agrees = len(value) == len(result) and all(n in (-1, size) for n, size in zip(value, result, strict=True))
    return _value(()) if agrees else "other"


def _value(value: Any) -> str:
    """Return an option's value: a name or a flag itself, a number as its sign, 0, 1 or more."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bool | np.bool_) or value is None or isinstance(value, str):
        return str(value)
    if isinstance(value, int | float | np.number):
        number = float(value)
        return "0" if number == 0 else "1" if number == 1 else "nan" if number != number else _range(number)
    if isinstance(value, list | tuple | np.ndarray):
        return f"{len(value)}_values"
    if isinstance(value, bytes):
        return f"bytes:{zlib.crc32(value):08x}"
    return type(value).__name__


def _range(number: float) -> str:
    if number < 0:
        return "<0"
    return "0..1" if number < 1 else ">1"


def _names(graph: Subgraph, node: Node) -> Iterator[str]:
    """Yield a mark if two tensors share a name, or have none: OpenVINO tells tensors apart by their names."""
    names = [graph.tensors[t].name for t in dict.fromkeys((*node.inputs, *node.outputs)) if t != ABSENT]
    if len({*names} - {""}) < len(names):
        yield "names=repeated"


def _axes(graph: Subgraph, node: Node) -> Iterator[str]:
    """Yield the constant axes of a reduction, as positions from the last dimension."""
    if node.op.name not in _AXES or len(node.inputs) < 2 or ABSENT in node.inputs[:2]:
        return
    x, axes = (graph.tensors[t] for t in node.inputs[:2])
    if axes.data is not None and x.shape is not None and axes.data.size <= _FEW:
        rank = max(1, len(x.shape))
        yield f"axes={','.join(str(a) for a in sorted({int(a) % rank - rank for a in axes.data.ravel()}))}"
