"""Finds loops that compute an LSTM, as Keras 3 traces it where nobody asks it to keep the layer whole (a SavedModel).

The loop steps through a list made of a time-major tensor, [T,B,F], and writes the new h to another list: every step at
its own place, or always at place 0 where only the last is wanted. What replaces it is the composite of
``importer.keras_lstm``.
"""

from dataclasses import dataclass

import numpy as np

from litecl.converter.composites import KERAS_LSTM
from litecl.converter.graph import Callee, Function, Module, Node, Value, constant
from litecl.converter.passes.match import Any, Bindings, Number, Pattern, Tree, match
from litecl.converter.passes.sizes import Sizes, known_sizes

_LOOPS = ("While", "StatelessWhile")


def _cell(axis: int, activation: str) -> Pattern:
    def gate(index: int) -> Pattern:
        return Pattern("Split", [Number(axis), Any("z")], index)

    def sigmoid(index: int) -> Pattern:
        return Pattern("Sigmoid", [gate(index)])

    update = Pattern("Mul", [sigmoid(0), Pattern(activation, [gate(2)])])
    c = Pattern("AddV2", [Pattern("Mul", [sigmoid(1), Any("c")]), update], name="new_c")
    return Pattern("Mul", [sigmoid(3), Pattern(activation, [c])])


_CELLS = {_cell(axis, op): name for axis in (1, -1) for op, name in (("Tanh", "tanh"), ("Relu", "relu"))}


def _pre_activations() -> tuple[Pattern, ...]:
    """x @ kernel + h @ recurrent + bias. With a batch of 1, Keras squeezes the second product and adds it as a bias."""
    from_x: Tree = Pattern("MatMul", [Any("x"), Any("kernel")])
    from_h: Tree = Pattern("MatMul", [Any("h"), Any("recurrent")])
    sums = (Pattern("AddV2", [from_x, from_h]), Pattern("BiasAdd", [from_x, Pattern("Squeeze", [from_h])]))
    return (*(Pattern("BiasAdd", [total, Any("bias")]) for total in sums), *sums)


_PRE_ACTIVATIONS = _pre_activations()


def fuse_lstm_loops(module: Module) -> None:
    """Replaces every loop of the entry point that is an LSTM and nothing else."""
    function = module.main
    sizes = known_sizes(function)
    for node in list(function.nodes):
        found = _Loop(node, module).find(sizes) if node.op in _LOOPS else None
        if found is not None:
            _rewrite(function, node, found)
    function.tidy()


@dataclass(frozen=True, eq=False)
class _Found:
    """What a loop computes with (values of the entry point) and where among its results it leaves what."""

    activation: str
    time_major: Value
    h: int
    c: int
    weights: tuple[Value, Value, Value | None]
    written: int
    is_sequence: bool


class _Loop:
    """One While node, its body seen from outside."""

    def __init__(self, node: Node, module: Module) -> None:
        self.node = node
        cond, body = node.attrs["cond"], node.attrs["body"]
        assert isinstance(cond, Callee) and isinstance(body, Callee)
        self.cond, self.body = module.functions[cond.name], module.functions[body.name]

    def find(self, sizes: Sizes) -> _Found | None:
        """The LSTM that the loop is, if it is one."""
        for written, result in enumerate(self.body.outputs):
            store = result.producer
            if store is None or store.op != "TensorListSetItem" or self._argument(store.input(0)) != written:
                continue
            for cell, activation in _CELLS.items():
                bound = match(cell, store.input(2))
                if bound is not None:
                    return self._lstm(bound, activation, store, sizes)
        return None

    def _lstm(self, bound: Bindings, activation: str, store: Node, sizes: Sizes) -> _Found | None:
        inner = next((b for b in (match(tree, bound["z"]) for tree in _PRE_ACTIVATIONS) if b is not None), None)
        if inner is None:
            return None
        h, c, written = self._argument(inner["h"]), self._argument(bound["c"]), self._argument(store.input(0))
        weights = [self._outside(inner[name]) if name in inner else None for name in ("kernel", "recurrent", "bias")]
        time_major = self._steps(inner["x"], sizes)
        kernel, recurrent, bias = weights
        if h is None or c is None or written is None or time_major is None or kernel is None or recurrent is None:
            return None
        if "bias" in inner and bias is None:
            return None
        if self.body.outputs[h] is not store.input(2) or self.body.outputs[c] is not bound["new_c"]:
            return None
        index = store.input(1)
        is_last = index.data is not None and index.data == 0
        if not is_last and self._argument(index) != self._time(inner["x"]):
            return None
        if not self._only_leaves({h, c, written}, written):
            return None
        return _Found(activation, time_major, h, c, (kernel, recurrent, bias), written, not is_last)

    def _argument(self, value: Value) -> int | None:
        return next((i for i, argument in enumerate(self.body.inputs) if argument is value), None)

    def _outside(self, value: Value) -> Value | None:
        """A value of the body that no step changes, as the entry point has it."""
        if value.data is not None:
            return value
        node = value.producer
        if node is not None and node.op == "ReadVariableOp":
            resource = self._outside(node.input(0))
            variable = None if resource is None else resource.variable
            return None if variable is None else constant(variable.data, variable.name)
        position = self._argument(value)
        if position is None or self.body.outputs[position] is not value:
            return None
        return self.node.input(position)

    def _time(self, x: Value) -> int | None:
        get = x.producer
        return self._argument(get.input(1)) if get is not None and get.op == "TensorListGetItem" else None

    def _steps(self, x: Value, sizes: Sizes) -> Value | None:
        """The time-major tensor whose rows the loop takes one by one, from the first to the last."""
        time = self._time(x)
        rows = None if time is None or x.producer is None else self._outside(x.producer.input(0))
        made = None if rows is None else rows.producer
        if time is None or made is None or made.op != "TensorListFromTensor":
            return None
        start, step = self.node.input(time).data, match(_INCREMENT, self.body.outputs[time])
        if start is None or start != 0 or step is None or step["time"] is not self.body.inputs[time]:
            return None
        tensor = made.input(0)
        return tensor if tensor.rank == 3 and self._runs_for(time, tensor, sizes) else None

    def _runs_for(self, time: int, tensor: Value, sizes: Sizes) -> bool:
        """Whether the loop goes on while time is less than the number of rows (Keras adds a limit of as many steps)."""
        (result,) = self.cond.outputs
        conditions = match(_AND, result)
        wanted = sizes.dimension(tensor, 0)
        comparisons = [result] if conditions is None else list(conditions.values())
        seen = set()
        for comparison in comparisons:
            less = match(_LESS, comparison)
            if less is None or less["count"] not in self.cond.inputs:
                return False
            count = self.cond.inputs.index(less["count"])
            start, limit = self.node.input(count).data, self._limit(less["limit"])
            known = None if limit is None else sizes.of(limit)
            if start is None or start != 0 or known is None or known.size != 1 or known.item() != wanted:
                return False
            if match(_INCREMENT, self.body.outputs[count]) != {"time": self.body.inputs[count]}:
                return False
            seen.add(count)
        return time in seen

    def _limit(self, value: Value) -> Value | None:
        if value.data is not None:
            return value
        return self.node.input(self.cond.inputs.index(value)) if value in self.cond.inputs else None

    def _only_leaves(self, results: set[int], written: int) -> bool:
        """Whether nothing but these results of the loop is used, and the list only to be stacked."""
        used = {i for i, value in enumerate(self.node.outputs) if value.users}
        stacked = all(user.op == "TensorListStack" for user in self.node.outputs[written].users)
        return used <= results and stacked


_INCREMENT = Pattern("AddV2", [Any("time"), Number(1)])
_AND = Pattern("LogicalAnd", [Any("a"), Any("b")])
_LESS = Pattern("Less", [Any("count"), Any("limit")])


def _rewrite(function: Function, loop: Node, found: _Found) -> None:
    tensor, backwards = found.time_major, False
    reverse = tensor.producer
    if reverse is not None and reverse.op == "ReverseV2" and _is_axis_0(reverse.input(1)):
        tensor, backwards = reverse.input(0), True
    x = _transposed(function, tensor, loop.name)
    kernel, recurrent, bias = found.weights
    assert recurrent.shape is not None
    units = recurrent.shape[0] or 0
    bias = constant(np.zeros(4 * units, np.float32)) if bias is None else bias
    batch, time = (x.shape or (None, None))[:2]
    outputs = [Value(x.type, shape, loop.name) for shape in ((batch, time, units), (batch, units), (batch, units))]
    attrs = {"activation": found.activation, "go_backwards": backwards}
    operands = [x, loop.input(found.h), loop.input(found.c), kernel, recurrent, bias]
    sequence, h, c = function.add(Node(KERAS_LSTM, operands, outputs, attrs, loop.name)).outputs
    for stack in list(loop.outputs[found.written].users):
        _replace_stack(function, stack, sequence, h, found.is_sequence)
    function.replace(loop.outputs[found.h], h)
    function.replace(loop.outputs[found.c], c)


def _replace_stack(function: Function, stack: Node, sequence: Value, h: Value, is_sequence: bool) -> None:
    for user in list(stack.output.users):
        if _is_last_row(user):
            function.replace_node(user, [h])
    if is_sequence:
        result = _transposed(function, sequence, stack.name)
    else:
        result = Value(h.type, (1, *(h.shape or ())), stack.name)
        axis = constant(np.array(0, np.int32))
        function.add(Node("ExpandDims", [h, axis], [result], {}, stack.name))
    function.replace_node(stack, [result])


def _transposed(function: Function, value: Value, name: str) -> Value:
    """Batch-major from time-major, and back."""
    first, second, *rest = value.shape or ()
    result = Value(value.type, (second, first, *rest), name)
    order = constant(np.array([1, 0, 2], np.int32))
    return function.add(Node("Transpose", [value, order], [result], {}, name)).output


def _is_last_row(node: Node) -> bool:
    """x[-1]"""
    if node.op != "StridedSlice":
        return False
    begin, stride = node.input(1).data, node.input(3).data
    if begin is None or stride is None or begin.tolist() != [-1] or stride.tolist() != [1]:
        return False
    return node.attrs["shrink_axis_mask"] == 1 and not node.attrs["begin_mask"] and not node.attrs["new_axis_mask"]


def _is_axis_0(axis: Value) -> bool:
    return axis.data is not None and axis.data.tolist() == [0]
