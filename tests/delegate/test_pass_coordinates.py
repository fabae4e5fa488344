"""The pass that lets updates read the one coordinate of their position that is not known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.gpu.pipeline import GPU_PASSES
from litecl.delegate.ops.slice import UpdateOptions
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.pack import PACK, PackOptions
from litecl.interpreter.schema import TensorType
from support import oracle
from support.build import Graph, model, randn
from support.loop_models import FLOAT, INT, below, int32, next_, outputs, prepared, while_model
from support.loop_models import check as loop_check
from support.regions import after, names

CACHE, NEW = (2, 3, 9, 4), (2, 3, 2, 4)


@dataclass
class Updated:
    """A cache that is updated at a position, and the number in it."""

    graph: Graph
    at: int
    y: int


def updated(
    starts: Sequence[int | None] = (0, 0, None, 0),
    *,
    packed: bool = False,
    new: tuple[int, ...] = NEW,
    type_: TensorType = INT,
) -> Updated:
    g = Graph()
    cache, update = g.input(CACHE), g.input(new)
    at = g.input(() if packed else (1,), type_)
    numbers = [at if s is None else g.const(np.full(() if packed else (1,), s, type_.dtype)) for s in starts]
    joined = (PACK, PackOptions(4, 0)) if packed else (CONCATENATION, ConcatenationOptions(0))
    position = g.op(joined[0], numbers, joined[1])
    return Updated(g, at, g.op(DYNAMIC_UPDATE_SLICE, [cache, update, position], NoOptions()))


def run(u: Updated, feeds: Sequence[Array], kernels: Sequence[str] = (), **options: Any) -> tuple[Array, Array]:
    """Return the outputs of a device and of LiteRT."""
    interpreter = prepared(model(u.graph.build(u.y)), feeds, [CLDelegate(**{"strict": True, **options})])
    assert not kernels or interpreter.delegation_report().partitions[0].kernels == tuple(kernels)
    (expected,) = oracle.run(write(model(u.graph.build(u.y))), feeds)
    return outputs(interpreter)[0], expected


@pytest.mark.parametrize("passes", [PASSES, GPU_PASSES])
@pytest.mark.parametrize("packed", [False, True])
def test_one_coordinate(packed: bool, passes: Any) -> None:
    u = updated(packed=packed)
    (node,) = after(passes, u.graph, u.y).nodes
    assert (node.node.op.name, node.inputs[2]) == ("UPDATE_ALONG", u.at)
    options: UpdateOptions = node.node.options
    assert options.starts == (0, 0, None, 0)


@pytest.mark.parametrize("at", [0, 3, 7, 8, 100, -1, -100, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("packed", [False, True])
def test_positions_at_the_edges_and_beyond(at: int, packed: bool) -> None:
    """The last place, and those that a position beyond is moved to."""
    u, rng = updated(packed=packed), np.random.default_rng(1)
    feeds = [randn(rng, *CACHE), randn(rng, *NEW), np.full(() if packed else (1,), at, np.int32)]
    np.testing.assert_array_equal(*run(u, feeds))


@pytest.mark.parametrize("at", [0, 3, 7, 100, -1])
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_one_launch_on_a_gpu(axis: int, at: int, gpu: dict[str, Any]) -> None:
    starts, new = [0, 0, 0, 0], [*CACHE]
    new[axis] = 1 + axis % 2
    u, rng = updated([None if i == axis else s for i, s in enumerate(starts)], new=tuple(new)), np.random.default_rng(7)
    feeds = [randn(rng, *CACHE), randn(rng, *new), np.array([at], np.int32)]
    np.testing.assert_array_equal(*run(u, feeds, ["update"], **gpu))


@pytest.mark.parametrize("starts", [(None, 2, 5, 0), (1, None, 50, -3), (0, 0, 3, None), (0, -7, None, 2)])
def test_constants_that_are_not_0(starts: tuple[int | None, ...]) -> None:
    u, rng = updated(starts, new=(1, 2, 2, 3)), np.random.default_rng(2)
    for at in (-5, 0, 1, 9):
        feeds = [randn(rng, *CACHE), randn(rng, 1, 2, 2, 3), np.array([at], np.int32)]
        np.testing.assert_array_equal(*run(u, feeds))


def test_all_of_the_axis() -> None:
    """There is one place for it, whatever the position is."""
    u, rng = updated(new=(2, 3, 9, 4)), np.random.default_rng(3)
    feeds = [randn(rng, *CACHE), randn(rng, 2, 3, 9, 4), np.array([4], np.int32)]
    np.testing.assert_array_equal(*run(u, feeds))


def test_wide_positions() -> None:
    u, rng = updated(type_=TensorType.INT64), np.random.default_rng(4)
    feeds = [randn(rng, *CACHE), randn(rng, *NEW), np.array([2**40], np.int64)]
    np.testing.assert_array_equal(*run(u, feeds))


def test_several_coordinates_stay_a_position() -> None:
    u = updated((0, None, None, 0))
    assert names(after(PASSES, u.graph, u.y)) == ["CONCATENATION", "DYNAMIC_UPDATE_SLICE"]


def test_a_position_that_something_else_reads_stays() -> None:
    u = updated()
    position = u.graph.nodes[0].outputs[0]
    other = u.graph.op(ADD, [position, position], AddOptions())
    assert names(after(PASSES, u.graph, u.y, other)) == ["CONCATENATION", "UPDATE_ALONG", "ADD"]


def test_in_place_in_a_loop() -> None:
    """Each iteration writes a row behind the last one's into the same memory."""

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        position = g.op(PACK, [x[0], g.const(int32(0))], PackOptions(2, 0))
        row = g.op(ADD, [x[2], x[2]], AddOptions())
        return [next_(g, x[0]), g.op(DYNAMIC_UPDATE_SLICE, [x[1], row, position], NoOptions()), row]

    looped = while_model([((), INT), ((5, 4), FLOAT), ((1, 4), FLOAT)], below(7), body)
    row = randn(np.random.default_rng(5), 1, 4)
    expected = np.concatenate([row * 2.0**i for i in (1, 2, 3, 4, 7)]).astype(np.float32)
    loop_check(looped, [int32(0), np.zeros((5, 4), np.float32), row], [int32(7), expected, row * np.float32(128)])
