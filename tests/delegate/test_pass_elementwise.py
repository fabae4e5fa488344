"""The pass that makes one node of a graph of element-wise nodes, and the kernel, for CPUs only."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.gpu.pipeline import GPU_PASSES
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import binary, compare, unary
from litecl.interpreter.ops.binary import ADD, MUL, SUB, AddOptions, MulOptions
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU, LeakyReluOptions
from litecl.interpreter.ops.prelu import PRELU
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.select import SELECT, SELECT_V2
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from litecl.perf.models.build_control import below, int32, plus, while_model
from support import devices
from support.build import Graph, model
from support.regions import after, names

_RNG = np.random.default_rng(23)
_FLOAT, _INT, _BOOL = TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL
_SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, -3e38, 1.0, -1.5], np.float32)
_OPTIONS = {ADD: AddOptions, SUB: AddOptions, MUL: MulOptions, binary.DIV: AddOptions}
_DEVICES = pytest.mark.parametrize("device", devices.with_native(), ids=devices.named)


def _op(g: Graph, op: Op, *inputs: int, activation: ActivationFunctionType = ActivationFunctionType.NONE) -> int:
    return g.op(op, inputs, _OPTIONS[op](activation) if op in _OPTIONS else NoOptions())


def _cast(g: Graph, x: int, to: TensorType) -> int:
    return g.op(CAST, [x], CastOptions(g.tensors[x].type, to))


def _run(whole: Model, feeds: Sequence[Array], device: Any, **options: Any) -> list[Array]:
    delegates = [] if device is None else [CLDelegate(device, strict=True, **options)]
    interpreter = Interpreter(whole, delegates=delegates)
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


def _agrees(whole: Model, feeds: Sequence[Array], device: Any) -> None:
    with np.errstate(all="ignore"):
        expected = _run(whole, feeds, None)
    for threads in (1, 2):
        for got, wanted in zip(_run(whole, feeds, device, num_threads=threads), expected, strict=True):
            assert got.dtype == wanted.dtype
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=1e-7)
            else:
                np.testing.assert_array_equal(got, wanted)


def _feed(g: Graph, tensor: int, rng: np.random.Generator) -> Array:
    spec = g.tensors[tensor]
    if spec.type == _BOOL:
        return rng.integers(0, 2, spec.static_shape).astype(bool)
    if spec.type == _INT:
        return rng.integers(-9, 9, spec.static_shape, np.int32)
    return (rng.standard_normal(spec.static_shape) * 2).astype(np.float32)


def _escape(g: Graph, shape: Sequence[int]) -> Sequence[int]:
    """One step of z = z * z + c where |z| < 2, and how many steps it has been there."""
    a, b, x, y = (g.input(tuple(shape)) for _ in range(4))
    count = g.input(tuple(shape), _INT)
    a2, b2 = _op(g, MUL, a, a), _op(g, MUL, b, b)
    inside = _op(g, compare.LESS, _op(g, ADD, a2, b2), g.const(np.float32(4)))
    following = _op(g, ADD, _op(g, SUB, a2, b2), x)
    other = _op(g, ADD, _op(g, MUL, _op(g, MUL, g.const(np.float32(2)), a), b), y)
    chosen = _op(g, SELECT_V2, inside, following, a), _op(g, SELECT_V2, inside, other, b)
    return (*chosen, _op(g, ADD, count, _cast(g, inside, _INT)))


@pytest.mark.parametrize("shape", [(1,), (7,), (16,), (5, 67), (64, 64), (2, 3, 8)], ids=str)
@_DEVICES
def test_a_graph_with_masks(shape: tuple[int, ...], device: Any) -> None:
    """Several inputs and results of two types: one node; on a GPU they stay apart."""
    g = Graph()
    outputs = _escape(g, shape)
    assert names(after(PASSES, g, *outputs)) == ["ELEMENTWISE"]
    assert "ELEMENTWISE" not in names(after(GPU_PASSES, g, *outputs))
    _agrees(model(g.build(*outputs)), [_feed(g, t, _RNG) for t in g.inputs], device)


def test_text() -> None:
    """The graph as the kernel computes it."""
    g = Graph()
    x = g.input((3, 8))
    double = _op(g, ADD, x, x, activation=ActivationFunctionType.RELU6)
    outside = _op(g, compare.GREATER, double, g.const(np.float32(0.5)))
    y = _op(g, SELECT_V2, outside, double, x)
    (node,) = after(PASSES, g, y).nodes
    assert [(step.type, step.expression) for step in node.node.options.steps] == [
        (_FLOAT, "ACTIVATION_CLAMP(ADD(v0,v0),BOUND(0),BOUND(1))"),
        (_BOOL, "GREATER(v1,NUMBER(2))"),
        (_FLOAT, "SELECT(v2,v1,v0)"),
    ]
    assert (node.inputs, node.outputs, node.node.options.results) == ((x,), (y,), (3,))
    assert node.node.options.numbers == (0.0, 6.0, 0.5)


_UNARY = [unary.ABS, unary.NEG, unary.SQUARE, unary.SQRT, unary.RSQRT, unary.EXP, unary.LOG, unary.SIGN, unary.SIN]
_UNARY += [unary.COS, unary.CEIL, unary.FLOOR, unary.ROUND, unary.RELU, unary.RELU6, unary.RELU_N1_TO_1]
_UNARY += [unary.RELU_0_TO_1, unary.LOGISTIC, unary.TANH, unary.HARD_SWISH, unary.ELU]
_BINARY = [ADD, SUB, MUL, binary.DIV, binary.MAXIMUM, binary.MINIMUM, binary.SQUARED_DIFFERENCE, PRELU]
_COMPARE = [compare.EQUAL, compare.NOT_EQUAL, compare.LESS, compare.LESS_EQUAL, compare.GREATER, compare.GREATER_EQUAL]


def _in_eights(ops: Sequence[Op]) -> list[Sequence[Op]]:
    """As many results as the kernel has."""
    return [ops[i : i + 8] for i in range(0, len(ops), 8)]


@pytest.mark.parametrize("ops", _in_eights([*_UNARY, LEAKY_RELU]), ids=lambda ops: ops[0].name)
@_DEVICES
def test_special_values_of_functions(ops: Sequence[Op], device: Any) -> None:
    """NaN, infinities, zeros of both signs, subnormal and large numbers."""
    g = Graph()
    x = _op(g, MUL, g.input(_SPECIAL.shape), g.const(np.float32(1)))
    bounded = _op(g, unary.RELU_N1_TO_1, x)  # of large numbers the sines of runtimes differ
    inputs = [bounded if op in (unary.SIN, unary.COS) else x for op in ops]
    options = [LeakyReluOptions(-0.25) if op is LEAKY_RELU else NoOptions() for op in ops]
    outputs = [g.op(op, [a], own) for op, a, own in zip(ops, inputs, options, strict=True)]
    assert names(after(PASSES, g, *outputs)) == ["ELEMENTWISE"]
    _agrees(model(g.build(*outputs)), [_SPECIAL], device)


@_DEVICES
def test_special_slopes(device: Any) -> None:
    """LEAKY_RELU with slopes that no literal names."""
    g = Graph()
    x = g.input(_SPECIAL.shape)
    slopes = [LeakyReluOptions(slope) for slope in (np.nan, np.inf, -np.inf, -0.0, 1e-45)]
    outputs = [g.op(LEAKY_RELU, [x], options) for options in slopes]
    assert names(after(PASSES, g, *outputs, _op(g, MUL, x, outputs[0]))) == ["ELEMENTWISE"]
    _agrees(model(g.build(*outputs, g.nodes[-1].outputs[0])), [_SPECIAL], device)


@pytest.mark.parametrize("ops", _in_eights([*_BINARY, *_COMPARE]), ids=lambda ops: ops[0].name)
@_DEVICES
def test_special_values_of_pairs(ops: Sequence[Op], device: Any) -> None:
    """All pairs of them."""
    g = Graph()
    a, b = g.input((len(_SPECIAL) ** 2,)), g.input((len(_SPECIAL) ** 2,))
    outputs = [_op(g, op, a, b) for op in ops]
    assert names(after(PASSES, g, *outputs)) == ["ELEMENTWISE"]
    feeds = np.repeat(_SPECIAL, len(_SPECIAL)), np.tile(_SPECIAL, len(_SPECIAL))
    _agrees(model(g.build(*outputs)), feeds, device)


@_DEVICES
def test_integers_and_logic(device: Any) -> None:
    """Integers wrap, the least one is a literal too, and truth values are those of bytes."""
    g = Graph()
    a, b, mask = g.input((3, 37), _INT), g.input((3, 37), _INT), g.input((3, 37), _BOOL)
    least = g.const(np.int32(-(1 << 31)))
    sums = _op(g, ADD, _op(g, MUL, a, b), least)
    more = _op(g, compare.GREATER, a, b)
    both = _op(g, binary.LOGICAL_AND, more, g.op(unary.LOGICAL_NOT, [mask], NoOptions()))
    either = _op(g, binary.LOGICAL_OR, both, _op(g, compare.EQUAL, b, least))
    chosen = _op(g, SELECT, either, sums, _op(g, binary.MINIMUM, a, _op(g, binary.MAXIMUM, b, g.const(int32(-3)))))
    outputs = chosen, either, _cast(g, _op(g, SUB, chosen, b), _FLOAT), _cast(g, both, _FLOAT)
    assert names(after(PASSES, g, *outputs)) == ["ELEMENTWISE"]
    feeds = [_feed(g, t, _RNG) for t in g.inputs]
    feeds[0][0, :4], feeds[1][0, :4] = (1 << 31) - 1, [2, -1, -(1 << 31), (1 << 31) - 1]
    _agrees(model(g.build(*outputs)), feeds, device)


_BROADCASTS = {
    "columns": ((6, 40), (6, 1), (40,)),
    "rows within": ((3, 4, 20), (3, 1, 20), (4, 20)),
    "a number that is no constant": ((5, 9), (), (1, 1)),
    "an outer dimension": ((2, 3, 4, 16), (2, 1, 1, 1), (4, 16)),
}


@pytest.mark.parametrize("name", _BROADCASTS)
@_DEVICES
def test_broadcasting(name: str, device: Any) -> None:
    """Inputs that repeat along some dimensions, of floats and of truth values."""
    shape, first, second = _BROADCASTS[name]
    g = Graph()
    x, a, b, mask = g.input(shape), g.input(first), g.input(second), g.input(first, _BOOL)
    scaled = _op(g, MUL, _op(g, ADD, x, a), b)
    outputs = _op(g, SELECT_V2, mask, scaled, x), _op(g, SUB, scaled, _op(g, MUL, x, x))
    assert names(after(PASSES, g, *outputs)) == ["ELEMENTWISE"]
    _agrees(model(g.build(*outputs)), [_feed(g, t, _RNG) for t in g.inputs], device)


def _short_rows(g: Graph) -> Sequence[int]:
    x, a = g.input((50, 3)), g.input((50, 1))
    return _op(g, SELECT_V2, _op(g, compare.LESS, x, a), _op(g, MUL, x, x), x), x


def _a_chain(g: Graph) -> Sequence[int]:
    x = g.input((4, 9))
    return (_op(g, unary.EXP, _op(g, MUL, _op(g, SUB, x, g.input((4, 9))), g.input((9,)))),)


def _whole_rows(g: Graph) -> Sequence[int]:
    x, mask = g.input((4, 9)), g.input((4,), _BOOL)
    return (_op(g, SELECT, mask, _op(g, MUL, x, x), x),)


def _many_inputs(g: Graph) -> Sequence[int]:
    inputs = [g.input((20,)) for _ in range(10)]
    total = inputs[0]
    for x in inputs[1:]:
        total = _op(g, ADD, total, _op(g, MUL, x, x))
    return (total,)


def _read_between(g: Graph) -> Sequence[int]:
    """The mean of one product scales the other: the products can't be one node with what follows."""
    x = g.input((4, 9))
    product = _op(g, MUL, x, x)
    total = g.op(SUM, [product, g.const(np.array([1], np.int32))], ReducerOptions(True))
    return (_op(g, SUB, product, total),)


_APART = {
    "short rows": _short_rows,
    "a chain": _a_chain,
    "a condition for whole rows": _whole_rows,
    "more inputs than the kernel takes": _many_inputs,
    "a sum between them": _read_between,
}


@pytest.mark.parametrize("name", _APART)
@_DEVICES
def test_what_stays(name: str, device: Any) -> None:
    """Nodes that the kernel can't compute, or not faster; results are the interpreter's."""
    g = Graph()
    outputs = _APART[name](g)
    assert "ELEMENTWISE" not in names(after(PASSES, g, *outputs))
    _agrees(model(g.build(*outputs)), [_feed(g, t, _RNG) for t in g.inputs], device)


@pytest.mark.parametrize("seed", range(8))
@_DEVICES
def test_random_graphs(seed: int, device: Any) -> None:
    """Random graphs of three shapes, whose nodes read any values before them, with reductions between."""
    rng = np.random.default_rng(seed)
    g = Graph()
    values = [g.input(shape) for shape in ((6, 35), (35,), (6, 1), ()) for _ in range(2)]
    for _ in range(40):
        a, b = (int(t) for t in rng.choice(values[-9:], 2))
        kind = rng.integers(6)
        if kind < 3:
            op = [ADD, SUB, MUL, binary.MAXIMUM, binary.MINIMUM][rng.integers(5)]
            values.append(
                _op(
                    g,
                    op,
                    a,
                    b,
                    activation=list(ActivationFunctionType)[rng.integers(4)]
                    if op in _OPTIONS
                    else ActivationFunctionType.NONE,
                )
            )
        elif kind == 3:
            values.append(_op(g, SELECT_V2, _op(g, _COMPARE[rng.integers(6)], a, b), a, b))
        elif kind == 4:
            values.append(_op(g, [unary.TANH, unary.ABS, unary.RELU6][rng.integers(3)], a))
        elif g.tensors[a].shape and g.tensors[a].shape[-1] > 1:
            axis = g.const(np.array([-1], np.int32))
            values.append(g.op(unary.TANH, [g.op(SUM, [a, axis], ReducerOptions(True))], NoOptions()))
    outputs = list(dict.fromkeys(values[-12:]))
    assert "ELEMENTWISE" in names(after(PASSES, g, *outputs))
    _agrees(model(g.build(*outputs)), [_feed(g, t, rng) for t in g.inputs], device)


@_DEVICES
def test_in_a_loop(device: Any) -> None:
    """The results of an iteration are the next one's inputs."""

    def body(g: Graph, x: Sequence[int]) -> Sequence[int]:
        i, a, b, c = x
        square = _op(g, MUL, a, a)
        small = _op(g, compare.LESS, square, c)
        return plus(g, i, g.const(int32(1))), _op(g, SELECT_V2, small, _op(g, ADD, a, b), a), _op(g, SUB, b, square), c

    state = [((), _INT), *[((3, 11), _FLOAT)] * 3]
    feeds = [int32(0), *((_RNG.standard_normal((3, 11)) * 0.3).astype(np.float32) for _ in range(3))]
    _agrees(while_model(state, below(9), body), feeds, device)


_Body = Callable[[Graph, int], int]


def _scaled_tanh(g: Graph, x: int) -> int:
    return _op(g, unary.TANH, _op(g, ADD, _op(g, MUL, x, g.const(np.float32(0.9))), g.const(np.float32(0.1))))


def _bounded(g: Graph, x: int) -> int:
    """Activations of operators, and a tensor that broadcasts along rows."""
    width = g.tensors[x].static_shape[-1]
    less = _op(g, SUB, x, g.const(_vector(width)), activation=ActivationFunctionType.RELU6)
    scaled = _op(g, MUL, less, g.const(np.float32(0.7)), activation=ActivationFunctionType.RELU_N1_TO_1)
    return _op(g, ADD, scaled, g.const(_vector(width)), activation=ActivationFunctionType.TANH)


def _leaky(g: Graph, x: int) -> int:
    halved = _op(g, MUL, x, g.const(np.float32(-0.5)))
    return g.op(LEAKY_RELU, [_op(g, ADD, halved, g.const(np.float32(0.2)))], LeakyReluOptions(-0.3))


def _two_activations(g: Graph, x: int) -> int:
    more = _op(g, ADD, x, g.const(np.float32(0.3)), activation=ActivationFunctionType.RELU)
    return _op(g, unary.TANH, _op(g, MUL, _op(g, unary.EXP, _op(g, unary.NEG, more)), more))


def _vector(width: int) -> Array:
    return np.linspace(-1, 1, width, dtype=np.float32)


_CHAINS: dict[str, _Body] = {body.__name__: body for body in (_scaled_tanh, _bounded, _leaky, _two_activations)}


@pytest.mark.parametrize("shape", [(1,), (64,), (3, 11), (32, 32)], ids=str)
@pytest.mark.parametrize("name", _CHAINS)
@_DEVICES
def test_chains_in_loops(name: str, shape: tuple[int, ...], device: Any) -> None:
    """One pass over the elements in a loop; where they run once, the kernel that more models share. Bits are equal."""
    body = _CHAINS[name]
    g = Graph()
    x = g.input(shape)
    y = body(g, x)
    assert names(after(PASSES, g, y, is_inner=True)) == ["ELEMENTWISE"]
    if name != "_two_activations":
        assert "ELEMENTWISE" not in names(after(PASSES, g, y))
    state = [((), _INT), (shape, _FLOAT)]

    def iteration(g: Graph, values: Sequence[int]) -> Sequence[int]:
        return plus(g, values[0], g.const(int32(1))), body(g, values[1])

    feed = _feed(g, x, _RNG)
    feed.flat[: _SPECIAL.size] = _SPECIAL[: feed.size]
    _agrees(while_model(state, below(5), iteration), [int32(0), feed], device)
    with np.errstate(all="ignore"):
        (once,) = _run(model(g.build(y)), [feed], device)
    np.testing.assert_array_equal(_run(while_model(state, below(1), iteration), [int32(0), feed], device)[1], once)


def test_one_operator_in_a_loop_keeps_its_kernel() -> None:
    """And so do integers, and operators with an activation that no other one follows."""
    for inputs, ops in (((_FLOAT,), [unary.TANH]), ((_FLOAT, _FLOAT), [ADD]), ((_FLOAT, _FLOAT), [ADD, unary.TANH])):
        g = Graph()
        values = [g.input((8, 8), type_) for type_ in inputs]
        y = values[0]
        for op in ops:
            y = _op(g, op, y, *(values[1:] if op is ADD else ()))
        assert "ELEMENTWISE" not in names(after(PASSES, g, y, is_inner=True))
