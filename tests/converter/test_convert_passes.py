"""Each pass alone, on a graph made by hand: what it was before, and what it is after."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from litecl.converter.composites import Composite
from litecl.converter.fusions import Fusion
from litecl.converter.graph import Function, Module, Node, Value, constant
from litecl.converter.own_ops import BIDIRECTIONAL_LSTM, COMPOSITE, LSTM, OWN_OPS, RNN, UPDATE_SLICE
from litecl.converter.passes.calls.bodies import own_bodies
from litecl.converter.passes.calls.composites import fuse_composites
from litecl.converter.passes.calls.inline import inline_calls
from litecl.converter.passes.control.branches import simplify_branches
from litecl.converter.passes.control.effects import refuse_effects
from litecl.converter.passes.control.loops import simplify_loops
from litecl.converter.passes.control.variables import changed_variables, freeze_variables
from litecl.converter.passes.lists.elements import Scope, element, shape_reads
from litecl.converter.passes.lists.lower_lists import lower_lists
from litecl.converter.passes.recurrent.bidirectional import fuse_bidirectional
from litecl.converter.passes.tensorflow.arithmetic import simplify_arithmetic
from litecl.converter.passes.tensorflow.fold import fold_constants
from litecl.converter.passes.tensorflow.shape_sources import use_shape_sources
from litecl.converter.passes.tflite.duplicates import merge_duplicates
from litecl.converter.passes.tflite.kept_dims import keep_dims
from litecl.converter.passes.tflite.linear import fold_linear
from litecl.converter.passes.tflite.reshapes import join_reshapes
from litecl.converter.passes.v1.arrays import raise_arrays
from litecl.converter.passes.v1.frames import raise_loops
from litecl.converter.passes.v1.switches import raise_branches
from litecl.converter.passes.v1.variables import raise_variables
from litecl.converter.records import Callee, OwnOp, Variable
from litecl.converter.text import describe
from litecl.converter.traits import Effects
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import MUL, MulOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.reverse import REVERSE_V2
from litecl.interpreter.ops.unary import EXP
from litecl.interpreter.schema import TensorType

F, I, B = TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL  # noqa: E741
LIST, HANDLE = TensorType.VARIANT, TensorType.RESOURCE


def _value(type_: TensorType = F, *shape: int | None, name: str = "x", **known: Any) -> Value:
    return Value(type_, shape, name, **known)


def _int(number: int) -> Value:
    return constant(np.array(number, np.int32))


def _function(name: str, inputs: Sequence[Value], nodes: Sequence[Node], outputs: Sequence[Value]) -> Function:
    return Function(name, list(inputs), list(outputs), list(nodes))


def _node(op: Any, inputs: Sequence[Value], *outputs: Value, bodies: Sequence[Function] = (), **attrs: Any) -> Node:
    return Node(op, inputs, outputs, attrs, f"{op}", bodies)


def _ops(function: Function) -> list[Any]:
    """The operators of a function: the records of the converter's own, the names of others."""
    return [node.op if isinstance(node.op, OwnOp) else node.op_name for node in function.nodes]


def _counting(name: str, *extra: Value) -> tuple[Function, Function, list[Value]]:
    """A condition ``i < 5`` and a body ``i + 1`` that hands all others on; and what enters."""
    initial = [_int(0), *extra]
    cond_inputs, body_inputs = (
        [_value(v.type, *v.shape or (), name=f"{name}{k}") for k, v in enumerate(initial)] for _ in range(2)
    )
    less, more = _value(B), _value(I)
    cond = _function("cond", cond_inputs, [_node("Less", [cond_inputs[0], _int(5)], less)], [less])
    body = _function("body", body_inputs, [_node("AddV2", [body_inputs[0], _int(1)], more)], [more, *body_inputs[1:]])
    return cond, body, initial


def test_bodies_are_owned_and_a_case_is_a_chain() -> None:
    x, index, y = _value(F, 3), _value(I), _value(F, 3, name="y")
    library = {}
    for name in ("Neg", "Abs", "Exp"):
        a, b = _value(F, 3), _value(F, 3)
        library[name] = _function(name, [a], [_node(name, [a], b)], [b])
    branches = tuple(Callee(name) for name in library)
    main = _function("main", [index, x], [_node("Case", [index, x], y, branches=branches)], [y])
    module = Module(main, ["index", "x"], ["y"], library)
    own_bodies(module)
    main.check()
    assert _ops(main) == ["Equal", "If"]
    first, rest = main.nodes[-1].bodies
    assert _ops(first) == ["Neg"]
    assert _ops(rest) == ["Equal", "If"]
    assert [_ops(body) for body in rest.nodes[-1].bodies] == [["Abs"], ["Exp"]]
    assert library["Neg"].nodes[0] is not first.nodes[0]
    assert "Case(" not in describe(module)


def test_constant_arguments_go_into_branches_and_unread_results_out() -> None:
    condition, x, one = _value(B), _value(F, 3), constant(np.float32([1, 1, 1]))
    branches = []
    for op in ("Mul", "Sub"):
        a, b, unread = _value(F, 3), _value(F, 3), _value(F, 3)
        result = _value(F, 3)
        branches.append(_function(op, [a, b, unread], [_node(op, [a, b], result)], [result, unread]))
    y, z = _value(F, 3, name="y"), _value(F, 3, name="z")
    main = _function("main", [condition, x], [_node("If", [condition, x, one, x], y, z, bodies=branches)], [y])
    assert simplify_branches(main)
    main.check()
    (node,) = main.nodes
    assert list(node.inputs) == [condition, x]
    assert [len(branch.outputs) for branch in node.bodies] == [1, 1]
    assert all(branch.nodes[0].input(1).data is not None for branch in node.bodies)
    assert not simplify_branches(main)


def test_branch_that_is_known_is_taken() -> None:
    x, y = _value(F, 3), _value(F, 3)
    branches = []
    for op in ("Neg", "Abs"):
        a, b = _value(F, 3), _value(F, 3)
        branches.append(_function(op, [a], [_node(op, [a], b)], [b]))
    node = _node("If", [constant(np.array(False)), x], y, bodies=branches)
    main = _function("main", [x], [node], [y])
    simplify_branches(main)
    main.check()
    assert _ops(main) == ["Abs"]


def test_loops_lose_what_is_unchanged_unread_or_carried_twice() -> None:
    x, weights, unread = _value(F, 3), constant(np.ones(3, np.float32)), _value(F, 3, name="unread")
    cond, body, initial = _counting("v", x, weights, unread, _int(0))
    step, product = _value(I), _value(F, 3)
    body.nodes.append(_node("AddV2", [body.inputs[4], _int(1)], step))
    body.nodes.append(_node("Mul", [body.inputs[1], body.inputs[2]], product))
    body.outputs[1], body.outputs[4] = product, step
    outputs = [_value(v.type, *v.shape or (), name=f"out{k}") for k, v in enumerate(initial)]
    loop = _node("While", initial, *outputs, bodies=[cond, body])
    main = _function("main", [x, unread], [loop], [outputs[1], outputs[2], outputs[4]])
    while simplify_loops(main):
        main.check()
    assert [v is initial[0] or v is x for v in loop.inputs] == [True, True]
    assert main.outputs[1] is weights
    assert main.outputs[2] is loop.outputs[0]
    (multiply,) = [node for node in body.nodes if node.op == "Mul"]
    assert multiply.input(1).data is not None


def test_equal_limits_are_joined() -> None:
    cond, body, initial = _counting("v")
    second, both = _value(B), _value(B)
    cond.nodes.append(_node("Less", [cond.inputs[0], _int(3)], second))
    cond.nodes.append(_node("LogicalAnd", [cond.outputs[0], second], both))
    cond.outputs = [both]
    out = _value(I)
    main = _function("main", [], [_node("While", initial, out, bodies=[cond, body])], [out])
    assert simplify_loops(main)
    (less,) = cond.nodes
    assert (less.op, less.input(1).data) == ("Less", 3)


def _list_loop(resizes: bool, size: int) -> tuple[Function, Function]:
    """A loop that writes a row of [2, 4] to a list at every step."""
    row, reserved = _value(F, None, 4, name="row"), _value(LIST, name="list")
    reserve = _node("TensorListReserve", [constant(np.array([-1, 4], np.int32)), _int(size)], reserved, element_dtype=F)
    cond, body, initial = _counting("v", reserved, row)
    written, changed = _value(LIST), _value(F, None, 4)
    body.nodes += [
        _node("Tanh", [body.inputs[2]], changed),
        _node(
            "TensorListSetItem",
            [body.inputs[1], body.inputs[0], changed],
            written,
            element_dtype=F,
            resize_if_index_out_of_bounds=resizes,
        ),
    ]
    body.outputs[1:] = [written, changed]
    outputs = [_value(v.type, *v.shape or (), name=f"out{k}") for k, v in enumerate(initial)]
    stacked = _value(F, None, None, 4)
    nodes = [
        reserve,
        _node("While", initial, *outputs, bodies=[cond, body]),
        _node("TensorListStack", [outputs[1], _int(-1)], stacked, element_dtype=F),
    ]
    return _function("main", [row], nodes, [stacked]), body


def test_list_of_fixed_size_is_updated_in_place() -> None:
    main, body = _list_loop(resizes=False, size=5)
    assert element(main.nodes[0].output, Scope(main)) == [(main.inputs[0], 0), 4]
    lower_lists(Module(main, ["row"], ["stacked"]))
    main.check()
    assert UPDATE_SLICE in _ops(body)
    assert "Fill" in _ops(main)
    assert main.outputs[0].shape == (5, None, 4)
    assert body.inputs[1].type == F


def test_list_that_grows_is_concatenated() -> None:
    main, body = _list_loop(resizes=True, size=0)
    lower_lists(Module(main, ["row"], ["stacked"]))
    main.check()
    assert _ops(body).count("ConcatV2") == 1
    assert UPDATE_SLICE not in _ops(body)
    assert main.outputs[0].shape == (None, None, 4)


def test_list_of_lists_is_refused() -> None:
    made = _value(LIST)
    reserve = _node("TensorListReserve", [_int(-1), _int(2)], made, element_dtype=LIST)
    main = _function("main", [], [reserve, _node("TensorListLength", [made], _value(I, name="n"))], [])
    main.outputs = [main.nodes[-1].output]
    with pytest.raises(ConversionError, match="size of its elements"):
        lower_lists(Module(main, [], ["n"]))


def test_items_have_the_shape_of_the_tensor_that_a_list_is_made_of() -> None:
    x, made, item = _value(F, 5, None, 4), _value(LIST), Value(F, None)
    nodes = [_node("TensorListFromTensor", [x, _int(-1)], made), _node("TensorListGetItem", [made, _int(0)], item)]
    shape_reads(Scope(_function("main", [x], nodes, [item])))
    assert item.shape == (None, 4)


def _variable(name: str, value: Any) -> Variable:
    return Variable(name, np.asarray(value, np.float32), f"key of {name}")


def test_variables_that_nothing_changes_are_constants_and_idle_writes_go() -> None:
    fixed, counted, idle = (_variable(name, 2.0) for name in ("fixed", "counted", "idle"))
    handles = [_value(HANDLE, variable=variable) for variable in (fixed, counted, idle)]
    a, b, c = _value(F), _value(F), _value(F)
    branch_handle = _value(HANDLE, name="handle")
    one = constant(np.float32(1))
    write = _function("write", [branch_handle], [_node("AssignAddVariableOp", [branch_handle, one])], [])
    nothing = _function("nothing", [_value(HANDLE, name="handle")], [], [])
    condition = _value(B)
    nodes = [
        _node("If", [condition, handles[1]], bodies=[write, nothing]),
        _node("AssignVariableOp", [handles[2], constant(np.float32(1))]),
        _node("ReadVariableOp", [handles[0]], a),
        _node("ReadVariableOp", [handles[1]], b),
        _node("AddV2", [a, b], c),
    ]
    main = _function("main", [condition], nodes, [c])
    module = Module(main, ["condition"], ["c"])
    changed = changed_variables([module])
    assert changed == {counted}
    freeze_variables(module, changed)
    main.check()
    assert _ops(main) == ["If", "ReadVariableOp", "AddV2"]
    assert module.variables == [counted]
    assert main.nodes[0].inputs == (condition,)
    assert write.nodes[0].input(0).variable == counted


def test_variables_of_tensorflow_1_are_read_where_they_are_used() -> None:
    made, x, y, after = (_value(F, name=name) for name in ("w", "x", "y", "after"))
    made.variable = _variable("w", 1.0)
    nodes = [_node("VariableV2", [], made), _node("Assign", [made, x], after), _node("AddV2", [made, after], y)]
    main = _function("main", [x], nodes, [y])
    raise_variables(main)
    main.tidy()
    main.check()
    assert _ops(main) == ["AssignVariableOp", "ReadVariableOp", "ReadVariableOp", "AddV2"]


def test_frame_is_a_while() -> None:
    x, entered, merged, less, decided, out, again, more, left = (
        _value(type_, name=name)
        for type_, name in (
            (I, "x"),
            (I, "entered"),
            (I, "merged"),
            (B, "less"),
            (B, "decided"),
            (I, "out"),
            (I, "again"),
            (I, "more"),
            (I, "left"),
        )
    )
    back = _value(I, name="back")
    nodes = [
        _node("Enter", [x], entered, frame_name="loop", is_constant=False),
        _node("Merge", [entered, back], merged, _value(I)),
        _node("Less", [merged, _int(5)], less),
        _node("LoopCond", [less], decided),
        _node("Switch", [merged, decided], out, again),
        _node("AddV2", [again, _int(1)], more),
        _node("NextIteration", [more], back),
        _node("Exit", [out], left),
    ]
    main = _function("main", [x], nodes, [left])
    raise_loops(main)
    main.check()
    assert _ops(main) == ["While"]
    assert [_ops(body) for body in main.nodes[0].bodies] == [["Less"], ["AddV2"]]


def test_switch_and_merge_are_an_if() -> None:
    x, condition, no, yes, negated, merged = (
        _value(type_, name=name)
        for type_, name in ((F, "x"), (B, "condition"), (F, "no"), (F, "yes"), (F, "negated"), (F, "merged"))
    )
    nodes = [
        _node("Switch", [x, condition], no, yes),
        _node("Neg", [no], negated),
        _node("Merge", [negated, yes], merged, _value(I)),
    ]
    main = _function("main", [x, condition], nodes, [merged])
    raise_branches(main)
    main.check()
    assert _ops(main) == ["If"]
    assert [_ops(body) for body in main.nodes[0].bodies] == [[], ["Neg"]]


def test_arrays_of_tensorflow_1_are_lists() -> None:
    handle, flow, x, after, item = (
        _value(HANDLE, name="handle"),
        _value(F, name="flow"),
        _value(F, 4),
        _value(F, name="after"),
        _value(F, 4),
    )
    nodes = [
        _node("TensorArrayV3", [_int(3)], handle, flow, dtype=F, element_shape=(4,)),
        _node("TensorArrayWriteV3", [handle, _int(1), x, flow], after),
        _node("TensorArrayReadV3", [handle, _int(1), after], item),
    ]
    main = _function("main", [x], nodes, [item])
    raise_arrays(main)
    main.tidy()
    assert _ops(main) == ["TensorListReserve", "TensorListSetItem", "TensorListGetItem"]
    lower_lists(Module(main, ["x"], ["item"]))
    main.check()
    assert UPDATE_SLICE in _ops(main)


@pytest.mark.parametrize("reason", [None, "no"])
def test_composite_is_kept_or_taken_apart(reason: str | None) -> None:
    a, b, x, y = (_value(F, 3) for _ in range(4))
    callee = Function("f", [a], [b], [_node("Neg", [a], b)], {"_implements": "mine"})
    main = _function("main", [x], [_node("PartitionedCall", [x], y, f=Callee("f"))], [y])

    def check(composite: Composite) -> str | None:
        assert composite.name == "mine"
        return reason

    fusion = Fusion("mine", lambda b, composite: composite.inputs[0], check)
    assert not inline_calls(Module(main, ["x"], ["y"], {"f": callee}), [fusion])
    assert _ops(main) == [COMPOSITE]
    (record,) = fuse_composites(main)
    main.check()
    assert (record.name, record.reason) == ("mine", reason)
    assert _ops(main) == [COMPOSITE if reason is None else "Neg"]


def test_two_lstms_over_one_sequence_are_joined() -> None:
    x, h, c, w, r, bias = (_value(F, *shape) for shape in ((1, 5, 3), (1, 4), (1, 4), (3, 16), (4, 16), (16,)))
    nodes = [
        _node(
            LSTM,
            [x, h, c, w, r, bias],
            _value(F, 1, 5, 4),
            _value(F, 1, 4),
            _value(F, 1, 4),
            activation="tanh",
            go_backwards=backwards,
        )
        for backwards in (False, True)
    ]
    main = _function("main", [x, h, c, w, r, bias], nodes, [node.outputs[1] for node in nodes])
    fuse_bidirectional(main)
    main.check()
    assert _ops(main) == [BIDIRECTIONAL_LSTM]


def test_reversing_twice_changes_nothing() -> None:
    x, once, twice = (_value(F, 2, 3) for _ in range(3))
    axis = constant(np.array([1], np.int32))
    main = _function("main", [x], [_node(REVERSE_V2, [x, axis], once), _node(REVERSE_V2, [once, axis], twice)], [twice])
    assert join_reshapes(main)
    assert not main.nodes
    assert main.outputs == [x]


def test_reduction_keeps_dimensions_that_are_put_back() -> None:
    x, mean, kept = _value(F, None, 4, 4, 3), _value(F, None, 3), _value(F, None, 1, 1, 3)
    axes, target = constant(np.array([1, 2], np.int32)), constant(np.array([-1, 1, 1, 3], np.int32))
    nodes = [
        Node(MEAN, [x, axes], [mean], ReducerOptions(False), "mean"),
        Node(RESHAPE, [mean, target], [kept], ReshapeOptions((-1, 1, 1, 3)), "reshape"),
    ]
    main = _function("main", [x], nodes, [kept])
    assert keep_dims(main)
    main.check()
    (node,) = main.nodes
    assert (node.op, node.options.keep_dims) == (MEAN, True)


def test_shapes_are_taken_from_the_earliest_tensor_of_that_size() -> None:
    x, y, tanh, product, zeros, other = (_value(F, None, 3, name=f"v{i}") for i in range(6))
    nodes = [
        _node("Tanh", [x], tanh),
        _node("Mul", [tanh, x], product),
        _node("ZerosLike", [product], zeros),
        _node("AddV2", [product, y], other),
        _node("Shape", [other], _value(I, 2, name="shape")),
    ]
    main = _function("main", [x, y], nodes, [zeros, nodes[-1].output])
    use_shape_sources(main)
    main.check()
    assert nodes[2].inputs == (x,)
    assert nodes[4].inputs == (other,)  # x and y may be of different sizes, one of them 1


def test_two_factors_are_one() -> None:
    x, once, twice = (_value(F, 2, 3) for _ in range(3))
    a, b = constant(np.float32([1, 2, 3])), constant(np.float32(0.5))
    main = _function("main", [x], [_node("Mul", [x, a], once), _node("Mul", [once, b], twice)], [twice])
    simplify_arithmetic(main)
    main.check()
    (node,) = main.nodes
    np.testing.assert_array_equal(node.input(1).data, [0.5, 1, 1.5])


@pytest.mark.parametrize(("gate", "left"), [("Sigmoid", []), ("Exp", ["Exp", "Mul"])])
def test_a_gate_times_zeros_is_zeros_unless_it_may_be_infinite(gate: str, left: list[str]) -> None:
    x, opened, kept, total = (_value(F, 2, 3) for _ in range(4))
    zeros = constant(np.zeros((2, 3), np.float32))
    nodes = [_node(gate, [x], opened), _node("Mul", [opened, zeros], kept), _node("AddV2", [kept, x], total)]
    main = _function("main", [x], nodes, [total])
    simplify_arithmetic(main)
    main.check()
    assert [node.op for node in main.nodes] == left + ["AddV2"] * bool(left)
    assert (main.outputs[0] is x) == (not left)


def test_operators_without_options_are_merged_too() -> None:
    x = _value(F, 2, 3)
    results = [_value(F, 2, 3) for _ in range(2)]
    nodes = [Node(EXP, [x], [result], NoOptions(), f"exp{i}") for i, result in enumerate(results)]
    main = _function("main", [x], nodes, results)
    merge_duplicates(main)
    main.check()
    assert len(main.nodes) == 1
    assert main.outputs[0] is main.outputs[1]


def test_a_factor_before_a_dense_layer_is_part_of_its_weights_but_not_one_of_its_bias() -> None:
    x, scaled, y = _value(F, 2, 3), _value(F, 2, 3), _value(F, 2, 4)
    weights = constant(np.ones((4, 3), np.float32))
    nodes = [
        Node(MUL, [x, constant(np.float32(0.5))], [scaled], MulOptions(), "scale"),
        Node(FULLY_CONNECTED, [scaled, weights, None], [y], FullyConnectedOptions(), "dense"),
    ]
    main = _function("main", [x], nodes, [y])
    assert fold_linear(main)
    main.check()
    (dense,) = main.nodes
    assert dense.input(0) is x
    np.testing.assert_array_equal(dense.input(1).data, np.full((4, 3), 0.5))
    bias, moved = _value(F, 4), _value(F, 4)
    nodes = [
        Node(MUL, [bias, constant(np.float32(0.5))], [moved], MulOptions(), "scale"),
        Node(FULLY_CONNECTED, [x, weights, moved], [y], FullyConnectedOptions(), "dense"),
    ]
    assert not fold_linear(_function("main", [x, bias], nodes, [y]))


def _writer(inputs: Sequence[Value], *outputs: Value) -> Node:
    """An operator that no table names; the importer has found that it has effects."""
    return Node("Launch", inputs, outputs, {}, "rocket", effects=Effects.WRITES)


def test_operators_with_effects_are_kept_in_order_and_copied_with_them() -> None:
    x, y, unread = _value(F, 3), _value(F, 3), _value(F, 3, name="unread")
    main = _function("main", [x], [_node("Abs", [x], unread), _writer([unread]), _node("Neg", [x], y)], [y])
    for function in (main, main.clone()):
        function.tidy()
        function.check()
        assert _ops(function) == ["Abs", "Launch", "Neg"]
        assert function.nodes[1].writes
    main.replace_node(main.nodes[1], ())
    main.tidy()
    assert _ops(main) == ["Neg"]


def test_branch_with_an_effect_is_kept() -> None:
    condition, x = _value(B), _value(F, 3)
    a, b = _value(F, 3), _value(F, 3)
    branches = [_function("launch", [a], [_writer([a])], []), _function("stay", [b], [], [])]
    main = _function("main", [condition, x], [_node("If", [condition, x], bodies=branches)], [x])
    main.tidy()
    assert _ops(main) == ["If"]
    with pytest.raises(ConversionError, match="effect of Launch 'rocket'"):
        refuse_effects(main, {"If"})
    refuse_effects(main, {"If", "Launch"})
    main.nodes[0].become(COMPOSITE, [condition, x], {})
    refuse_effects(main, {"If"})


@pytest.mark.parametrize(
    ("op", "effects", "folded"),
    [
        ("Abs", None, True),
        ("Dice", Effects.READS, False),
        ("Dice", Effects.WRITES, False),
        ("Dice", Effects.PURE, True),
        ("ReadVariableOp", None, False),
    ],
)
def test_only_operators_without_effects_are_computed_now(op: str, effects: Effects | None, folded: bool) -> None:
    y = _value(F)
    main = _function("main", [], [Node(op, [constant(np.float32(-2))], [y], {}, "y", effects=effects)], [y])
    fold_constants(main, lambda nodes, wanted: [np.float32(2)] * len(wanted))
    assert (main.outputs[0].data is not None) == folded


def test_own_operators_infer_shapes() -> None:
    layer = [(2, 4), (2, 4), (3, 16), (4, 16), (16,)]
    assert LSTM.infer is not None and RNN.infer is not None and BIDIRECTIONAL_LSTM.infer is not None
    found = [(2, None, 4), (2, 4), (2, 4)]
    assert LSTM.infer([(2, None, 3), *layer]) == found
    assert BIDIRECTIONAL_LSTM.infer([(2, None, 3), *layer, *layer]) == [*found, *found]
    assert RNN.infer([(2, None, 3), (2, 4), (3, 4), (4, 4), (4,)]) == found[:2]
    assert len({op.name for op in OWN_OPS}) == len(OWN_OPS)
