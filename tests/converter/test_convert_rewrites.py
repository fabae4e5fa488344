"""Passes over composites and TFLite's operators, alone, on a graph made by hand."""

import numpy as np
import pytest

from litecl.converter.composites import Composite
from litecl.converter.fusions import Fusion
from litecl.converter.graph import Function, Module, Node, constant
from litecl.converter.own_ops import BIDIRECTIONAL_LSTM, COMPOSITE, LSTM, OWN_OPS, RNN
from litecl.converter.passes.calls.composites import fuse_composites
from litecl.converter.passes.calls.inline import inline_calls
from litecl.converter.passes.tensorflow.fold import fold_constants
from litecl.converter.passes.tflite.duplicates import merge_duplicates
from litecl.converter.passes.tflite.kept_dims import keep_dims
from litecl.converter.passes.tflite.linear import fold_linear
from litecl.converter.passes.tflite.reshapes import join_reshapes
from litecl.converter.records import Callee
from litecl.converter.traits import Effects
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import MUL, MulOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.reverse import REVERSE_V2
from litecl.interpreter.ops.unary import EXP
from litecl.interpreter.schema import TensorType
from support.graphs import a_node, a_value, graph, ops_of

F, I, B = TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL  # noqa: E741


@pytest.mark.parametrize("reason", [None, "no"])
def test_composite_is_kept_or_taken_apart(reason: str | None) -> None:
    a, b, x, y = (a_value(F, 3) for _ in range(4))
    callee = Function("f", [a], [b], [a_node("Neg", [a], b)], {"_implements": "mine"})
    main = graph("main", [x], [a_node("PartitionedCall", [x], y, f=Callee("f"))], [y])

    def check(composite: Composite) -> str | None:
        assert composite.name == "mine"
        return reason

    fusion = Fusion("mine", lambda b, composite: composite.inputs[0], check)
    assert not inline_calls(Module(main, ["x"], ["y"], {"f": callee}), [fusion])
    assert ops_of(main) == [COMPOSITE]
    (record,) = fuse_composites(main)
    main.check()
    assert (record.name, record.reason) == ("mine", reason)
    assert ops_of(main) == [COMPOSITE if reason is None else "Neg"]


def test_reversing_twice_changes_nothing() -> None:
    x, once, twice = (a_value(F, 2, 3) for _ in range(3))
    axis = constant(np.array([1], np.int32))
    main = graph("main", [x], [a_node(REVERSE_V2, [x, axis], once), a_node(REVERSE_V2, [once, axis], twice)], [twice])
    assert join_reshapes(main)
    assert not main.nodes
    assert main.outputs == [x]


def test_reduction_keeps_dimensions_that_are_put_back() -> None:
    x, mean, kept = a_value(F, None, 4, 4, 3), a_value(F, None, 3), a_value(F, None, 1, 1, 3)
    axes, target = constant(np.array([1, 2], np.int32)), constant(np.array([-1, 1, 1, 3], np.int32))
    nodes = [
        Node(MEAN, [x, axes], [mean], ReducerOptions(False), "mean"),
        Node(RESHAPE, [mean, target], [kept], ReshapeOptions((-1, 1, 1, 3)), "reshape"),
    ]
    main = graph("main", [x], nodes, [kept])
    assert keep_dims(main)
    main.check()
    (node,) = main.nodes
    assert (node.op, node.options.keep_dims) == (MEAN, True)


def test_operators_without_options_are_merged_too() -> None:
    x = a_value(F, 2, 3)
    results = [a_value(F, 2, 3) for _ in range(2)]
    nodes = [Node(EXP, [x], [result], NoOptions(), f"exp{i}") for i, result in enumerate(results)]
    main = graph("main", [x], nodes, results)
    merge_duplicates(main)
    main.check()
    assert len(main.nodes) == 1
    assert main.outputs[0] is main.outputs[1]


def test_a_factor_before_a_dense_layer_is_part_of_its_weights_but_not_one_of_its_bias() -> None:
    x, scaled, y = a_value(F, 2, 3), a_value(F, 2, 3), a_value(F, 2, 4)
    weights = constant(np.ones((4, 3), np.float32))
    nodes = [
        Node(MUL, [x, constant(np.float32(0.5))], [scaled], MulOptions(), "scale"),
        Node(FULLY_CONNECTED, [scaled, weights, None], [y], FullyConnectedOptions(), "dense"),
    ]
    main = graph("main", [x], nodes, [y])
    assert fold_linear(main)
    main.check()
    (dense,) = main.nodes
    assert dense.input(0) is x
    np.testing.assert_array_equal(dense.input(1).data, np.full((4, 3), 0.5))
    bias, moved = a_value(F, 4), a_value(F, 4)
    nodes = [
        Node(MUL, [bias, constant(np.float32(0.5))], [moved], MulOptions(), "scale"),
        Node(FULLY_CONNECTED, [x, weights, moved], [y], FullyConnectedOptions(), "dense"),
    ]
    assert not fold_linear(graph("main", [x, bias], nodes, [y]))


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
    y = a_value(F)
    main = graph("main", [], [Node(op, [constant(np.float32(-2))], [y], {}, "y", effects=effects)], [y])
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
