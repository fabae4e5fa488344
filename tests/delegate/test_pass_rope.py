"""The pass that finds rotary position embeddings, and the kernel that computes them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.gpu.pipeline import GPU_PASSES
from litecl.delegate.ops.rope import RopeOptions
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, SUB, MulOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.unary import ABS, NEG
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from support import devices
from support.build import model, randn
from support.loop_models import outputs, prepared
from support.regions import after, names
from support.rope_nets import FORMS, Rotated, rotate

TURN = (0, 2, 1, 3)  # of words and heads


def computed(r: Rotated, y: int, feeds: Sequence[Array], **options: Any) -> Array:
    interpreter = prepared(model(r.graph.build(y)), feeds, [CLDelegate(**{"strict": True, **options})])
    assert "rope" in interpreter.delegation_report().partitions[0].kernels
    outputs(interpreter)
    return outputs(interpreter)[0]


def feeds_of(r: Rotated) -> list[Array]:
    rng = np.random.default_rng(7)
    return [randn(rng, *r.graph.tensors[t].static_shape) for t in r.graph.inputs]


@pytest.mark.parametrize("passes", [PASSES, GPU_PASSES])
@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str, passes: Any) -> None:
    r = Rotated()
    y = FORMS[name](r)
    (node,) = after(passes, r.graph, y).nodes
    assert (node.node.op.name, node.inputs, node.outputs) == ("ROPE", tuple(r.graph.inputs), (y,))
    assert len(node.fused) == len(r.graph.nodes) - 1


@pytest.mark.parametrize("shape", [(2, 5, 3, 12), (1, 1, 4, 32), (1, 7, 1, 2), (2, 3, 3, 74)])
@pytest.mark.parametrize("name", FORMS)
def test_numbers(name: str, shape: tuple[int, ...], gpu: dict[str, Any]) -> None:
    """Rows narrower and wider than vectors; one word, or one head."""
    r = Rotated(shape)
    y = FORMS[name](r) if name != "split" else r.product(r.split(r.x), r.turns(r.half, (1, 1, shape[2])))
    feeds = feeds_of(r)
    for options in ({}, gpu):
        np.testing.assert_allclose(computed(r, y, feeds, **options), rotate(*feeds), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("device", devices.tested(), ids=devices.named)
def test_by_opencl(device: Any) -> None:
    r = Rotated((2, 5, 3, 34))
    y = FORMS["sum"](r)
    feeds = feeds_of(r)
    np.testing.assert_allclose(computed(r, y, feeds, device=device), rotate(*feeds), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("type_", [TensorType.INT32, TensorType.INT64])
@pytest.mark.parametrize("shape", [(1, 4, 5, 12), (1, 6, 1, 34), (1, 4, 1, 8)])
def test_angles_transposes_and_a_scale(shape: tuple[int, ...], type_: TensorType, gpu: dict[str, Any]) -> None:
    """Words of heads in and out, as attention takes them; positions that are far, 0 and negative."""
    batch, heads, words, width = shape
    r = Rotated((batch, words, heads, width))
    r.graph.tensors[r.x] = replace(r.graph.tensors[r.x], shape=shape)
    rotated = r.product(r.halves(r.transposed(r.x, TURN)), r.angles(type_))
    y = r.negative(r.reshaped(r.transposed(rotated, TURN), (batch, 1, heads * words, width)), 0.3)
    assert names(after(PASSES, r.graph, y)) == ["RESHAPE", "ROPE"]  # of positions, which costs nothing
    positions = np.array([0, 1, 131071, -3, 7, 65537][:words], type_.dtype)
    x = randn(np.random.default_rng(2), *shape)
    frequencies = (10000.0 ** (-np.arange(width // 2) / (width // 2))).astype(np.float32)
    angles = (positions.astype(np.float32)[:, None] * frequencies).astype(np.float64)
    expected = 0.3 * rotate(x, np.cos(angles), np.sin(angles)).reshape(batch, 1, heads * words, width)
    for options in ({}, gpu):
        np.testing.assert_allclose(computed(r, y, [x, positions], **options), expected, rtol=1e-4, atol=5e-6)


def _added(r: Rotated) -> int:
    (a, b), (c, s) = r.halves(r.x), r.turns(r.half)
    real = r.of(ADD, r.of(MUL, a, c), r.of(MUL, b, s))
    return r.joined(real, r.of(ADD, r.of(MUL, b, c), r.of(MUL, a, s)))


def _exchanged(r: Rotated) -> int:
    (a, b), (c, s) = r.halves(r.x), r.turns(r.half)
    imaginary = r.of(ADD, r.of(MUL, b, c), r.of(MUL, a, s))
    return r.joined(imaginary, r.of(SUB, r.of(MUL, a, c), r.of(MUL, b, s)))


def _backwards(r: Rotated) -> int:
    a, b = r.halves(r.x)
    return r.product((b, a), r.turns(r.half))


def _along_another_axis(r: Rotated) -> int:
    (a, b), (c, s) = r.halves(r.x), r.turns(r.half)
    real = r.of(SUB, r.of(MUL, a, c), r.of(MUL, b, s))
    return r.joined(real, r.of(ADD, r.of(MUL, b, c), r.of(MUL, a, s)), axis=2)


def _of_two(r: Rotated) -> int:
    other = r.graph.input(r.shape)
    return r.product((r.sliced(r.x, 0, r.half), r.sliced(other, r.half, r.half)), r.turns(r.half))


def _not_halves(r: Rotated) -> int:
    return r.product((r.sliced(r.x, 0, r.half), r.sliced(r.x, r.half - 1, r.half)), r.turns(r.half))


def _narrow(r: Rotated) -> int:
    return r.product(r.halves(r.x), r.turns(1))


def _times_something_else(r: Rotated) -> int:
    return r.sum(r.x, lambda b: r.negative(b, -1.00001), r.turns(r.shape[-1]))


def _plus_something_else(r: Rotated) -> int:
    a, b = r.halves(r.x)
    c, s = r.turns(r.shape[-1])
    turned = r.of(MUL, r.joined(r.of(NEG, b), a), s)
    return r.of(ADD, r.of(MUL, r.graph.input(r.shape), c), turned)


def _clamped(r: Rotated) -> int:
    (a, b), (c, s) = r.halves(r.x), r.turns(r.half)
    relu = MulOptions(ActivationFunctionType.RELU)
    real = r.of(SUB, r.graph.op(MUL, [a, c], relu), r.of(MUL, b, s))
    return r.joined(real, r.of(ADD, r.of(MUL, b, c), r.of(MUL, a, s)))


_NONE: dict[str, Callable[[Rotated], int]] = {
    "added": _added,
    "exchanged": _exchanged,
    "backwards": _backwards,
    "along another axis": _along_another_axis,
    "of two": _of_two,
    "not halves": _not_halves,
    "narrow": _narrow,
    "times something else": _times_something_else,
    "plus something else": _plus_something_else,
    "clamped": _clamped,
}


@pytest.mark.parametrize("name", _NONE)
def test_what_is_none(name: str) -> None:
    """Signs, halves or shapes of something else: a composite may be called a rotation and be none."""
    r = Rotated((2, 5, 3, 12))
    assert "ROPE" not in names(after(PASSES, r.graph, _NONE[name](r)))


def test_sine_and_cosine_of_different_angles() -> None:
    """Their functions stay nodes: only the rotation is one."""
    r = Rotated((1, 5, 3, 12))
    (c, _), (_, s) = r.angles(), r.angles(frequencies=np.arange(1.0, 7.0))
    found = names(after(PASSES, r.graph, r.product(r.halves(r.x), (c, s))))
    assert {"COS", "SIN", "ROPE"} <= {*found}


def test_angles_that_something_else_reads() -> None:
    r = Rotated((1, 5, 3, 12))
    c, s = r.angles()
    graph = after(PASSES, r.graph, r.product(r.halves(r.x), (c, s)), r.of(ABS, c))
    (node,) = (node for node in graph.nodes if node.node.op.name == "ROPE")
    options: RopeOptions = node.node.options
    assert not options.angles and {"COS", "SIN"} <= {*names(graph)}


def test_rows_that_are_overwritten_meanwhile() -> None:
    """Halves are copies, older than the content of the rows' memory when the last node runs."""
    r = Rotated((1, 5, 3, 12))
    g = r.graph
    a, b = r.halves(r.x)
    new, at = g.input((1, 1, 3, 12)), g.const(np.zeros(4, np.int32))
    updated = g.op(DYNAMIC_UPDATE_SLICE, [r.x, new, at], NoOptions())
    y = r.product((a, b), r.turns(r.half))
    graph = after(PASSES, g, y, updated, owned=[r.x])
    assert "DYNAMIC_UPDATE_SLICE" in names(graph)
    assert "ROPE" not in names(graph)
