"""The names of kept plans: a digest of all that partitionings and plans follow from.

That is the model with its constants, the known shapes, the options, the device, and litecl's own files. There is no
name, and so nothing is kept, where something else could have an effect: a user's operators, options that are no plain
values, a file of litecl that changed since the process began.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import zip_longest
from typing import Any

import numpy as np

from litecl.delegate import disk, own_code
from litecl.delegate.backend.protocols import Device
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.devices import tuning_of
from litecl.interpreter.graph import Array, Model, TensorSpec
from litecl.interpreter.ops import is_own

_VERSION = "1"  # of what is kept, besides the files of litecl
_MOST_BYTES = 1 << 29  # of a model's constants: reading more takes longer than planning
ELSEWHERE = frozenset(
    {"cache_dir", "compiler", "compile_timeout", "device", "progress", "programs", "tuning", "warm_up"}
)
"""Options that change no plan, or only by way of the device's identity and target."""
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes})


class _NoName(Exception):
    """Raised for a value whose effect on a plan a digest can't cover."""


def name_of(
    model: Model, specs: Sequence[Sequence[TensorSpec]], options: CLOptions, device: Device, *, preserve: bool
) -> str | None:
    """Return the name of a model's entry; None if its plans are not to be kept. preserve: as for ``Planner``."""
    code = own_code.digest()
    if code is None or options.custom_ops or options.dump_passes is not None:
        return None
    text = _Text()
    try:
        chosen = {item.name: getattr(options, item.name) for item in fields(options) if item.name not in ELSEWHERE}
        on = device.target, tuning_of(options, device), device.alignment
        parts = [text.of(part) for part in (chosen, preserve, on)]
        parts += [text.of_graph(graph, known) for graph, known in zip(model.subgraphs, specs, strict=True)]
        parts += [text.of((model.signatures, model.metadata))]
    except _NoName:
        return None
    if sum(array.nbytes for array in text.arrays) > _MOST_BYTES:
        return None
    content = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in text.arrays if array.size)
    return disk.key("plans", device.identity, (_VERSION, code, disk.digest(repr(parts).encode(), content).hex()))


def constants(model: Model, specs: Sequence[Sequence[TensorSpec]]) -> list[Array]:
    """Return the arrays of a model, and of what is known of it, in an order that a name determines: constants, scales
    and zero points.
    """
    tensors = [spec for known in (*(graph.tensors for graph in model.subgraphs), *specs) for spec in known]
    scales = [array for spec in tensors if (by := spec.quantization) for array in (by.scale, by.zero_point)]
    return [*(spec.data for spec in tensors if spec.data is not None), *scales]


class _Text:
    """Turns values into plain ones, of which ``repr`` says everything. arrays: those whose content is to be added."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._numbers: dict[int, int] = {}  # of arrays, by identity
        self._heads: dict[tuple[Any, ...], int] = {}  # of records' classes with fields, see ``_head``
        self._own: dict[int, bool] = {}  # whether operators are litecl's, by identity

    def of_graph(self, graph: Any, known: Sequence[TensorSpec]) -> Any:
        nodes = [
            (self._operator(n.op), n.inputs, n.outputs, self.of(n.options), n.intermediates, n.version)
            for n in graph.nodes
        ]
        declared = [self.of(spec) for spec in graph.tensors]
        again = [None if a is b else self.of(a) for a, b in zip_longest(known, graph.tensors)]
        return declared, again, graph.inputs, graph.outputs, nodes

    def of(self, value: Any) -> Any:
        """Return a plain value for a value. Raises _NoName for one of another kind."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is tuple or kind is list:
            return [kind.__name__, *(value if _PLAIN.issuperset(map(type, value)) else map(self.of, value))]
        if isinstance(value, Enum):
            return kind.__qualname__, value.name
        if kind is np.ndarray:
            return self._array(value)
        if is_dataclass(value) and kind.__module__.startswith("litecl."):
            return self._head(value), [p if type(p) in _PLAIN else self.of(p) for p in vars(value).values()]
        if isinstance(value, Mapping):
            return "mapping", [(self.of(k), self.of(v)) for k, v in value.items()]
        if kind is frozenset:
            return "set", sorted((self.of(each) for each in value), key=repr)
        if isinstance(value, np.generic):
            return kind.__name__, value.tobytes()
        raise _NoName

    def _head(self, record: Any) -> Any:
        """Return a record's class and the names of its fields; the next time, their number, which is short."""
        kind = type(record)
        head = (kind, *vars(record))
        if head not in self._heads:
            self._heads[head] = len(self._heads)
            return kind.__module__, kind.__qualname__, *vars(record)
        return self._heads[head]

    def _array(self, array: Array) -> Any:
        if array.dtype.hasobject:
            return "objects", array.shape, self.of(array.reshape(-1).tolist())
        if id(array) not in self._numbers:
            self._numbers[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return array.dtype.str, array.shape, self._numbers[id(array)]

    def _operator(self, op: Any) -> Any:
        if id(op) not in self._own:
            self._own[id(op)] = is_own(op)
        if not self._own[id(op)]:
            raise _NoName
        return op.name, op.custom
