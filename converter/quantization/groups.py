"""Assigns scales to activations: one per tensor, or one for all tensors that operators tie together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from litecl.converter.quantization.calibrate import Known, Ranges
from litecl.converter.quantization.cells import Cell, memory_scale
from litecl.converter.quantization.choose import Chosen, operands, results
from litecl.converter.quantization.limits import LIMITS
from litecl.converter.quantization.observers import Range, range_of
from litecl.converter.quantization.rules import Rule
from litecl.converter.quantization.scales import Affine, affine, given, range_held
from litecl.interpreter.graph import Subgraph
from litecl.interpreter.schema import TensorType

Use = tuple[int, int]
"""A constant operand: node and position. Each use may have its own scale."""

_Member = int | Use


@dataclass(frozen=True)
class Scales:
    """The scales of tensors as producers write them, and of operands as nodes read them."""

    tensors: Mapping[int, Affine]
    operands: Mapping[Use, Affine]


def assign(graph: Subgraph, chosen: Chosen, known: Known, type_: TensorType) -> Scales:
    """Return the scales of all activations of nodes that have rules.

    Operators that share scales pass on a known or prescribed scale, unless they join the tensor with others; then it is
    converted to their scale.
    """
    work = _Assignment(graph, chosen.rules, known.ranges, type_, dict(known.scales))
    for number, cell in chosen.cells.items():
        work.keep(number, cell)
    work.fix()
    work.tie()
    return work.scales()


class _Assignment:
    def __init__(
        self,
        graph: Subgraph,
        rules: Mapping[int, Rule],
        ranges: Ranges,
        type_: TensorType,
        fixed: dict[int, Affine],
    ) -> None:
        self._graph, self._rules, self._ranges, self._type = graph, rules, ranges, type_
        self._fixed = fixed
        self._parents: dict[_Member, _Member] = {}
        self._joined: dict[_Member, list[Range]] = {}  # ranges of tensors that are converted to a group's scale

    def keep(self, number: int, cell: Cell) -> None:
        """Set the state scales of an LSTM layer: the hidden state has that of the result, the cell state its own."""
        (written,) = self._graph.nodes[number].outputs
        self._fixed[cell.memory] = memory_scale(self._ranges[cell.memory])
        if written in self._fixed:
            self._fixed[cell.hidden] = self._fixed[written]
        else:
            self._unite(written, cell.hidden)

    def fix(self) -> None:
        """Find tensors whose scale an operator prescribes, and those that inherit it."""
        for number, rule in sorted(self._rules.items()):
            written = results(self._graph, self._graph.nodes[number])
            if rule.fixed:
                self._fixed |= dict.fromkeys(written, given(*rule.fixed[self._type]))
            elif rule.shared:
                common = self._common(number, rule)
                if common is not None:
                    self._fixed |= {t: common for t in written if t not in self._fixed}

    def _common(self, number: int, rule: Rule) -> Affine | None:
        """Return the fixed quantization that all operands share, if there is one that holds the node's constants."""
        fixed: list[Affine] = []
        constants: list[Range] = []
        for tensor, use in self._operands(number, rule):
            if isinstance(use, tuple):
                constants += [] if rule.clips else [self._range(use)]
            elif tensor in self._fixed:
                fixed.append(self._fixed[tensor])
            else:
                return None
        if not fixed or not all(fixed[0].same(other) for other in fixed):
            return None
        held = range_held(fixed[0], self._type)
        return fixed[0] if all(held.holds(r) for r in constants) else None

    def tie(self) -> None:
        """Group tensors that share a scale."""
        for number, rule in self._rules.items():
            if not rule.shared:
                continue
            written = [t for t in results(self._graph, self._graph.nodes[number]) if t not in self._fixed]
            if not written:
                continue
            for tensor in written[1:]:
                self._unite(written[0], tensor)
            for tensor, member in self._operands(number, rule):
                if rule.clips and isinstance(member, tuple):
                    continue
                if tensor in self._fixed:
                    self._joined.setdefault(written[0], []).append(self._range(tensor))
                else:
                    self._unite(written[0], member)

    def scales(self) -> Scales:
        """Return the scales of groups and single tensors."""
        known = {root: affine(values, self._type) for root, values in self._groups().items()}

        def scale(tensor: int, member: _Member) -> Affine:
            return self._fixed.get(tensor) or known[self._root(member)]

        written = [t for number in self._rules for t in results(self._graph, self._graph.nodes[number])]
        tensors = {t: scale(t, t) for t in written}
        of_operands: dict[Use, Affine] = {}
        for number, rule in self._rules.items():
            node = self._graph.nodes[number]
            positions = operands(self._graph, node, rule)
            for (tensor, member), position in zip(self._operands(number, rule), positions, strict=True):
                of_operands[number, position] = scale(tensor, member)
                if not isinstance(member, tuple):
                    tensors[tensor] = scale(tensor, member)
            if rule.steps:
                of_operands |= self._compared(number, rule, of_operands)
            if rule.shared:  # a fixed operand is converted to the results' scale
                of_operands |= {(number, p): tensors[t] for t in results(self._graph, node)[:1] for p in positions}
        return Scales(tensors, of_operands)

    def _compared(self, number: int, rule: Rule, known: Mapping[Use, Affine]) -> dict[Use, Affine]:
        """Return the scale of the other operand for constants that need it.

        These are zeros, which have no scale of their own, and limits that it holds, so that comparisons are exact.
        """
        node = self._graph.nodes[number]
        members = [member for _, member in self._operands(number, rule)]
        uses = [(number, p) for p in operands(self._graph, node, rule)]
        given = [known[use] for use, member in zip(uses, members, strict=True) if not isinstance(member, tuple)]
        if not given:
            return {}
        held, constants = range_held(given[0], self._type), [m for m in members if isinstance(m, tuple)]
        zeros = [m for m in constants if self._range(m) == (0, 0)]
        limits = [m for m in constants if node.op in LIMITS and held.holds(self._range(m))]
        return dict.fromkeys((*zeros, *limits), given[0])

    def _groups(self) -> dict[_Member, Range]:
        """Return the range of each group, by root."""
        groups: dict[_Member, Range] = {}
        for member in self._members():
            root, values = self._root(member), self._range(member)
            for more in self._joined.get(member, ()):
                values |= more
            groups[root] = groups[root] | values if root in groups else values
        return groups

    def _operands(self, number: int, rule: Rule) -> list[tuple[int, _Member]]:
        """Return a node's activation operands: the tensors, and their group members."""
        node = self._graph.nodes[number]
        read = [(node.inputs[position], position) for position in operands(self._graph, node, rule)]
        return [(t, t if self._graph.tensors[t].data is None else (number, position)) for t, position in read]

    def _members(self) -> Iterator[_Member]:
        seen: dict[_Member, None] = {}
        for number, rule in self._rules.items():
            seen |= dict.fromkeys(results(self._graph, self._graph.nodes[number]))
            seen |= dict.fromkeys(member for _, member in self._operands(number, rule))
        yield from (member for member in seen if member not in self._fixed)

    def _range(self, member: _Member) -> Range:
        if not isinstance(member, tuple):
            return self._ranges.get(member) or range_held(self._fixed[member], self._type)
        data = self._graph.tensors[self._graph.nodes[member[0]].inputs[member[1]]].data
        assert data is not None
        return range_of(data) or Range(0.0, 0.0)

    def _root(self, member: _Member) -> _Member:
        while member in self._parents:
            member = self._parents[member]
        return member

    def _unite(self, a: _Member, b: _Member) -> None:
        a, b = self._root(a), self._root(b)
        if a != b:
            self._parents[b] = a
