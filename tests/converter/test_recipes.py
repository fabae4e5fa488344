"""Recipes of litert-quantizer: the choice of nodes and formats, the files, and what is asked for in vain."""

from typing import Any

import numpy as np
import pytest

from litecl.converter import Quantization
from litecl.converter.quantization.quantize import quantize
from litecl.converter.quantization.recipes.names import entry, named
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.quantize import quantize as as_integers
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from support import oracle
from support.build import model, randn
from support.quantize_models import Net, names_of, run, samples_of, tree
from support.recipes import by_peer, by_recipe, entries_of, named_results, network, repeated, weights_of

CHOICES: dict[str, list[dict[str, Any]]] = {
    "all": entries_of((".*", "*", 8)),
    "four bits where there are kernels": entries_of((".*", "*", 4)),
    "eight bits where there are none for four": entries_of((".*", "*", 8), ("", "*", 4)),
    "an operator": entries_of((".*", "CONV_2D", 8)),
    "a name": entries_of(("second/", "*", 8)),
    "a whole name": entries_of(("^head/dense;$", "FULLY_CONNECTED", 8)),
    "the last counts": entries_of((".*", "FULLY_CONNECTED", 8), ("head", "FULLY_CONNECTED", 4)),
    "the last counts, reversed": entries_of(("head", "FULLY_CONNECTED", 4), (".*", "FULLY_CONNECTED", 8)),
    "left out": entries_of((".*", "*", 8), ("first", "*", 0)),
    "one for all replaces those of its expression": entries_of((".*", "CONV_2D", 4), (".*", "*", 8)),
    "one for an operator joins them": entries_of((".*", "*", 8), (".*", "FULLY_CONNECTED", 4)),
    "its place stays": entries_of(("head", "*", 4), (".*", "*", 8), ("head", "FULLY_CONNECTED", 4)),
    "blocks": entries_of((".*", "*", 4), block=32),
    "widened": entries_of((".*", "*", 8), ("", "FULLY_CONNECTED", 4), widened=True),
}


@pytest.mark.parametrize("recipe", CHOICES.values(), ids=CHOICES)
def test_weights_are_those_of_the_peer(recipe: list[dict[str, Any]]) -> None:
    of = network()
    ours, theirs = weights_of(by_recipe(of, recipe)[0]), weights_of(by_peer(of, recipe))
    assert ours.keys() == theirs.keys()
    for name, spec in theirs.items():
        assert ours[name].type == spec.type, name
        if spec.quantization is None:
            continue
        own = ours[name].quantization
        assert own is not None and own.quantized_dimension == spec.quantization.quantized_dimension
        assert own.block_size == spec.quantization.block_size
        np.testing.assert_allclose(own.scale, spec.quantization.scale, rtol=1e-6)
        assert np.abs(np.subtract(ours[name].data, spec.data, dtype=np.int64)).max() <= 1  # halves round otherwise
        assert np.mean(ours[name].data != spec.data) < 0.01  # type: ignore[arg-type]


ALGORITHMS = ("MSE", "OCTAV", "DECOMPOSED_HADAMARD_ROTATION", "HADAMARD_ROTATION")


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_algorithm_is_for_the_operators_that_the_peer_has_it_for(algorithm: str, first: bool) -> None:
    of, narrow = network(), entries_of(("", "*", 4), algorithm=algorithm)
    recipe = [*entries_of((".*", "*", 8)), *narrow] if first else narrow
    ours, theirs = weights_of(by_recipe(of, recipe)[0]), weights_of(by_peer(of, recipe))
    assert {name: ours[name].type.name for name in ours if name in theirs} == {
        name: theirs[name].type.name for name in theirs if name in ours
    }


NAMES = [
    *("dynamic_wi8_afp32", "dynamic_wi4_afp32", "dynamic_wi2c_afp32", "dynamic_wi4b32_afp32", "dynamic_wi4_hr_afp32"),
    *("weight_only_wi8_afp32", "weight_only_wi4_afp32", "weight_only_wi2_afp32"),
    *("static_wi8_ai8", "static_wi4_ai8", "static_wi8_ai16", "static_wi4_ai16"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_runs_in_litert(name: str) -> None:
    """LiteRT, interpreter and device compute the same; its reference kernels alone do not know blocks."""
    of = network()
    after, report = by_recipe(of, name, data=samples_of(of))
    assert len(write(after)) < len(write(of))
    resolver = oracle.WITH_OPTIMISED_KERNELS if "b32" in name else oracle.RESOLVERS["reference"]
    _assert_same(of, after, resolver)
    assert report.outputs[0].sqnr_db > (30 if "wi8" in name else 10 if "wi4" in name else -4)


def _assert_same(of: Model, after: Model, resolver: Any) -> None:
    (graph,), content = after.subgraphs, write(after)
    spec = graph.tensors[graph.inputs[0]]
    for (sample,) in samples_of(of, 2, seed=2):
        feed = sample if spec.quantization is None else as_integers(sample, spec.quantization, spec.type)
        (wanted,) = oracle.run(content, [feed], resolver)
        for delegates in ([], [CLDelegate(dynamic_range="reference")]):
            interpreter = Interpreter(content, delegates=delegates)
            (got,) = run(interpreter, [feed])
            tolerance = 1e-5 * np.abs(wanted).max() if got.dtype.kind == "f" else 0
            np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance)
            assert not delegates or all(node.claimed for node in interpreter.delegation_report().nodes)


def _with_substitutes() -> Model:
    """A model with operators that others take the place of."""
    g = Net()
    x = g.dense(g.unary(unary.NEG, g.unary(unary.SQUARE, g.input((4, 32)))), 16)
    total = g.op(SUM, [x, g.const(np.array([1], np.int32))], ReducerOptions(keep_dims=True))
    return model(g.build(g.dense(x, 8), total))


@pytest.mark.parametrize("make", [network, tree, _with_substitutes])
@pytest.mark.parametrize("bits", [8, 16])
def test_integers_throughout_are_those_without_a_recipe(make: Any, bits: int) -> None:
    of, type_ = make(), f"int{bits}"
    after, report = by_recipe(of, f"static_wi8_ai{bits}", data=samples_of(of))
    how = Quantization(activations=type_, data=samples_of(of), input_type=type_, output_type=type_)  # type: ignore[arg-type]
    same, expected = quantize(of, how)
    assert write(after) == write(same) and report.layers == expected.layers
    floats = Quantization(recipe=[*(named(f"static_wi8_ai{bits}") or []), *_IN_FLOAT], data=samples_of(of))
    plain = Quantization(activations=type_, data=samples_of(of))  # type: ignore[arg-type]
    assert write(quantize(of, floats)[0]) == write(quantize(of, plain)[0])


_IN_FLOAT = entries_of(("", "INPUT", 0), ("", "OUTPUT", 0))


@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize("block", [0, 32])
@pytest.mark.parametrize("widened", [False, True])
def test_tables_of_lookups(bits: int, block: int, widened: bool) -> None:
    g = Net()
    ids = g.input((5,), TensorType.INT32)
    of = model(g.build(g.op(EMBEDDING_LOOKUP, [ids, g.const(randn(g.rng, 20, 64))], NoOptions())))
    after, report = by_recipe(of, [entry(bits, block, widened=widened)])
    (spec,) = weights_of(after).values()
    if block and (bits == 8 or widened):  # LiteRT has no such kernels
        assert spec.type == TensorType.FLOAT32
        assert report.notes[-1] == "the recipe quantizes nothing of this model"
        return
    assert spec.type.name == f"INT{bits}" and spec.quantization is not None
    assert spec.quantization.block_size == block
    feed = np.array([3, 0, 19, 7, 3], np.int32)
    (wanted,) = oracle.run(write(after), [feed])
    for delegates in ([], [CLDelegate(dynamic_range="reference")]):
        np.testing.assert_array_equal(run(Interpreter(write(after), delegates=delegates), [feed])[0], wanted)


def test_blocks_run_in_xnnpack() -> None:
    g = Net()
    of = model(g.build(g.dense(g.input((2, 64)), 16)))
    content = write(by_recipe(of, "dynamic_wi4b32_afp32")[0])
    ((feed,),) = samples_of(of, 1)
    (got,), (wanted,) = run(Interpreter(content), [feed]), oracle.run(content, [feed], oracle.RESOLVERS["default"])
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize(("units", "depth", "sizes"), [(3, 64, 0), (4, 64, 32), (8, 48, 0)])
def test_rows_without_blocks(units: int, depth: int, sizes: int) -> None:
    """LiteRT's optimised kernel is wrong for fewer than four units in blocks."""
    g = Net()
    of = model(g.build(g.dense(g.input((2, depth)), units)))
    for how in (Quantization(recipe=[entry(4, 32)]), Quantization(weights="int4", block=32)):
        after, report = quantize(of, how)
        (spec,) = weights_of(after).values()
        if how.recipe is not None:
            assert spec.quantization is not None and spec.quantization.block_size == sizes
            name = of.subgraphs[0].tensors[-1].name
            why = f"a scale for each row, as [{units}, {depth}] has no blocks of 32"
            noted = [f"FULLY_CONNECTED {name!r}: {why}"]
            assert report is not None and list(report.notes) == ([] if sizes else noted)
        _assert_same(of, after, oracle.WITH_OPTIMISED_KERNELS)


@pytest.mark.parametrize("function", ["RELU", "RELU6", "RELU_N1_TO_1"])
def test_activations_behind_blocks_are_nodes_of_their_own(function: str) -> None:
    """LiteRT's optimised kernel for blocks leaves out a fused one."""
    g = Net()
    options = FullyConnectedOptions(fused_activation_function=ActivationFunctionType[function])
    of = model(g.build(g.op(FULLY_CONNECTED, [g.input((2, 64)), g.const(randn(g.rng, 16, 64)), None], options)))
    after, _ = by_recipe(of, "dynamic_wi4b32_afp32")
    assert names_of(after) == ["FULLY_CONNECTED", function]
    for resolver in (oracle.WITH_OPTIMISED_KERNELS, oracle.RESOLVERS["default"]):
        _assert_same(of, after, resolver)


def test_weights_without_a_symmetric_range() -> None:
    g = Net()
    weights = np.abs(randn(g.rng, 8, 32)) + np.float32(0.5)
    x = g.op(FULLY_CONNECTED, [g.input((3, 32)), g.const(weights), None], FullyConnectedOptions())
    of, errors = model(g.build(x)), {}
    for symmetric in (True, False):
        (recipe,) = entries_of((".*", "*", 4), widened=True)
        recipe["op_config"]["weight_tensor_config"]["symmetric"] = symmetric
        after, report = by_recipe(of, [recipe])
        errors[symmetric] = report.weights[0].sqnr_db
        _assert_same(of, after, oracle.RESOLVERS["reference"])
    assert errors[False] > errors[True] + 3


def test_weights_that_two_layers_read() -> None:
    """A layer that a recipe leaves in float reads exact weights; layers of one format share what is stored."""
    g = Net()
    shared = g.const(randn(g.rng, 32, 32, scale=0.2))
    of = named_results(model(g.build(repeated(g, g.input((2, 32)), shared, 4))), "a b c d")
    after, _ = by_recipe(of, entries_of(("a|b", "*", 8), ("c", "*", 4)))
    found = weights_of(after)
    assert [found[name].type.name for name in "abcd"] == ["INT8", "INT8", "INT4", "FLOAT32"]
    assert found["a"] is found["b"]
    np.testing.assert_array_equal(found["d"].data, of.subgraphs[0].tensors[shared].data)
    _assert_same(of, after, oracle.RESOLVERS["reference"])


def test_integers_floats_and_halves_in_one_recipe() -> None:
    of = network()
    halves = entry(8, regex="head", operation="FULLY_CONNECTED", widened=True) | {"algorithm_key": "float_casting"}
    halves["op_config"]["weight_tensor_config"] = {"num_bits": 16, "dtype": "FLOAT"}
    recipe = [*entries_of(("first", "*", 8), activations=8), *entries_of(("second", "*", 4)), halves]
    after, report = by_recipe(of, recipe, data=samples_of(of))
    found = {name: spec.type.name for name, spec in weights_of(after).items()}
    assert [found.get(name) for name in ("second/dense", "third/matmul", "head/dense")] == [
        "INT4",
        "FLOAT32",
        "FLOAT16",
    ]
    assert names_of(after)[:2] == ["DEQUANTIZE", "QUANTIZE"] and not report.notes
    assert {layer.reason for layer in report.layers if layer.reason} == {"the recipe leaves it in float"}
    assert [layer.op for layer in report.layers if layer.reason is None] == ["CONV_2D", "RELU", "DEPTHWISE_CONV_2D"]
    _assert_same(of, after, oracle.RESOLVERS["reference"])


def test_weights_smaller_than_an_entry_wants() -> None:
    of = network()
    after, _ = by_recipe(of, [entry(8, least=1024)])
    large = {name for name, spec in weights_of(of).items() if spec.size >= 1024}
    assert {name for name, spec in weights_of(after).items() if spec.type == TensorType.INT8} == large != set()
