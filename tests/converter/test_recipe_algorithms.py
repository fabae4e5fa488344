"""The algorithms of recipes: smaller errors than the largest magnitude's, and rotations and factors that cancel out."""

from typing import Any

import numpy as np
import pytest

from litecl.converter.quantization.clipping import nearest
from litecl.converter.quantization.gptq import Moments, compensated
from litecl.converter.quantization.recipes.names import entry
from litecl.converter.quantization.rotation import hadamard
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from support import oracle
from support.build import model, randn
from support.quantize_models import Net, names_of, run
from support.recipes import by_recipe, named_results

_PLAIN = ("min_max_uniform_quantize", "OCTAV", "MSE")


def _inputs(seed: int, count: int, depth: int) -> Array:
    """Return inputs that hang together, some of them large, as those of language models."""
    rng = np.random.default_rng(seed)
    mixed = randn(rng, count, depth // 4) @ randn(np.random.default_rng(5), depth // 4, depth)
    return (mixed * np.where(np.arange(depth) % 16 == 3, 8, 1) / np.sqrt(depth / 4)).astype(np.float32)


def _dense(depth: int = 64, units: int = 48, tail: bool = True) -> Model:
    g = Net()
    weights = randn(g.rng, units, depth) * (g.rng.standard_t(3, (units, depth)) if tail else 1)
    options = FullyConnectedOptions()
    return model(
        g.build(g.op(FULLY_CONNECTED, [g.input((1, depth)), g.const(weights.astype(np.float32)), None], options))
    )


def _error(of: Model, recipe: Any) -> float:
    """Return the mean squared error on inputs that the algorithm has not seen, next to the signal."""
    after, _ = by_recipe(of, recipe, data=[[x[None]] for x in _inputs(1, 200, 64)])
    fed = [[x[None]] for x in _inputs(2, 50, 64)]
    exact, got = (np.concatenate([run(Interpreter(m), x)[0] for x in fed]) for m in (of, after))
    return float(np.square(exact - got).sum() / np.square(exact).sum())


@pytest.mark.parametrize(("bits", "block"), [(4, 0), (2, 0), (4, 32)])
def test_errors_of_layers(bits: int, block: int) -> None:
    """Each algorithm does better than the one that it refines, on inputs that it has not seen."""
    of = _dense()
    keys = (*_PLAIN, "AWQ", "OSCAR", "GPTQ")
    error = {key: _error(of, [entry(bits, block, key, widened=not block)]) for key in keys}
    plain = min(error[key] for key in _PLAIN)
    assert error["AWQ"] == error["OSCAR"] < plain * 0.9
    assert error["GPTQ"] < plain * 0.7


@pytest.mark.parametrize(("bits", "gain"), [(8, 0.0), (4, 0.5), (2, 2.0)])
def test_errors_of_weights(bits: int, gain: float) -> None:
    """Rounding by the smallest squared error loses less than by the largest magnitude, at the same size."""
    of = _dense(512, tail=False)
    rows = {key: by_recipe(of, [entry(bits, algorithm=key, widened=True)])[1].weights[0] for key in _PLAIN}
    plain, octav, mse = (rows[key].sqnr_db for key in _PLAIN)
    assert mse >= octav and mse > plain + gain
    assert len({row.stored_bytes for row in rows.values()}) == 1


def test_a_rotation_helps_where_weights_have_outliers() -> None:
    of = _dense()
    plain, rotated = (_error(of, [entry(4, algorithm=key)]) for key in ("MSE", "DECOMPOSED_HADAMARD_ROTATION"))
    assert rotated < plain * 0.8


_GRID = np.linspace(0.05, 1, 2000)


@pytest.mark.parametrize(("last", "slack"), [(1, 1.02), (7, 1.02), (127, 1.1)])
def test_searched_scales_are_the_best(last: int, slack: float) -> None:
    """Against every scale of a fine grid, in a plain loop."""
    rows = np.random.default_rng(0).standard_t(3, (6, 50))

    def error(row: Array, scale: float) -> float:
        return float(np.square(row - np.rint(row / scale).clip(-last, last) * scale).sum())

    for row, scale in zip(rows, nearest(rows, last, "mse"), strict=True):
        assert error(row, scale) <= min(error(row, s) for s in np.abs(row).max() / last * _GRID) * slack


@pytest.mark.parametrize("last", [7, 127])
def test_scales_of_octav_make_its_formula_smallest(last: int) -> None:
    """The expected error of Sakr et al. (2022), equation 5: noise of a step of 2 clip / 2^bits, and what is clipped."""
    rows = np.random.default_rng(0).standard_normal((6, 400))

    def expected(row: Array, clip: float) -> float:
        inside = np.abs(row) <= clip
        noise = (clip / (last + 1)) ** 2 / 12
        return float(noise * inside.mean() + np.square(np.abs(row) - clip)[~inside].sum() / row.size)

    for row, scale in zip(rows, nearest(rows, last, "octav"), strict=True):
        assert expected(row, scale * last) <= min(expected(row, c) for c in np.abs(row).max() * _GRID) * 1.02


def test_scales_of_rows_of_zeros_and_of_one_number() -> None:
    rows = np.array([[0.0, 0, 0], [5, -5, 5], [1e-44, 0, 0]])
    for method in ("mse", "octav"):
        found = nearest(rows, 7, method)  # type: ignore[arg-type]
        assert found[0] == 1 and abs(found[1] - 5 / 7) < 0.01 and np.isfinite(1 / found).all()


def test_compensation_of_inputs_that_are_independent_is_rounding() -> None:
    rng = np.random.default_rng(0)
    weights, steps = rng.standard_normal((5, 200)), np.full((5, 200), 0.3)
    got = compensated(weights, steps, 7, Moments(np.eye(200)))
    np.testing.assert_array_equal(got, np.rint(weights / 0.3).clip(-7, 7))
    assert np.isfinite(compensated(weights, steps, 7, Moments(np.zeros((200, 200))))).all()


def test_compensation_against_the_equations() -> None:
    """Column by column, with the inverse of what is left: equations 2 and 3 of Frantar et al. (2023)."""
    rng = np.random.default_rng(1)
    weights, x = rng.standard_normal((4, 12)), rng.standard_normal((40, 12)) @ rng.standard_normal((12, 12))
    moments, steps = x.T @ x / 40, np.full((4, 12), 0.5)
    damped = moments + 0.01 * np.diag(moments).mean() * np.eye(12)
    left, expected = weights.copy(), np.zeros((4, 12))
    order = list(np.argsort(-np.diag(moments), kind="stable"))
    for place, column in enumerate(order):
        expected[:, column] = np.rint(left[:, column] / 0.5).clip(-7, 7)
        rest = order[place:]
        inverse = np.linalg.inv(damped[np.ix_(rest, rest)])
        error = (left[:, column] - expected[:, column] * 0.5) / inverse[0, 0]
        left[:, rest] -= np.outer(error, inverse[0])
    np.testing.assert_array_equal(compensated(weights, steps, 7, Moments(moments)), expected)


@pytest.mark.parametrize("size", [2, 8, 64])
def test_matrices_of_rotations(size: int) -> None:
    matrix = hadamard(size)
    np.testing.assert_allclose(matrix @ matrix, np.eye(size), atol=1e-6)
    assert set(np.unique(np.sign(matrix))) == {-1, 1}


def _layers(shape: tuple[int, ...], depth: int, signature: tuple[int, ...] | None = None) -> Model:
    """Two layers that read one input, and one after them."""
    g = Net()
    x = g.input(shape, signature=signature)
    keep = FullyConnectedOptions(keep_num_dims=len(shape) > 2 and shape[-1] == depth)
    a, b = (g.op(FULLY_CONNECTED, [x, g.const(randn(g.rng, 16, depth)), None], keep) for _ in range(2))
    c = g.op(FULLY_CONNECTED, [b, g.const(randn(g.rng, 12, 16)), None], keep)
    return named_results(model(g.build(a, c)), "a b c")


CASES = {
    "a whole row": ((3, 64), 64, None, {"FULLY_CONNECTED": 5}),
    "blocks of a row": ((3, 48), 48, None, {"FULLY_CONNECTED": 5, "RESHAPE": 2}),
    "several rows": ((2, 3, 64), 64, None, {"FULLY_CONNECTED": 5}),
    "a flat image": ((2, 2, 2, 16), 64, None, {"FULLY_CONNECTED": 5, "RESHAPE": 2}),
    "any batch": ((1, 3, 48), 48, (-1, 3, 48), {"FULLY_CONNECTED": 5, "RESHAPE": 2}),
    "any batch of any length": ((1, 3, 48), 48, (-1, -1, 48), {"FULLY_CONNECTED": 4}),
}


@pytest.mark.parametrize("custom", [False, True])
@pytest.mark.parametrize(("shape", "depth", "signature", "counts"), CASES.values(), ids=CASES)
def test_rotations_of_inputs(
    shape: tuple[int, ...], depth: int, signature: Any, counts: dict[str, int], custom: bool
) -> None:
    """Rotations cancel out; layers that read one input share one; LiteRT, interpreter and device agree."""
    of = _layers(shape, depth, signature)
    key = "HADAMARD_ROTATION" if custom else "DECOMPOSED_HADAMARD_ROTATION"
    after, report = by_recipe(of, [entry(8, algorithm=key, widened=True)])
    names = names_of(after)
    if custom and len(shape) < 4 and signature != (-1, -1, 48):
        assert names.count("aeq.hadamard_rotation") == 2
    elif not custom:
        assert {name: names.count(name) for name in counts} == counts
    assert bool(report.notes) == (signature == (-1, -1, 48))
    feed = randn(np.random.default_rng(3), *shape)
    content = write(after)
    expected = run(Interpreter(of), [feed])
    resolver = oracle.WITH_OPTIMISED_KERNELS if custom else oracle.RESOLVERS["reference"]
    for wanted, exact in zip(oracle.run(content, [feed], resolver), expected, strict=True):
        np.testing.assert_allclose(wanted, exact, rtol=0, atol=0.02 * np.abs(exact).max())
    for delegates in ([], [CLDelegate(dynamic_range="reference")]):
        got = run(Interpreter(content, delegates=delegates), [feed])
        for value, wanted in zip(got, oracle.run(content, [feed], resolver), strict=True):
            np.testing.assert_allclose(value, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_a_batch_of_another_size_is_rotated_too() -> None:
    of = _layers((1, 3, 48), 48, (-1, 3, 48))
    content = write(by_recipe(of, [entry(8, algorithm="DECOMPOSED_HADAMARD_ROTATION", widened=True)])[0])
    feed = randn(np.random.default_rng(3), 5, 3, 48)
    interpreter = Interpreter(content)
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], feed.shape)
    for got, wanted in zip(run(interpreter, [feed]), oracle.run(content, [feed]), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("custom", [False, True])
def test_rotations_of_tables(custom: bool) -> None:
    """What is looked up is rotated back, also where the caller gets it."""
    g = Net()
    table = randn(g.rng, 20, 64)
    x = g.op(EMBEDDING_LOOKUP, [g.input((5,), TensorType.INT32), g.const(table)], NoOptions())
    of = model(g.build(x, g.op(RESHAPE, [x, g.const(np.array([-1], np.int32))], ReshapeOptions())))
    key = "HADAMARD_ROTATION" if custom else "DECOMPOSED_HADAMARD_ROTATION"
    after, _ = by_recipe(of, [entry(8, algorithm=key)])
    feed, content = np.array([3, 0, 19, 7, 3], np.int32), write(after)
    resolver = oracle.WITH_OPTIMISED_KERNELS if custom else oracle.RESOLVERS["reference"]
    wanted = oracle.run(content, [feed], resolver)
    np.testing.assert_allclose(wanted[0], table[feed], rtol=0, atol=0.03)
    for got, exact in zip(run(Interpreter(content), [feed]), wanted, strict=True):
        np.testing.assert_allclose(got, exact, rtol=0, atol=1e-5)


def _behind(kind: str) -> Model:
    """Return layers that read one input, and what makes that."""
    g = Net()
    x, row = g.input((1, 64)), [g.const((g.rng.random(64) + 0.5).astype(np.float32)) for _ in range(2)]
    if kind == "norm":
        x = g.op(ADD, [g.op(MUL, [x, row[0]], MulOptions()), row[1]], AddOptions())
    elif kind in ("dense", "dense, relu", "dense, relu6", "dense, read twice"):
        name = kind.partition(", ")[2].upper()
        function = ActivationFunctionType[name] if name in ("RELU", "RELU6") else ActivationFunctionType.NONE
        options = FullyConnectedOptions(fused_activation_function=function)
        weights = (np.eye(64) * 3).astype(np.float32) + randn(g.rng, 64, 64, scale=0.1)
        x = g.op(FULLY_CONNECTED, [x, g.const(weights), row[1]], options)
    elif kind == "tanh":
        x = g.unary(unary.TANH, x)
    tail = [g.const((randn(g.rng, 48, 64) * g.rng.standard_t(3, (48, 64))).astype(np.float32)) for _ in range(2)]
    made = [g.op(FULLY_CONNECTED, [x, weights, None], FullyConnectedOptions()) for weights in tail]
    return model(g.build(*made, *([g.unary(unary.TANH, x)] if "twice" in kind else [])))


@pytest.mark.parametrize(
    ("kind", "folds"),
    [
        *(("norm", True), ("dense", True), ("dense, relu", True)),
        *(("dense, relu6", False), ("dense, read twice", False), ("tanh", False), ("input", False)),
    ],
)
def test_factors_are_folded_into_what_makes_the_input(kind: str, folds: bool) -> None:
    """One product for all layers that read an input, or none, if constants can be divided instead."""
    of = _behind(kind)
    data = [[x[None]] for x in _inputs(1, 100, 64)]
    (graph,) = of.subgraphs
    first = graph.tensors[graph.nodes[0].outputs[0]].name if kind.startswith("dense") else "none"
    left = {"regex": first, "operation": "*", "algorithm_key": "no_quantize"}
    after, _ = by_recipe(of, [entry(8, algorithm="AWQ", widened=True), left], data=data)
    names, before = names_of(after), names_of(of)
    assert names.count("MUL") == before.count("MUL") + (not folds)
    assert len(write(after)) < len(write(of)) * 0.7
    feed = _inputs(2, 1, 64)
    for got, wanted in zip(oracle.run(write(after), [feed]), run(Interpreter(of), [feed]), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=0.03 * np.abs(wanted).max())


def test_factors_cancel_out() -> None:
    """Scaled inputs and weights make the results that they would make without, but for smaller errors."""
    of = _dense()
    after, _ = by_recipe(of, [entry(8, algorithm="AWQ", widened=True)], data=[[x[None]] for x in _inputs(1, 50, 64)])
    assert names_of(after) == ["DEQUANTIZE", "MUL", "FULLY_CONNECTED"]
    feed = _inputs(2, 1, 64)
    (wanted,), (got,) = run(Interpreter(of), [feed]), oracle.run(write(after), [feed])
    np.testing.assert_allclose(got, wanted, rtol=0, atol=0.01 * np.abs(wanted).max())


@pytest.mark.parametrize("stride", [1, 2])
def test_errors_of_convolutions(stride: int) -> None:
    """GPTQ of patches: against LiteRT, and better than rounding on images that it has not seen."""
    g = Net()
    weights = randn(g.rng, 24, 3, 3, 8)
    options = Conv2DOptions(stride_w=stride, stride_h=stride)
    of = model(g.build(g.op(CONV_2D, [g.input((1, 9, 7, 8)), g.const(weights), g.const(randn(g.rng, 24))], options)))

    def images(seed: int, count: int) -> list[list[Array]]:
        flat = _inputs(seed, count * 63, 8) + np.float32(0.5)
        return [[image[None]] for image in flat.reshape(count, 9, 7, 8)]

    errors = {}
    for key in ("MSE", "GPTQ"):
        recipe = [entry(4, operation="CONV_2D", algorithm=key, widened=True)]
        after, report = by_recipe(of, recipe, data=images(1, 20))
        assert not report.notes
        fed = images(2, 10)
        exact, got = (np.concatenate([run(Interpreter(m), x)[0] for x in fed]) for m in (of, after))
        errors[key] = float(np.square(exact - got).sum())
        (wanted,) = oracle.run(write(after), fed[0])
        np.testing.assert_allclose(got[:1], wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
    assert errors["GPTQ"] < errors["MSE"] * 0.8
