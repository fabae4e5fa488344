"""Each pass that understands TensorFlow 1's control flow, alone, on a graph made by hand."""

from litecl.converter.graph import Module
from litecl.converter.own_ops import UPDATE_SLICE
from litecl.converter.passes.lists.lower_lists import lower_lists
from litecl.converter.passes.v1.arrays import raise_arrays
from litecl.converter.passes.v1.frames import raise_loops
from litecl.converter.passes.v1.switches import raise_branches
from litecl.converter.passes.v1.variables import raise_variables
from litecl.interpreter.schema import TensorType
from support.graphs import a_node, a_value, a_variable, an_int, graph, ops_of

F, I, B = TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL  # noqa: E741
LIST, HANDLE = TensorType.VARIANT, TensorType.RESOURCE


def test_variables_of_tensorflow_1_are_read_where_they_are_used() -> None:
    made, x, y, after = (a_value(F, name=name) for name in ("w", "x", "y", "after"))
    made.variable = a_variable("w", 1.0)
    nodes = [a_node("VariableV2", [], made), a_node("Assign", [made, x], after), a_node("AddV2", [made, after], y)]
    main = graph("main", [x], nodes, [y])
    raise_variables(main)
    main.tidy()
    main.check()
    assert ops_of(main) == ["AssignVariableOp", "ReadVariableOp", "ReadVariableOp", "AddV2"]


def test_frame_is_a_while() -> None:
    x, entered, merged, less, decided, out, again, more, left = (
        a_value(type_, name=name)
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
    back = a_value(I, name="back")
    nodes = [
        a_node("Enter", [x], entered, frame_name="loop", is_constant=False),
        a_node("Merge", [entered, back], merged, a_value(I)),
        a_node("Less", [merged, an_int(5)], less),
        a_node("LoopCond", [less], decided),
        a_node("Switch", [merged, decided], out, again),
        a_node("AddV2", [again, an_int(1)], more),
        a_node("NextIteration", [more], back),
        a_node("Exit", [out], left),
    ]
    main = graph("main", [x], nodes, [left])
    raise_loops(main)
    main.check()
    assert ops_of(main) == ["While"]
    assert [ops_of(body) for body in main.nodes[0].bodies] == [["Less"], ["AddV2"]]


def test_switch_and_merge_are_an_if() -> None:
    x, condition, no, yes, negated, merged = (
        a_value(type_, name=name)
        for type_, name in ((F, "x"), (B, "condition"), (F, "no"), (F, "yes"), (F, "negated"), (F, "merged"))
    )
    nodes = [
        a_node("Switch", [x, condition], no, yes),
        a_node("Neg", [no], negated),
        a_node("Merge", [negated, yes], merged, a_value(I)),
    ]
    main = graph("main", [x, condition], nodes, [merged])
    raise_branches(main)
    main.check()
    assert ops_of(main) == ["If"]
    assert [ops_of(body) for body in main.nodes[0].bodies] == [[], ["Neg"]]


def test_arrays_of_tensorflow_1_are_lists() -> None:
    handle, flow, x, after, item = (
        a_value(HANDLE, name="handle"),
        a_value(F, name="flow"),
        a_value(F, 4),
        a_value(F, name="after"),
        a_value(F, 4),
    )
    nodes = [
        a_node("TensorArrayV3", [an_int(3)], handle, flow, dtype=F, element_shape=(4,)),
        a_node("TensorArrayWriteV3", [handle, an_int(1), x, flow], after),
        a_node("TensorArrayReadV3", [handle, an_int(1), after], item),
    ]
    main = graph("main", [x], nodes, [item])
    raise_arrays(main)
    main.tidy()
    assert ops_of(main) == ["TensorListReserve", "TensorListSetItem", "TensorListGetItem"]
    lower_lists(Module(main, ["x"], ["item"]))
    main.check()
    assert UPDATE_SLICE in ops_of(main)
