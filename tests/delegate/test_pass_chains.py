"""The pass that turns consecutive element-wise nodes into one launch."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from litecl import kernels_cl
from litecl.delegate.cl_op import Operand
from litecl.delegate.ops import binary as delegate_binary
from litecl.delegate.ops import chain_steps
from litecl.delegate.ops import unary as delegate_unary
from litecl.delegate.ops.chain import OPERANDS, step_of
from litecl.delegate.plan.passes.chains import chains
from litecl.delegate.plan.passes.epilogues import epilogues
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import binary, unary
from litecl.interpreter.ops.control import CALL, CallOptions
from litecl.interpreter.ops.prelu import PRELU
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from support.nets import DOMAINS, IMAGE, Net, conv, plus, times
from support.regions import UPDATE, after, names, text

RELU = ActivationFunctionType.RELU
KERNELS = Path(kernels_cl.__file__).parent


def net(domain: str = "float") -> Net:
    return Net(DOMAINS[domain])


def mul(g: Net, a: int, b: int, activation: ActivationFunctionType = ActivationFunctionType.NONE) -> int:
    return g.apply(binary.MUL, [a, b], binary.MulOptions(activation))


def sub(g: Net, a: int, b: int) -> int:
    return g.apply(binary.SUB, [a, b], binary.SubOptions())


def exp(g: Net, x: int) -> int:
    return g.apply(unary.EXP, [x])


def swish(g: Net, x: int) -> int:
    return mul(g, x, g.apply(unary.LOGISTIC, [x]))


def test_steps() -> None:
    """The kernel's arguments: operators in order, other operands, activations."""
    g = net()
    x, other, half = g.x(IMAGE), g.x(IMAGE), g.const(np.float32(0.5))
    y = sub(g, other, mul(g, x, half, RELU))
    graph = after([epilogues, chains], g, g.apply(unary.RELU6, [exp(g, y)]))
    steps = "MUL 0.5 CLAMP 0 to inf, SUB_FROM %1, EXP, CLAMP 0 to 6"
    assert text(graph) == f"%6:float32[2,6,5,8] = chain(%0), {steps}, #0 #1 #2 #3"


def test_what_chains_is_a_step() -> None:
    """An operator says that it chains if and only if the kernel has its step, and every step has its code there."""
    source = (KERNELS / "chain.cl").read_text()
    steps = re.findall(r"^    STEP\((\w+),", source, re.MULTILINE)
    assert (*steps[:12], *chain_steps.FUNCTIONS, *steps[12:]) == tuple(chain_steps.StepCode.__members__)
    assert (*steps[:12], *steps[12:]) == (*chain_steps.WITH_OPERAND, *chain_steps.ACTIVATIONS)
    chained = {cl_op.op.name for cl_op in (*delegate_unary.CL_OPS, *delegate_binary.CL_OPS) if cl_op.chains}
    reversed_ = {step_of(name, 1) for name in chained} - {None}
    assert chained | reversed_ == {*chain_steps.WITH_OPERAND, *chain_steps.FUNCTIONS}
    assert not chained & {"SIN", "COS", "CEIL", "FLOOR", "ROUND", "SIGN", "POW", "EQUAL"}


_ONE: dict[str, tuple[Callable[[Net, int], int], str]] = {
    "of two": (lambda g, x: exp(g, times(g, x)), "MUL EXP"),
    "the second operand": (lambda g, x: exp(g, sub(g, g.known(g.shape(x)), x)), "SUB EXP"),
    "the smaller first": (lambda g, x: exp(g, sub(g, g.known((1,)), x)), "SUB_FROM EXP"),
    "itself again": (lambda g, x: mul(g, exp(g, x), x), "EXP MUL"),
    "squared": (lambda g, x: mul(g, y := exp(g, x), y), ""),
    "a sigmoid": (lambda g, x: swish(g, exp(g, x)), "EXP SWISH"),
    "a sigmoid, clamped after": (lambda g, x: g.apply(unary.RELU, [swish(g, exp(g, x))]), "EXP SWISH CLAMP"),
    "a sigmoid of what is fed": (swish, "LOGISTIC MUL"),
    "clamps that a launch takes along": (
        lambda g, x: exp(g, g.apply(unary.RELU, [times(g, x)])),
        "MUL EXP",
    ),
    "clamps that a launch does not": (
        lambda g, x: g.apply(unary.RELU, [g.apply(binary.MAXIMUM, [x, g.known((8,))])]),
        "MAXIMUM",
    ),
    "PRELU": (lambda g, x: exp(g, g.op(PRELU, [x, g.known((1, 1, 8))], NoOptions())), "PRELU EXP"),
}


@pytest.mark.parametrize(("build", "steps"), _ONE.values(), ids=_ONE)
def test_chains(build: Callable[[Net, int], int], steps: str) -> None:
    g = net()
    graph = after([epilogues, chains], g, build(g, g.x(IMAGE)))
    assert names(graph) == ([steps] if steps else ["EXP", "MUL"])


def alone(g: Net, x: int) -> int:
    """A launch takes its activation along, so that a chain would save nothing."""
    return g.apply(unary.RELU, [times(g, x)])


def with_a_product(g: Net, x: int) -> int:
    return times(g, conv(8)(g, exp(g, x)))


def grown(g: Net, x: int) -> int:
    """The result is larger than the value so far."""
    return mul(g, exp(g, x), g.known((3, *IMAGE)))


def compared(g: Net, x: int) -> int:
    return g.apply(binary.FLOOR_DIV, [exp(g, x), g.known((8,))])


_NONE: dict[str, tuple[Callable[[Net, int], int], list[str]]] = {
    "one launch": (alone, ["MUL"]),
    "a product between": (with_a_product, ["EXP", "CONV_2D", "MUL"]),
    "a larger result": (grown, ["EXP", "MUL"]),
    "no step of the kernel": (compared, ["EXP", "FLOOR_DIV"]),
    "a call": (lambda g, x: g.node(CALL, [y := exp(g, x)], [g.tensors[y]], CallOptions(1))[0], ["EXP", "CALL"]),
}


@pytest.mark.parametrize(("build", "left"), _NONE.values(), ids=_NONE)
def test_no_chain(build: Callable[[Net, int], int], left: list[str]) -> None:
    g = net()
    assert names(after([epilogues, chains], g, build(g, g.x(IMAGE)))) == left


@pytest.mark.parametrize("domain", ["int8", "uint8", "int16"])
def test_integers(domain: str) -> None:
    g = net(domain)
    assert names(after([chains], g, plus(g, times(g, g.x(IMAGE)), g.x(IMAGE)))) == ["MUL", "ADD"]


def test_whole_numbers() -> None:
    """The kernel computes in floats."""
    g = net()
    x = g.input(IMAGE, TensorType.INT32)
    y = g.op(binary.ADD, [x, g.const(np.int32(1))], binary.AddOptions())
    assert names(after([chains], g, g.op(binary.MUL, [y, y], binary.MulOptions()))) == ["ADD", "MUL"]


def test_read_by_others() -> None:
    """A result that somebody else reads, or that is kept, ends a chain."""
    g = net()
    y = exp(g, times(g, g.x(IMAGE)))
    two = [times(g, exp(g, y)), exp(g, times(g, y))]
    assert names(after([chains], g, *two)) == ["MUL EXP", "EXP MUL", "MUL EXP"]
    assert names(after([chains], g, two[0], two[1], y)) == ["MUL EXP", "EXP MUL", "MUL EXP"]
    g = net()
    y = times(g, g.x(IMAGE))
    z = exp(g, y)
    assert names(after([chains], g, z)) == ["MUL EXP"]
    assert names(after([chains], g, z, y)) == ["MUL", "EXP"]


def test_an_operand_that_is_not_there() -> None:
    """A chain runs where its first node does, and can read nothing that is computed later."""
    g = net()
    x, other = g.x(IMAGE), g.x(IMAGE)
    y = exp(g, x)
    late = conv(8)(g, other)
    assert names(after([chains], g, mul(g, y, late))) == ["EXP", "CONV_2D", "MUL"]
    g = net()
    late = conv(8)(g, g.x(IMAGE))
    assert names(after([chains], g, mul(g, exp(g, g.x(IMAGE)), late))) == ["CONV_2D", "EXP MUL"]


def test_an_operand_that_a_producer_computes_at_its_end() -> None:
    """The activation stands behind the chain's first node, but is computed with the product before it."""
    g = net()
    product = conv(8)(g, g.x(IMAGE))
    y = exp(g, g.x(IMAGE))
    activated = g.apply(unary.RELU, [product])
    assert names(after([epilogues, chains], g, mul(g, y, activated))) == ["CONV_2D", "EXP MUL"]


def test_an_operand_that_is_updated() -> None:
    g = net()
    state = g.variable(IMAGE)
    y = mul(g, exp(g, g.x(IMAGE)), state)
    assert names(after([chains], g, y)) == ["EXP MUL"]
    g.op(UPDATE, [g.x(IMAGE), state], NoOptions())
    assert names(after([chains], g, y)) == ["EXP", "MUL", "UPDATE"]


def test_as_many_operands_as_the_kernel_takes() -> None:
    """Numbers that are known take none, and one array counts once."""
    g = net()
    y = repeated = g.x(IMAGE)
    for _ in range(OPERANDS + 2):
        y = plus(g, mul(g, plus(g, y, g.x(IMAGE)), g.const(np.float32(2))), repeated)
    steps = [len(name.split()) for name in names(after([chains], g, y))]
    assert sum(steps) == 3 * (OPERANDS + 2)
    arrays = [len({s.tensor for s in node.steps} & set(g.inputs)) for node in after([chains], g, y).nodes]
    assert arrays == [OPERANDS, OPERANDS]  # the one that repeats is in both


def test_a_number_that_is_given() -> None:
    """A loop's variable that no iteration changes may begin with a constant, which is known then."""
    g = net()
    numbers = [g.input(()) for _ in range(OPERANDS + 1)]
    y = g.x(IMAGE)
    for number in numbers:
        y = plus(g, y, number)
    assert len(after([chains], g, y).nodes) == 2
    known = {t: Operand(TensorSpec(TensorType.FLOAT32, (), data=np.array(1, np.float32))) for t in numbers}
    assert len(after([chains], g, y, given=known).nodes) == 1


def test_only_where_two_launches_become_one() -> None:
    """A node that another chain has taken in begins none."""
    g = net()
    y = g.x(IMAGE)
    for _ in range(3):
        y = exp(g, y)
    graph = after([chains], g, y)
    assert names(graph) == ["EXP EXP EXP"]
    assert names(chains(graph)) == ["EXP EXP EXP"]
