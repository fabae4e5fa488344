"""The structure around a graph's nodes, which identifies them whatever their numbers and names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b

from litecl.interpreter.graph import ABSENT, Node, Subgraph
from litecl.interpreter.ops.quantize import DEQUANTIZE, QUANTIZE

_CHANGES_TYPE = (QUANTIZE, DEQUANTIZE)
Result = tuple[int, int]
"""A node and the position of one of its results."""


def changes_type(node: Node) -> bool:
    """Return whether a node stores the same numbers in another type."""
    return node.op in _CHANGES_TYPE


@dataclass(frozen=True)
class Facts:
    """A graph with the structure around its nodes, ignoring nodes that only change the type of numbers."""

    graph: Subgraph
    _producers: Mapping[int, Result] = field(init=False)

    def __post_init__(self) -> None:
        nodes = enumerate(self.graph.nodes)
        object.__setattr__(self, "_producers", {t: (i, k) for i, node in nodes for k, t in enumerate(node.outputs)})

    def source(self, tensor: int) -> int:
        """Follow casts and (de)quantization back to the original tensor."""
        while tensor in self._producers and changes_type(node := self.graph.nodes[self._producers[tensor][0]]):
            tensor = node.inputs[0]
        return tensor

    def producer(self, tensor: int) -> Result | None:
        """Return the result that holds a tensor's numbers; None for an input or a constant."""
        return self._producers.get(self.source(tensor))

    @cached_property
    def readers(self) -> Mapping[int, list[Result]]:
        """By tensor, the nodes that read its numbers, and at which operand position."""
        readers: dict[int, list[Result]] = {}
        for i, node in enumerate(self.graph.nodes):
            if not changes_type(node):
                for position, tensor in enumerate(node.inputs):
                    readers.setdefault(self.source(tensor), []).append((i, position))
        return readers

    @cached_property
    def ends(self) -> Mapping[int, int]:
        """By tensor, the position of the graph output that has its numbers."""
        return {self.source(t): position for position, t in enumerate(self.graph.outputs)}

    @cached_property
    def before(self) -> list[str]:
        """Digests of the structure before each node: operators and operands, from the inputs on."""
        inputs = {t: position for position, t in enumerate(self.graph.inputs)}
        digests: list[str] = []

        def operand(tensor: int) -> str:
            source = self.source(tensor) if tensor != ABSENT else ABSENT
            if source in self._producers:
                node, position = self._producers[source]
                return f"{digests[node]}.{position}"
            return "absent" if source == ABSENT else f"input {inputs[source]}" if source in inputs else "constant"

        for node in self.graph.nodes:
            digests += [_digest(node.op.name, *map(operand, node.inputs))]
        return digests

    @cached_property
    def after(self) -> list[str]:
        """Digests of the structure after each node: operators that read its results, up to the outputs."""
        digests = [""] * len(self.graph.nodes)
        for i in reversed(range(len(digests))):
            node, uses = self.graph.nodes[i], []
            for position, tensor in enumerate(node.outputs):
                uses += [f"{position}>{digests[reader]}.{at}" for reader, at in self.readers.get(tensor, ())]
                uses += [f"{position}>output {self.ends[tensor]}"] if tensor in self.ends else []
            digests[i] = _digest(node.op.name, *sorted(uses))
        return digests

    @cached_property
    def constants(self) -> list[str]:
        """Digests of each node's constants."""
        return [_digest(*(self._value(t) for t in node.inputs)) for node in self.graph.nodes]

    def _value(self, tensor: int) -> str:
        data = None if tensor == ABSENT else self.graph.tensors[tensor].data
        return "" if data is None else _digest(str(data.dtype), str(data.shape), data.tobytes())

    def name(self, node: int) -> str:
        """Return the name of a node's first result."""
        outputs = self.graph.nodes[node].outputs
        return self.graph.tensors[outputs[0]].name if outputs else ""


def _digest(*parts: str | bytes) -> str:
    whole = blake2b(digest_size=12)
    for part in parts:
        encoded = part if isinstance(part, bytes) else part.encode()
        whole.update(len(encoded).to_bytes(8, "little") + encoded)
    return whole.hexdigest()
