"""Expands optimizer steps into variable reads, arithmetic and whole writes.

Formulas: tensorflow/core/kernels/training_ops.cc.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.interpreter.schema import TensorType

_Operand = Union["_Tensor", float]


def write_out_steps(function: Function) -> None:
    """Expand the known steps in a function; those of other optimizers stay, to be refused later."""
    for node in list(function.nodes):
        rule = _RULES.get(node.op_name)
        if rule is not None and all(value is not None for value in node.inputs):
            _Step(function, node).take(rule)
    function.tidy()


class _Tensor:
    """A value in a step, of a variable's shape or a scalar. Python's operators add TensorFlow nodes."""

    def __init__(self, step: "_Step", value: Value) -> None:
        self._step = step
        self.value = value

    def _op(self, op: str, *others: _Operand) -> "_Tensor":
        values = [self.value, *(self._of(other) for other in others)]
        shape = max((value.shape or () for value in values), key=len)
        return self._step.emit(op, values, self.value.type, shape)

    def _of(self, other: _Operand) -> Value:
        if isinstance(other, _Tensor):
            return other.value
        return constant(np.asarray(other, self.value.type.dtype), self.value.name)

    def __add__(self, other: _Operand) -> "_Tensor":
        return self._op("AddV2", other)

    def __sub__(self, other: _Operand) -> "_Tensor":
        return self._op("Sub", other)

    def __rsub__(self, other: float) -> "_Tensor":
        return _Tensor(self._step, self._of(other)) - self

    def __mul__(self, other: _Operand) -> "_Tensor":
        return self._op("Mul", other)

    def __truediv__(self, other: _Operand) -> "_Tensor":
        return self._op("RealDiv", other)

    def maximum(self, other: _Operand) -> "_Tensor":
        return self._op("Maximum", other)

    def sqrt(self) -> "_Tensor":
        return self._op("Sqrt")

    def abs(self) -> "_Tensor":
        return self._op("Abs")


class _Step:
    """The nodes that replace a step; ``operands`` are its own, with handles replaced by their variables' values."""

    def __init__(self, function: Function, node: Node) -> None:
        self._function = function
        self._node = node
        self._nodes: list[Node] = []
        self.operands: Sequence[_Tensor] = []

    def take(self, rule: "_Rule") -> None:
        """Replace the node by what the rule emits, if its variables are known."""
        inputs = [self._node.input(i) for i in range(len(self._node.inputs))]
        if any(value.type == TensorType.RESOURCE and value.variable is None for value in inputs):
            return
        self.operands = [self._read(value) for value in inputs]
        rule(self)
        position = self._function.nodes.index(self._node)
        self._function.nodes[position:position] = self._nodes
        self._function.replace_node(self._node, ())

    def _read(self, value: Value) -> _Tensor:
        if value.variable is None:
            return _Tensor(self, value)
        data = value.variable.data
        return self.emit("ReadVariableOp", [value], TensorType.of(data.dtype), data.shape)

    def emit(self, op: str, inputs: Sequence[Value], type_: TensorType, shape: tuple[int | None, ...]) -> _Tensor:
        """Emit a node and return its result."""
        result = Value(type_, shape, self._node.name)
        self._nodes.append(Node(op, inputs, [result], {}, self._node.name))
        return _Tensor(self, result)

    def asks(self, attribute: str) -> bool:
        """Return whether an attribute is set."""
        return bool(self._node.attrs.get(attribute))

    def assign(self, position: int, tensor: _Tensor) -> _Tensor:
        """Write the variable at an operand position, and return its new value."""
        handle = self._node.input(position)
        self._nodes.append(Node("AssignVariableOp", [handle, tensor.value], [], {}, self._node.name))
        return tensor


_Rule = Callable[[_Step], Any]


def _gradient_descent(s: _Step) -> None:
    var, rate, gradient = s.operands
    s.assign(0, var - rate * gradient)


def _momentum(s: _Step) -> None:
    var, sums, rate, gradient, momentum = s.operands
    sums = s.assign(1, sums * momentum + gradient)
    step = gradient * rate + sums * momentum * rate if s.asks("use_nesterov") else sums * rate
    s.assign(0, var - step)


def _keras_momentum(s: _Step) -> None:
    var, sums, rate, gradient, momentum = s.operands
    sums = s.assign(1, sums * momentum - gradient * rate)
    s.assign(0, var + (sums * momentum - gradient * rate if s.asks("use_nesterov") else sums))


def _adam(s: _Step) -> None:
    var, m, v, power_1, power_2, rate, beta_1, beta_2, epsilon, gradient = s.operands
    rate = rate * (1 - power_2).sqrt() / (1 - power_1)
    m = s.assign(1, m + (gradient - m) * (1 - beta_1))
    v = s.assign(2, v + (gradient * gradient - v) * (1 - beta_2))
    step = gradient * (1 - beta_1) + beta_1 * m if s.asks("use_nesterov") else m
    s.assign(0, var - rate * step / (v.sqrt() + epsilon))


def _adam_with_amsgrad(s: _Step) -> None:
    var, m, v, largest, power_1, power_2, rate, beta_1, beta_2, epsilon, gradient = s.operands
    rate = rate * (1 - power_2).sqrt() / (1 - power_1)
    m = s.assign(1, m + (gradient - m) * (1 - beta_1))
    v = s.assign(2, v + (gradient * gradient - v) * (1 - beta_2))
    largest = s.assign(3, largest.maximum(v))
    s.assign(0, var - rate * m / (largest.sqrt() + epsilon))


def _adamax(s: _Step) -> None:
    var, m, v, power, rate, beta_1, beta_2, epsilon, gradient = s.operands
    m = s.assign(1, m + (gradient - m) * (1 - beta_1))
    v = s.assign(2, (beta_2 * v).maximum(gradient.abs()))
    s.assign(0, var - rate / (1 - power) * (m / (v + epsilon)))


def _rms(s: _Step) -> None:
    var, squares, sums, rate, rho, momentum, epsilon, gradient = s.operands
    squares = s.assign(1, squares + (gradient * gradient - squares) * (1 - rho))
    sums = s.assign(2, sums * momentum + gradient * rate / (squares + epsilon).sqrt())
    s.assign(0, var - sums)


def _centered_rms(s: _Step) -> None:
    var, means, squares, sums, rate, rho, momentum, epsilon, gradient = s.operands
    squares = s.assign(2, squares + (gradient * gradient - squares) * (1 - rho))
    means = s.assign(1, means + (gradient - means) * (1 - rho))
    sums = s.assign(3, sums * momentum + gradient * rate / (squares - means * means + epsilon).sqrt())
    s.assign(0, var - sums)


def _adagrad(s: _Step) -> None:
    var, squares, rate, *epsilon, gradient = s.operands
    if s.asks("update_slots"):
        squares = s.assign(1, squares + gradient * gradient)
    s.assign(0, var - rate * gradient / (squares.sqrt() + epsilon[0] if epsilon else squares.sqrt()))


def _adadelta(s: _Step) -> None:
    var, squares, steps, rate, rho, epsilon, gradient = s.operands
    squares = s.assign(1, squares * rho + gradient * gradient * (1 - rho))
    step = (steps + epsilon).sqrt() / (squares + epsilon).sqrt() * gradient
    s.assign(0, var - step * rate)
    s.assign(2, steps * rho + step * step * (1 - rho))


_RULES: Mapping[str, _Rule] = {
    "ResourceApplyGradientDescent": _gradient_descent,
    "ResourceApplyMomentum": _momentum,
    "ResourceApplyKerasMomentum": _keras_momentum,
    "ResourceApplyAdam": _adam,
    "ResourceApplyAdamWithAmsgrad": _adam_with_amsgrad,
    "ResourceApplyAdaMax": _adamax,
    "ResourceApplyRMSProp": _rms,
    "ResourceApplyCenteredRMSProp": _centered_rms,
    "ResourceApplyAdagrad": _adagrad,
    "ResourceApplyAdagradV2": _adagrad,
    "ResourceApplyAdadelta": _adadelta,
}
