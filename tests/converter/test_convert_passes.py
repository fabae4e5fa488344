"""Each pass over TensorFlow's operators alone; ``passes.txt`` has programs before and after them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from litecl.converter.graph import Function, Module, Node, Value
from litecl.converter.own_ops import COMPOSITE
from litecl.converter.passes.calls.bodies import own_bodies
from litecl.converter.passes.control.branches import simplify_branches
from litecl.converter.passes.control.effects import refuse_effects
from litecl.converter.passes.control.loops import simplify_loops
from litecl.converter.passes.control.variables import changed_variables, freeze_variables
from litecl.converter.passes.lists.elements import Scope, element, shape_reads
from litecl.converter.passes.lists.lower_lists import lower_lists
from litecl.converter.passes.recurrent.bidirectional import fuse_bidirectional
from litecl.converter.passes.tensorflow.arithmetic import simplify_arithmetic
from litecl.converter.passes.tensorflow.shape_sources import use_shape_sources
from litecl.converter.passes.v1.arrays import raise_arrays
from litecl.converter.passes.v1.frames import raise_loops
from litecl.converter.passes.v1.switches import raise_branches
from litecl.converter.passes.v1.variables import raise_variables
from litecl.converter.text import describe
from litecl.converter.traits import Effects
from litecl.interpreter.errors import ConversionError
from support.graphs import LIST, B, F, a_node, a_value, a_variable, an_int, graph, module_of, ops_of

_CASES = dict(case.split("\n", 1) for case in Path(__file__).with_name("passes.txt").read_text().split("\n## ")[1:])


def _freeze(module: Module) -> None:
    freeze_variables(module, changed_variables([module]))
    assert [variable.name for variable in module.variables] == ["counted"]


def _until_stable(apply: Callable[[Function], bool]) -> Callable[[Function], None]:
    """Return the pass, applied until it says that it changes nothing; it changes something at first, and says so."""

    def applied(function: Function) -> None:
        assert apply(function)
        while apply(function):
            function.check()

    return applied


_OF_MODULES = {"freeze_variables": _freeze, "lower_lists": lower_lists, "own_bodies": own_bodies}
_OF_FUNCTIONS: dict[str, Callable[[Function], object]] = {
    "fuse_bidirectional": fuse_bidirectional,
    "raise_arrays": raise_arrays,
    "raise_branches": raise_branches,
    "raise_loops": raise_loops,
    "simplify_arithmetic": simplify_arithmetic,
    "simplify_branches": _until_stable(simplify_branches),
    "simplify_loops": _until_stable(simplify_loops),
    "use_shape_sources": use_shape_sources,
}


@pytest.mark.parametrize("case", _CASES)
def test_pass(case: str) -> None:
    before, after = _CASES[case].split("\n=>\n")
    module, name = module_of(before), case.rpartition(": ")[2]
    if name in _OF_MODULES:
        _OF_MODULES[name](module)
    else:
        _OF_FUNCTIONS[name](module.main)
        module.main.tidy()
    module.main.check()
    assert describe(module).strip() == after.strip()


def _before(title: str) -> Module:
    return module_of(next(text for case, text in _CASES.items() if case.startswith(title)).split("\n=>\n")[0])


def test_bodies_are_copies_of_functions() -> None:
    module = _before("a case is a chain")
    library = {node for function in module.functions.values() for node in function.nodes}
    own_bodies(module)
    assert not library.intersection(node for function in module.main.walk() for node in function.nodes)


def test_variables_of_tensorflow_1_are_read_where_they_are_used() -> None:
    made, x, y, after = (a_value(F, name=name) for name in ("w", "x", "y", "after"))
    made.variable = a_variable("w", 1.0)
    nodes = [a_node("VariableV2", [], made), a_node("Assign", [made, x], after), a_node("AddV2", [made, after], y)]
    main = graph("main", [x], nodes, [y])
    raise_variables(main)
    main.tidy()
    main.check()
    assert ops_of(main) == ["AssignVariableOp", "ReadVariableOp", "ReadVariableOp", "AddV2"]


def test_elements_have_the_size_of_what_is_written() -> None:
    main = _before("a list of fixed size").main
    assert element(main.nodes[0].output, Scope(main)) == [(main.inputs[0], 0), 4]


def test_list_of_lists_is_refused() -> None:
    module = module_of("""
        main()
          made:variant[] = TensorListReserve(-1, 2) element_dtype=LIST
          n:int32[] = TensorListLength(made)
          return n
    """)
    with pytest.raises(ConversionError, match="size of its elements"):
        lower_lists(module)


def test_items_have_the_shape_of_the_tensor_that_a_list_is_made_of() -> None:
    x, made, item = a_value(F, 5, None, 4), a_value(LIST), Value(F, None)
    nodes = [
        a_node("TensorListFromTensor", [x, an_int(-1)], made),
        a_node("TensorListGetItem", [made, an_int(0)], item),
    ]
    shape_reads(Scope(graph("main", [x], nodes, [item])))
    assert item.shape == (None, 4)


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
