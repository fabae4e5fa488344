"""The pass that makes residual additions and activations part of the producer before them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from litecl.delegate.cl_op import Activation
from litecl.delegate.plan.graph import NONE
from litecl.delegate.plan.passes.epilogues import epilogues
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import binary, unary
from litecl.interpreter.ops.control import CALL, CallOptions
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION, L2NormOptions
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D
from litecl.interpreter.schema import ActivationFunctionType
from support.nets import (
    DOMAINS,
    IMAGE,
    Net,
    Variant,
    conv,
    dense,
    depthwise,
    join,
    matmul,
    plus,
    pool,
    same,
    times,
    transposed,
)
from support.regions import UPDATE, after, names, text

RELU = ActivationFunctionType.RELU
_PRODUCTS = {"conv": conv(20, 3), "1x1": conv(20), "dense": dense(20), "matmul": matmul(20)}
_ACTIVATED_ONLY: dict[str, Variant] = {"depthwise": depthwise(1), "transposed": transposed(20)}
_FLOATS: dict[str, Variant] = {
    "pool": pool(AVERAGE_POOL_2D),
    "ADD": times,
    "L2_NORMALIZATION": same(L2_NORMALIZATION, L2NormOptions()),
}
_NO_PRODUCT: dict[str, Variant] = {"EXP": same(unary.EXP), "TANH": same(unary.TANH)}


def net(domain: str = "float") -> Net:
    return Net(DOMAINS[domain])


def like(g: Net, tensor: int) -> int:
    return g.x(g.shape(tensor))


@pytest.mark.parametrize("domain", ["float", "hybrid"])
@pytest.mark.parametrize("product", _PRODUCTS.values(), ids=_PRODUCTS)
@pytest.mark.parametrize("first", [True, False])
def test_a_residual_and_an_activation(product: Variant, domain: str, first: bool) -> None:
    """y = relu6(product + addend), whichever operand of the ADD the product is."""
    g = net(domain)
    made = product(g, g.x(IMAGE))
    addend = like(g, made)
    y = g.apply(unary.RELU6, [plus(g, *((made, addend) if first else (addend, made)))])
    (node,) = after([epilogues], g, y).nodes
    assert (node.residual, node.activation, node.outputs) == (addend, Activation(low=0, high=6), (y,))
    assert [part.node.op.name for part in node.fused] == ["ADD", "RELU6"]


@pytest.mark.parametrize("domain", ["float", "hybrid"])
@pytest.mark.parametrize("producer", _ACTIVATED_ONLY.values(), ids=_ACTIVATED_ONLY)
def test_an_activation_alone(producer: Variant, domain: str) -> None:
    g = net(domain)
    one, other = (producer(g, g.x(IMAGE)) for _ in range(2))
    graph = after([epilogues], g, g.apply(unary.TANH, [one]), plus(g, other, like(g, other)))
    assert len(graph.nodes) == 3
    assert [node.activation.function for node in graph.nodes[:2]] == ["TANH", "CLAMP"]
    assert graph.nodes[1].residual is None


@pytest.mark.parametrize("producer", _FLOATS.values(), ids=_FLOATS)
def test_an_activation_of_floats(producer: Variant) -> None:
    g = net()
    (node,) = after([epilogues], g, g.apply(unary.HARD_SWISH, [producer(g, g.x(IMAGE))])).nodes
    assert node.activation.function == "HARD_SWISH"


@pytest.mark.parametrize("producer", _NO_PRODUCT.values(), ids=_NO_PRODUCT)
def test_a_producer_that_cannot(producer: Variant) -> None:
    g = net()
    y = producer(g, g.x(IMAGE))
    assert len(after([epilogues], g, g.apply(unary.RELU, [plus(g, y, like(g, y))])).nodes) == 2


@pytest.mark.parametrize("domain", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("producer", [conv(20, 3), conv(20), dense(20), depthwise(1), transposed(20)])
def test_integers(producer: Variant, domain: str) -> None:
    """The nodes after them have other scales."""
    g = net(domain)
    made = producer(g, g.x(IMAGE))
    graph = after([epilogues], g, g.apply(unary.RELU6, [plus(g, made, like(g, made))]))
    assert len(graph.nodes) == 3
    assert all(node.residual is None and not node.fused for node in graph.nodes)


def activated_twice(g: Net, y: int) -> list[int]:
    return [g.apply(unary.TANH, [g.apply(unary.RELU, [y])])]


def activated_before(g: Net, y: int) -> list[int]:
    return [plus(g, g.apply(unary.RELU, [y]), like(g, y))]


def read_again(g: Net, y: int) -> list[int]:
    return [g.apply(unary.RELU, [y]), g.apply(unary.EXP, [y])]


def clamped_sum(g: Net, y: int) -> list[int]:
    """The sum brings an activation with it, so that the one after it stays."""
    total = g.apply(binary.ADD, [y, like(g, y)], binary.AddOptions(RELU))
    return [g.apply(unary.TANH, [total])]


def two_sums(g: Net, y: int) -> list[int]:
    return [plus(g, plus(g, y, like(g, y)), like(g, y))]


def swish(g: Net, y: int) -> list[int]:
    return [g.apply(binary.MUL, [g.apply(unary.LOGISTIC, [y]), y], binary.MulOptions())]


def clamped_swish(g: Net, y: int) -> list[int]:
    return [g.apply(binary.MUL, [y, g.apply(unary.LOGISTIC, [y])], binary.MulOptions(RELU))]


def sigmoid_kept(g: Net, y: int) -> list[int]:
    gate = g.apply(unary.LOGISTIC, [y])
    return [g.apply(binary.MUL, [y, gate], binary.MulOptions()), gate]


def gated_by_another(g: Net, y: int) -> list[int]:
    """The sigmoid of something else; y itself is read twice."""
    gate = g.apply(unary.LOGISTIC, [like(g, y)])
    return [g.apply(binary.MUL, [y, gate], binary.MulOptions()), g.apply(unary.LOGISTIC, [y])]


def doubled(g: Net, y: int) -> list[int]:
    return [plus(g, y, y)]


def broadcast(g: Net, y: int) -> list[int]:
    return [plus(g, y, g.x(g.shape(y)[-1:]))]


def wider(g: Net, y: int) -> list[int]:
    return [plus(g, y, g.x((3, *g.shape(y))))]


def later(g: Net, y: int) -> list[int]:
    """The addend is computed after the product."""
    return [plus(g, y, g.apply(unary.EXP, [like(g, y)]))]


def subtracted(g: Net, y: int) -> list[int]:
    return [g.apply(binary.SUB, [y, like(g, y)], binary.SubOptions())]


def called(g: Net, y: int) -> list[int]:
    return g.node(CALL, [y], [g.tensors[y]], CallOptions(1))


_AFTER: dict[str, tuple[Callable[[Net, int], list[int]], list[str]]] = {
    "an activation of an activation": (activated_twice, ["CONV_2D", "TANH"]),
    "a sum of an activation": (activated_before, ["CONV_2D", "ADD"]),
    "read again": (read_again, ["CONV_2D", "RELU", "EXP"]),
    "a sum with an activation": (clamped_sum, ["CONV_2D", "TANH"]),
    "two sums": (two_sums, ["CONV_2D", "ADD"]),
    "its sigmoid": (swish, ["CONV_2D"]),
    "its sigmoid, clamped": (clamped_swish, ["CONV_2D", "LOGISTIC", "MUL"]),
    "its sigmoid, kept": (sigmoid_kept, ["CONV_2D", "LOGISTIC", "MUL"]),
    "another sigmoid": (gated_by_another, ["CONV_2D", "LOGISTIC", "MUL", "LOGISTIC"]),
    "itself": (doubled, ["CONV_2D", "ADD"]),
    "a bias of its own": (broadcast, ["CONV_2D", "ADD"]),
    "a larger tensor": (wider, ["CONV_2D", "ADD"]),
    "a later tensor": (later, ["CONV_2D", "EXP", "ADD"]),
    "a difference": (subtracted, ["CONV_2D", "SUB"]),
    "a call": (called, ["CONV_2D", "CALL"]),
}


@pytest.mark.parametrize(("build", "left"), _AFTER.values(), ids=_AFTER)
def test_what_follows(build: Callable[[Net, int], list[int]], left: list[str]) -> None:
    g = net()
    assert names(after([epilogues], g, *build(g, conv(20)(g, g.x(IMAGE))))) == left


def test_results_of_the_region() -> None:
    """A tensor that is read after the region is computed unchanged."""
    g = net()
    y = conv(20)(g, g.x(IMAGE))
    total = plus(g, y, like(g, y))
    z = g.apply(unary.RELU, [total])
    assert names(after([epilogues], g, z, y)) == ["CONV_2D", "ADD"]
    (node,) = after([epilogues], g, total).nodes[:1]
    assert (node.outputs, node.activation) == ((total,), NONE)


def test_an_option_counts_as_an_activation() -> None:
    g = net()
    y = conv(20)(g, g.x(IMAGE))
    g.nodes[-1] = replace(g.nodes[-1], options=replace(g.nodes[-1].options, fused_activation_function=RELU))
    product, total = text(after([epilogues], g, g.apply(unary.TANH, [plus(g, y, like(g, y))]))).splitlines()
    assert product.endswith("CONV_2D(%0, constant[20,1,1,8], constant[20]), CLAMP 0 to inf, #0")
    assert total.endswith("ADD(%3, %4), TANH, #1 #2")  # a producer of its own


def test_an_addend_that_is_updated() -> None:
    """The sum may come before the update or after it, the product always before."""
    g = net()
    y = conv(20)(g, g.x(IMAGE))
    state = g.variable(g.shape(y))
    total = plus(g, y, state)
    assert names(after([epilogues], g, total)) == ["CONV_2D"]
    g.op(UPDATE, [like(g, y), state], NoOptions())
    assert names(after([epilogues], g, total)) == ["CONV_2D", "ADD", "UPDATE"]


@pytest.mark.parametrize(("channels", "left"), [(32, ["CONV_2D", "CONV_2D", "ADD"]), (20, ["CONV_2D", "CONV_2D"])])
def test_an_addend_in_rows(channels: int, left: list[str]) -> None:
    """An addend that is to lie in rows of a concatenation stays there, for no product reads rows; others are copied."""
    g = net()
    addend, y = (conv(channels)(g, g.x(IMAGE)) for _ in range(2))
    total = plus(g, y, addend)
    assert names(after([epilogues], g, total, join(g, addend, g.x(IMAGE))))[: len(left)] == left
