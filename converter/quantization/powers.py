"""Finds powers of two to divide tensors by without changing the results, given the operators' constraints.

A tensor's exponent is a ``Form``, a sum of unknowns with fractional factors: the graph computes tensor * 2**-exponent
instead of the tensor. Constants may have any exponent; inputs, outputs and operands of non-homogeneous operators have
0. Multiplying by a power of two is exact, so a layer's weights can compensate the exponents of its operand and result.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, lcm
from typing import TypeAlias

from litecl.interpreter.graph import ABSENT, Node, Subgraph
from litecl.interpreter.integers import Integers
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary, pool_2d, reduce, unary
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.conv_3d import CONV_3D
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU
from litecl.interpreter.ops.resize import RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV
from litecl.interpreter.schema import ActivationFunctionType, TensorType

Form: TypeAlias = Mapping[int, Fraction]
"""Factors by unknown; empty for 0."""
Operand = tuple[int, int]
"""A constant as read by a node: node and position."""

_HALF, _ONE, _TWO = Fraction(1, 2), Fraction(1), Fraction(2)
_STRAIGHT = (ActivationFunctionType.NONE, ActivationFunctionType.RELU)
PRODUCTS: Mapping[Op, tuple[int, int, int]] = {
    **dict.fromkeys((CONV_2D, DEPTHWISE_CONV_2D, CONV_3D, FULLY_CONNECTED), (0, 1, 2)),
    TRANSPOSE_CONV: (2, 1, 3),
    BATCH_MATMUL: (0, 1, 2),
    binary.MUL: (0, 1, 2),
}
"""The positions of the factors and of the addend."""
POWERS: Mapping[Op, Fraction] = {
    unary.SQUARE: _TWO,
    unary.SQRT: _HALF,
    unary.RSQRT: -_HALF,
    binary.SQUARED_DIFFERENCE: _TWO,
    **dict.fromkeys((binary.ADD, binary.SUB, binary.MAXIMUM, binary.MINIMUM), _ONE),
    **dict.fromkeys((unary.ABS, unary.NEG, unary.RELU, LEAKY_RELU, RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR), _ONE),
    **dict.fromkeys((reduce.SUM, reduce.MEAN, reduce.REDUCE_MAX, reduce.REDUCE_MIN), _ONE),
    **dict.fromkeys((pool_2d.AVERAGE_POOL_2D, pool_2d.MAX_POOL_2D), _ONE),
}
"""Operators whose operands share an exponent, and the factor from it to the result's."""


def _plus(a: Form, b: Form, factor: Fraction = _ONE) -> dict[int, Fraction]:
    total = {v: a.get(v, Fraction(0)) + factor * b.get(v, Fraction(0)) for v in {*a, *b}}
    return {v: c for v, c in total.items() if c}


@dataclass
class Exponents:
    """The exponents of a graph's tensors, and of its constants per use."""

    graph: Subgraph
    tensors: dict[int, Form] = field(default_factory=dict)
    constants: dict[Operand, Form] = field(default_factory=dict)
    _unknowns: int = 0

    def __post_init__(self) -> None:
        computed = {t for node in self.graph.nodes for t in node.outputs}
        self.tensors |= {t: {} for t, spec in enumerate(self.graph.tensors) if spec.data is None and t not in computed}
        for number, node in enumerate(self.graph.nodes):
            self._add(number, node)
        for tensor in self.graph.outputs:
            self._vanish(self.tensors.get(tensor, {}))

    def _is_float(self, tensor: int) -> bool:
        return tensor != ABSENT and self.graph.tensors[tensor].type == TensorType.FLOAT32

    def _add(self, number: int, node: Node) -> None:
        """Constrain a node's operands as its operator needs, and set the exponents of its results."""
        read = [p for p, t in enumerate(node.inputs) if self._is_float(t)]
        for position in read:
            if node.inputs[position] not in self.tensors:
                self.constants[number, position] = {self._unknowns: _ONE}
                self._unknowns += 1
        form = self._result(number, node, read)
        self.tensors |= dict.fromkeys(filter(self._is_float, node.outputs), form)

    def _of(self, number: int, position: int) -> Form:
        key = number, position
        return self.constants[key] if key in self.constants else self.tensors[self.graph.nodes[number].inputs[position]]

    def _result(self, number: int, node: Node, read: Sequence[int]) -> Form:
        op, straight = node.op, getattr(node.options, "fused_activation_function", _STRAIGHT[0]) in _STRAIGHT
        if not (straight and read and isinstance(op, Op) and self._is_homogeneous(op, node)):
            for position in read:
                self._vanish(self._of(number, position))
            return {}
        if op in PRODUCTS:
            x, y, added = PRODUCTS[op]
            if added in read:
                product = _plus(self._of(number, x), self._of(number, y))
                self._vanish(_plus(product, self._of(number, added), -_ONE))
            return _plus(self._of(number, x), self._of(number, y))
        if op is binary.DIV:
            return _plus(self._of(number, 0), self._of(number, 1), -_ONE)
        for position in read[1:]:
            self._vanish(_plus(self._of(number, read[0]), self._of(number, position), -_ONE))
        return _plus({}, self._of(number, read[0]), POWERS.get(op, _ONE))

    def _is_homogeneous(self, op: Op, node: Node) -> bool:
        """Return whether scaling a node's operands by powers of two scales its results exactly by one."""
        if op in (*PRODUCTS, binary.DIV):
            floats = sum(map(self._is_float, node.inputs))
            return floats == sum(t != ABSENT for t in node.inputs) - (op is TRANSPOSE_CONV)
        return op in POWERS or (isinstance(op.integers, Integers) and op.integers.moves)

    def _vanish(self, form: Form) -> None:
        """Constrain a form to 0: its last unknown then follows from the others."""
        if not form:
            return
        unknown = max(form)
        instead = {v: -c / form[unknown] for v, c in form.items() if v != unknown}

        def replaced(other: Form) -> Form:
            rest = {v: c for v, c in other.items() if v != unknown}
            return _plus(rest, instead, other[unknown]) if unknown in other else other

        self.tensors = {tensor: replaced(other) for tensor, other in self.tensors.items()}
        self.constants = {operand: replaced(other) for operand, other in self.constants.items()}


@dataclass(frozen=True)
class Need:
    """A form that should be at least ``least``."""

    form: Form
    least: int

    def lacks(self, values: Mapping[int, int]) -> Fraction:
        """Return by how much the form is too small."""
        return self.least - value(self.form, values)


def value(form: Form, values: Mapping[int, int]) -> Fraction:
    """Return a form's value; unknowns default to 0."""
    return sum((c * values.get(v, 0) for v, c in form.items()), Fraction(0))


def solved(needs: Sequence[Need], whole: Iterable[Form]) -> dict[int, int]:
    """Return values for the unknowns that meet as many needs as a greedy search can; ``whole`` forms stay integers."""
    step = lcm(*(c.denominator for form in whole for c in form.values()))
    values: dict[int, int] = {}
    total = _lack(needs, values)
    while total:
        worst = max(needs, key=lambda need: need.lacks(values))
        trials = [
            values | {v: values.get(v, 0) + _change(worst.lacks(values) / c, step)} for v, c in worst.form.items()
        ]
        best = min(trials, key=lambda trial: (_lack(needs, trial), _moved(trial)), default=values)
        if _lack(needs, best) >= total:
            needs = [need for need in needs if need is not worst]  # it can't be met, but the others may
        else:
            values = best
        total = _lack(needs, values)
    return values


def _lack(needs: Sequence[Need], values: Mapping[int, int]) -> Fraction:
    return sum((max(Fraction(0), need.lacks(values)) for need in needs), Fraction(0))


def _change(wanted: Fraction, step: int) -> int:
    """Return ``wanted`` rounded away from 0 to a multiple of ``step``."""
    size = ceil(abs(wanted) / step) * step
    return size if wanted > 0 else -size


def _moved(values: Mapping[int, int]) -> int:
    return sum(map(abs, values.values()))
