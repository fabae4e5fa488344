"""Each pass alone, on a graph made by hand: what it was before, and what it is after."""

from collections.abc import Sequence

import numpy as np
import pytest

from litecl.converter.graph import Function, Module, Node, Value, constant
from litecl.converter.own_ops import COMPOSITE, UPDATE_SLICE
from litecl.converter.passes.calls.bodies import own_bodies
from litecl.converter.passes.control.branches import simplify_branches
from litecl.converter.passes.control.effects import refuse_effects
from litecl.converter.passes.control.loops import simplify_loops
from litecl.converter.passes.control.variables import changed_variables, freeze_variables
from litecl.converter.passes.lists.elements import Scope, element, shape_reads
from litecl.converter.passes.lists.lower_lists import lower_lists
from litecl.converter.records import Callee
from litecl.converter.text import describe
from litecl.converter.traits import Effects
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.schema import TensorType
from support.graphs import a_node, a_value, a_variable, an_int, graph, ops_of

F, I, B = TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL  # noqa: E741
LIST, HANDLE = TensorType.VARIANT, TensorType.RESOURCE


def _counting(name: str, *extra: Value) -> tuple[Function, Function, list[Value]]:
    """A condition ``i < 5`` and a body ``i + 1`` that hands all others on; and what enters."""
    initial = [an_int(0), *extra]
    cond_inputs, body_inputs = (
        [a_value(v.type, *v.shape or (), name=f"{name}{k}") for k, v in enumerate(initial)] for _ in range(2)
    )
    less, more = a_value(B), a_value(I)
    cond = graph("cond", cond_inputs, [a_node("Less", [cond_inputs[0], an_int(5)], less)], [less])
    body = graph("body", body_inputs, [a_node("AddV2", [body_inputs[0], an_int(1)], more)], [more, *body_inputs[1:]])
    return cond, body, initial


def test_bodies_are_owned_and_a_case_is_a_chain() -> None:
    x, index, y = a_value(F, 3), a_value(I), a_value(F, 3, name="y")
    library = {}
    for name in ("Neg", "Abs", "Exp"):
        a, b = a_value(F, 3), a_value(F, 3)
        library[name] = graph(name, [a], [a_node(name, [a], b)], [b])
    branches = tuple(Callee(name) for name in library)
    main = graph("main", [index, x], [a_node("Case", [index, x], y, branches=branches)], [y])
    module = Module(main, ["index", "x"], ["y"], library)
    own_bodies(module)
    main.check()
    assert ops_of(main) == ["Equal", "If"]
    first, rest = main.nodes[-1].bodies
    assert ops_of(first) == ["Neg"]
    assert ops_of(rest) == ["Equal", "If"]
    assert [ops_of(body) for body in rest.nodes[-1].bodies] == [["Abs"], ["Exp"]]
    assert library["Neg"].nodes[0] is not first.nodes[0]
    assert "Case(" not in describe(module)


def test_constant_arguments_go_into_branches_and_unread_results_out() -> None:
    condition, x, one = a_value(B), a_value(F, 3), constant(np.float32([1, 1, 1]))
    branches = []
    for op in ("Mul", "Sub"):
        a, b, unread = a_value(F, 3), a_value(F, 3), a_value(F, 3)
        result = a_value(F, 3)
        branches.append(graph(op, [a, b, unread], [a_node(op, [a, b], result)], [result, unread]))
    y, z = a_value(F, 3, name="y"), a_value(F, 3, name="z")
    main = graph("main", [condition, x], [a_node("If", [condition, x, one, x], y, z, bodies=branches)], [y])
    assert simplify_branches(main)
    main.check()
    (node,) = main.nodes
    assert list(node.inputs) == [condition, x]
    assert [len(branch.outputs) for branch in node.bodies] == [1, 1]
    assert all(branch.nodes[0].input(1).data is not None for branch in node.bodies)
    assert not simplify_branches(main)


def test_branch_that_is_known_is_taken() -> None:
    x, y = a_value(F, 3), a_value(F, 3)
    branches = []
    for op in ("Neg", "Abs"):
        a, b = a_value(F, 3), a_value(F, 3)
        branches.append(graph(op, [a], [a_node(op, [a], b)], [b]))
    node = a_node("If", [constant(np.array(False)), x], y, bodies=branches)
    main = graph("main", [x], [node], [y])
    simplify_branches(main)
    main.check()
    assert ops_of(main) == ["Abs"]


def test_loops_lose_what_is_unchanged_unread_or_carried_twice() -> None:
    x, weights, unread = a_value(F, 3), constant(np.ones(3, np.float32)), a_value(F, 3, name="unread")
    cond, body, initial = _counting("v", x, weights, unread, an_int(0))
    step, product = a_value(I), a_value(F, 3)
    body.nodes.append(a_node("AddV2", [body.inputs[4], an_int(1)], step))
    body.nodes.append(a_node("Mul", [body.inputs[1], body.inputs[2]], product))
    body.outputs[1], body.outputs[4] = product, step
    outputs = [a_value(v.type, *v.shape or (), name=f"out{k}") for k, v in enumerate(initial)]
    loop = a_node("While", initial, *outputs, bodies=[cond, body])
    main = graph("main", [x, unread], [loop], [outputs[1], outputs[2], outputs[4]])
    while simplify_loops(main):
        main.check()
    assert [v is initial[0] or v is x for v in loop.inputs] == [True, True]
    assert main.outputs[1] is weights
    assert main.outputs[2] is loop.outputs[0]
    (multiply,) = [node for node in body.nodes if node.op == "Mul"]
    assert multiply.input(1).data is not None


def test_equal_limits_are_joined() -> None:
    cond, body, initial = _counting("v")
    second, both = a_value(B), a_value(B)
    cond.nodes.append(a_node("Less", [cond.inputs[0], an_int(3)], second))
    cond.nodes.append(a_node("LogicalAnd", [cond.outputs[0], second], both))
    cond.outputs = [both]
    out = a_value(I)
    main = graph("main", [], [a_node("While", initial, out, bodies=[cond, body])], [out])
    assert simplify_loops(main)
    (less,) = cond.nodes
    assert (less.op, less.input(1).data) == ("Less", 3)


def _list_loop(resizes: bool, size: int) -> tuple[Function, Function]:
    """A loop that writes a row of [2, 4] to a list at every step."""
    row, reserved = a_value(F, None, 4, name="row"), a_value(LIST, name="list")
    reserve = a_node(
        "TensorListReserve", [constant(np.array([-1, 4], np.int32)), an_int(size)], reserved, element_dtype=F
    )
    cond, body, initial = _counting("v", reserved, row)
    written, changed = a_value(LIST), a_value(F, None, 4)
    body.nodes += [
        a_node("Tanh", [body.inputs[2]], changed),
        a_node(
            "TensorListSetItem",
            [body.inputs[1], body.inputs[0], changed],
            written,
            element_dtype=F,
            resize_if_index_out_of_bounds=resizes,
        ),
    ]
    body.outputs[1:] = [written, changed]
    outputs = [a_value(v.type, *v.shape or (), name=f"out{k}") for k, v in enumerate(initial)]
    stacked = a_value(F, None, None, 4)
    nodes = [
        reserve,
        a_node("While", initial, *outputs, bodies=[cond, body]),
        a_node("TensorListStack", [outputs[1], an_int(-1)], stacked, element_dtype=F),
    ]
    return graph("main", [row], nodes, [stacked]), body


def test_list_of_fixed_size_is_updated_in_place() -> None:
    main, body = _list_loop(resizes=False, size=5)
    assert element(main.nodes[0].output, Scope(main)) == [(main.inputs[0], 0), 4]
    lower_lists(Module(main, ["row"], ["stacked"]))
    main.check()
    assert UPDATE_SLICE in ops_of(body)
    assert "Fill" in ops_of(main)
    assert main.outputs[0].shape == (5, None, 4)
    assert body.inputs[1].type == F


def test_list_that_grows_is_concatenated() -> None:
    main, body = _list_loop(resizes=True, size=0)
    lower_lists(Module(main, ["row"], ["stacked"]))
    main.check()
    assert ops_of(body).count("ConcatV2") == 1
    assert UPDATE_SLICE not in ops_of(body)
    assert main.outputs[0].shape == (None, None, 4)


def test_list_of_lists_is_refused() -> None:
    made = a_value(LIST)
    reserve = a_node("TensorListReserve", [an_int(-1), an_int(2)], made, element_dtype=LIST)
    main = graph("main", [], [reserve, a_node("TensorListLength", [made], a_value(I, name="n"))], [])
    main.outputs = [main.nodes[-1].output]
    with pytest.raises(ConversionError, match="size of its elements"):
        lower_lists(Module(main, [], ["n"]))


def test_items_have_the_shape_of_the_tensor_that_a_list_is_made_of() -> None:
    x, made, item = a_value(F, 5, None, 4), a_value(LIST), Value(F, None)
    nodes = [
        a_node("TensorListFromTensor", [x, an_int(-1)], made),
        a_node("TensorListGetItem", [made, an_int(0)], item),
    ]
    shape_reads(Scope(graph("main", [x], nodes, [item])))
    assert item.shape == (None, 4)


def test_variables_that_nothing_changes_are_constants_and_idle_writes_go() -> None:
    fixed, counted, idle = (a_variable(name, 2.0) for name in ("fixed", "counted", "idle"))
    handles = [a_value(HANDLE, variable=variable) for variable in (fixed, counted, idle)]
    a, b, c = a_value(F), a_value(F), a_value(F)
    branch_handle = a_value(HANDLE, name="handle")
    one = constant(np.float32(1))
    write = graph("write", [branch_handle], [a_node("AssignAddVariableOp", [branch_handle, one])], [])
    nothing = graph("nothing", [a_value(HANDLE, name="handle")], [], [])
    condition = a_value(B)
    nodes = [
        a_node("If", [condition, handles[1]], bodies=[write, nothing]),
        a_node("AssignVariableOp", [handles[2], constant(np.float32(1))]),
        a_node("ReadVariableOp", [handles[0]], a),
        a_node("ReadVariableOp", [handles[1]], b),
        a_node("AddV2", [a, b], c),
    ]
    main = graph("main", [condition], nodes, [c])
    module = Module(main, ["condition"], ["c"])
    changed = changed_variables([module])
    assert changed == {counted}
    freeze_variables(module, changed)
    main.check()
    assert ops_of(main) == ["If", "ReadVariableOp", "AddV2"]
    assert module.variables == [counted]
    assert main.nodes[0].inputs == (condition,)
    assert write.nodes[0].input(0).variable == counted


def _writer(inputs: Sequence[Value], *outputs: Value) -> Node:
    """An operator that no table names; the importer has found that it has effects."""
    return Node("Launch", inputs, outputs, {}, "rocket", effects=Effects.WRITES)


def test_operators_with_effects_are_kept_in_order_and_copied_with_them() -> None:
    x, y, unread = a_value(F, 3), a_value(F, 3), a_value(F, 3, name="unread")
    main = graph("main", [x], [a_node("Abs", [x], unread), _writer([unread]), a_node("Neg", [x], y)], [y])
    for function in (main, main.clone()):
        function.tidy()
        function.check()
        assert ops_of(function) == ["Abs", "Launch", "Neg"]
        assert function.nodes[1].writes
    main.replace_node(main.nodes[1], ())
    main.tidy()
    assert ops_of(main) == ["Neg"]


def test_branch_with_an_effect_is_kept() -> None:
    condition, x = a_value(B), a_value(F, 3)
    a, b = a_value(F, 3), a_value(F, 3)
    branches = [graph("launch", [a], [_writer([a])], []), graph("stay", [b], [], [])]
    main = graph("main", [condition, x], [a_node("If", [condition, x], bodies=branches)], [x])
    main.tidy()
    assert ops_of(main) == ["If"]
    with pytest.raises(ConversionError, match="effect of Launch 'rocket'"):
        refuse_effects(main, {"If"})
    refuse_effects(main, {"If", "Launch"})
    main.nodes[0].become(COMPOSITE, [condition, x], {})
    refuse_effects(main, {"If"})
