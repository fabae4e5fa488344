"""Shapes, slices, indices, borders and windows at random, against ai_edge_litert's reference kernels."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from litecl.cases import Case
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Shape
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import binary, gather, pad, pool_2d
from litecl.interpreter.ops.broadcast_to import BROADCAST_TO
from litecl.interpreter.ops.fill import RANGE
from litecl.interpreter.ops.select import SELECT_V2
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.schema import MirrorPadMode, Padding
from support import compare, oracle

few = settings(
    max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)
shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def _values(shape: Shape, seed: int = 0) -> Array:
    return np.random.default_rng([len(shape), seed, *shape]).standard_normal(shape).astype(np.float32)


def _agrees(case: Case, exactly: bool = False) -> None:
    content = write(case.model())
    interpreter = Interpreter(content)
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), case.feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    got = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    for a, b in zip(got, oracle.run(content, case.feeds), strict=True):
        compare.assert_close(a, b, 0.0 if exactly else 1e-5)


@st.composite
def _broadcastable(draw: st.DrawFn, count: int) -> tuple[Shape, ...]:
    """Shapes that broadcast to one of at most four dimensions."""
    full = draw(shapes)
    found = []
    for _ in range(count):
        rank = draw(st.integers(0, len(full)))
        ones = draw(st.lists(st.booleans(), min_size=rank, max_size=rank))
        kept = full[len(full) - rank :]
        found.append(tuple(1 if one else size for one, size in zip(ones, kept, strict=True)))
    return tuple(found)


@few
@given(_broadcastable(2))
def test_arithmetic_broadcasts(found: tuple[Shape, ...]) -> None:
    a, b = (_values(shape, i) for i, shape in enumerate(found))
    _agrees(Case("case", binary.ADD, binary.AddOptions(), [a, b]))
    _agrees(Case("case", binary.MAXIMUM, NoOptions(), [a, b]))


@few
@given(_broadcastable(3))
def test_a_choice_broadcasts(found: tuple[Shape, ...]) -> None:
    condition, a, b = (_values(shape, i) for i, shape in enumerate(found))
    _agrees(Case("case", SELECT_V2, NoOptions(), [condition > 0, a, b]))


@few
@given(shapes, st.data())
def test_broadcasting_to_a_shape(shape: Shape, data: st.DataObject) -> None:
    ones = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    x = _values(tuple(1 if one else size for one, size in zip(ones, shape, strict=True)))
    _agrees(Case("case", BROADCAST_TO, NoOptions(), [x, np.array(shape, np.int32)], frozenset({1}), version=2))


@few
@given(shapes, st.data())
def test_slices(shape: Shape, data: st.DataObject) -> None:
    begin = [data.draw(st.integers(0, size - 1)) for size in shape]
    sizes = [data.draw(st.one_of(st.just(-1), st.integers(1, n - b))) for n, b in zip(shape, begin, strict=True)]
    inputs = [_values(shape), np.array(begin, np.int32), np.array(sizes, np.int32)]
    _agrees(Case("case", SLICE, NoOptions(), inputs, frozenset({1, 2})))


@few
@given(shapes, st.data())
def test_strided_slices(shape: Shape, data: st.DataObject) -> None:
    bounds = [data.draw(st.tuples(st.integers(-6, 6), st.integers(-6, 6))) for _ in shape]
    strides = [data.draw(st.sampled_from([1, 2, 3, -1, -2])) for _ in shape]
    masks = {name: data.draw(st.integers(0, 2 ** len(shape) - 1)) for name in ("begin_mask", "end_mask")}
    operands = [np.array([b for b, _ in bounds]), np.array([e for _, e in bounds]), np.array(strides)]
    inputs = [_values(shape), *(operand.astype(np.int32) for operand in operands)]
    _agrees(Case("case", STRIDED_SLICE, StridedSliceOptions(**masks), inputs, frozenset({1, 2, 3})))


@few
@given(shapes, shapes, st.data())
def test_gathering(shape: Shape, wanted: Shape, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    batch = data.draw(st.integers(0, min(axis, len(wanted) - 1)))
    places = np.random.default_rng(len(wanted)).integers(0, shape[axis], (*shape[:batch], *wanted[batch:]))
    given_axis = axis - data.draw(st.sampled_from([0, len(shape)]))
    options = gather.GatherOptions(given_axis, batch)
    _agrees(Case("case", gather.GATHER, options, [_values(shape), places.astype(np.int32)]))


@few
@given(shapes, shapes, st.data())
def test_gathering_by_vectors(shape: Shape, outer: Shape, data: st.DataObject) -> None:
    depth = data.draw(st.integers(1, len(shape)))
    rng = np.random.default_rng(depth)
    places = np.stack([rng.integers(0, size, outer[:2]) for size in shape[:depth]], axis=-1)
    _agrees(Case("case", gather.GATHER_ND, NoOptions(), [_values(shape), places.astype(np.int32)]))


@few
@given(shapes, st.data())
def test_borders(shape: Shape, data: st.DataObject) -> None:
    x = _values(shape)
    borders = [data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3))) for _ in shape]
    paddings = np.array(borders, np.int32)
    value = np.array(1.5, np.float32)
    _agrees(Case("case", pad.PAD, NoOptions(), [x, paddings], frozenset({1})))
    _agrees(Case("case", pad.PADV2, NoOptions(), [x, paddings, value], frozenset({1})))
    mode = data.draw(st.sampled_from(MirrorPadMode))
    inset = 1 if mode == MirrorPadMode.REFLECT else 0
    mirrored = np.minimum(paddings, np.array(shape)[:, None] - inset).astype(np.int32)
    _agrees(Case("case", pad.MIRROR_PAD, pad.MirrorPadOptions(mode), [x, mirrored], frozenset({1})))


@pytest.mark.parametrize(
    "op", [pool_2d.AVERAGE_POOL_2D, pool_2d.MAX_POOL_2D, pool_2d.L2_POOL_2D], ids=lambda op: op.name
)
@few
@given(
    st.tuples(st.integers(1, 2), st.integers(3, 7), st.integers(3, 7), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from(Padding),
)
def test_pooling(op: Any, shape: Shape, size: Shape, stride: Shape, padding: Padding) -> None:
    options = pool_2d.Pool2DOptions(padding, stride[1], stride[0], size[1], size[0])
    _agrees(Case("case", op, options, [_values(shape)]))


_numbers = st.floats(-1e4, 1e4, width=32)


@settings(few, max_examples=200)
@given(_numbers, st.floats(-200, 200, width=32), st.floats(0.125, 50, width=32), st.sampled_from([1.0, 0.1, 0.01]))
def test_a_range_counts_and_adds_up_in_float32(start: float, steps: float, delta: float, unit: float) -> None:
    first, step = np.float32(start * unit), np.float32(delta * unit)
    limit = np.float32(first + step * np.float32(steps))
    step = step if limit >= first else -step
    assume(limit != first)  # LiteRT's interpreter in Python has no value for an empty result
    _agrees(Case("case", RANGE, NoOptions(), [np.asarray(v) for v in (first, limit, step)]), exactly=True)
