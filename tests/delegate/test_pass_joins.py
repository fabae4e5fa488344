"""The pass that finds tensors their places within the results of nodes that join them."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from litecl.delegate.cl_op import Operand
from litecl.delegate.plan.graph import Place, RegionGraph
from litecl.delegate.plan.passes.chains import chains
from litecl.delegate.plan.passes.epilogues import epilogues
from litecl.delegate.plan.passes.in_place import in_place
from litecl.delegate.plan.passes.joins import joins
from litecl.delegate.plan.passes.pads import pads
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import binary, unary
from litecl.interpreter.ops.control import CALL, CallOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.pack import PACK, PackOptions
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from support.nets import DOMAINS, Net, Variant, by, conv, join, plus, pool, times
from support.regions import ALIGNMENT, after

IMAGE = (1, 4, 4, 32)
PASSES = (pads, epilogues, chains, joins)


def net(domain: str = "float") -> Net:
    return Net(DOMAINS[domain])


def places(g: Net, *outputs: int, passes: Sequence[Callable[[RegionGraph], RegionGraph]] = PASSES) -> dict[int, Place]:
    return dict(after(passes, g, *outputs).places)


def made(g: Net) -> int:
    """Return the result of a node that can write rows."""
    return conv(32)(g, g.x(IMAGE))


def exp(g: Net, x: int) -> int:
    return g.apply(unary.EXP, [x])


def reshaped(g: Net, x: int, *shape: int) -> int:
    return g.op(RESHAPE, [x, g.const(np.array(shape, np.int32))], ReshapeOptions(shape))


def test_rows() -> None:
    """Joined channels: every part lies in rows of the result."""
    g = net()
    a, b = made(g), made(g)
    whole = join(g, a, b)
    assert places(g, whole) == {a: Place(whole, 0, 64), b: Place(whole, 128, 64)}


def test_one_piece() -> None:
    """Joined images, whatever writes and reads them."""
    g = net()
    a, b = exp(g, g.x(IMAGE)), g.x(IMAGE)
    whole = join(g, a, b, axis=0)
    assert places(g, whole, conv(8)(g, a)) == {a: Place(whole, 0), b: Place(whole, 2048)}


def test_packed_and_reshaped() -> None:
    g = net()
    a, b = made(g), made(g)
    whole = g.apply(PACK, [a, b], PackOptions(2, 0))
    flat = reshaped(g, whole, 2, -1)
    assert places(g, flat) == {a: Place(whole, 0), b: Place(whole, 2048), whole: Place(flat, 0)}


def test_in_what_is_itself_a_part() -> None:
    """Places are within the next result, whose rows are those of the widest."""
    g = net()
    a, b, c = made(g), made(g), made(g)
    inner = join(g, b, c)
    whole = join(g, a, inner)
    expected = {a: Place(whole, 0, 96), inner: Place(whole, 128, 96), b: Place(inner, 0, 96), c: Place(inner, 128, 96)}
    assert places(g, whole) == expected


_READ: dict[str, tuple[Callable[[Net, int], int], bool]] = {
    "an element-wise operator": (times, True),
    "a chain": (lambda g, x: times(g, exp(g, x)), True),
    "an operand of a chain": (lambda g, x: plus(g, exp(g, g.x(IMAGE)), x), True),
    "a pool": (pool(AVERAGE_POOL_2D), True),
    "a pool of padded rows": (
        lambda g, x: pool(MAX_POOL_2D)(
            g, g.apply(PAD, [x, g.const(np.array([(0, 0), (1, 1), (1, 1), (0, 0)], np.int32))])
        ),
        True,
    ),
    "another join": (lambda g, x: join(g, x, made(g)), True),
    "a product": (conv(8), False),
    "a function": (exp, False),
    "a call": (lambda g, x: g.node(CALL, [x], [g.tensors[x]], CallOptions(1))[0], False),
}


@pytest.mark.parametrize(("reader", "reads_rows"), _READ.values(), ids=_READ)
def test_read_by_others(reader: Callable[[Net, int], int], reads_rows: bool) -> None:
    """A part lies in rows if all of its readers can skip the elements between."""
    g = net()
    a = made(g)
    whole = join(g, a, g.x(IMAGE))
    assert (a in places(g, whole, reader(g, a))) == reads_rows


def test_read_as_a_residual() -> None:
    """A product reads its residual as one contiguous tensor."""
    g = net()
    a, product = times(g, exp(g, g.x(IMAGE))), made(g)
    total, whole = plus(g, product, a), join(g, a, g.x(IMAGE))
    graph = after([epilogues, chains, joins], g, total, whole)
    assert [node.residual for node in graph.nodes if node.residual is not None] == [a]
    assert a not in graph.places


def test_kept() -> None:
    """What leaves the region is read as one piece."""
    g = net()
    a = made(g)
    whole = join(g, a, made(g))
    rows = places(g, whole, a)
    assert a not in rows
    piece = join(g, a, made(g), axis=0)
    assert places(g, piece, a)[a] == Place(piece, 0)


_WRITERS: dict[str, tuple[Callable[[Net, int], int], bool]] = {
    "a product": (conv(32), True),
    "a pool": (lambda g, x: pool(MAX_POOL_2D)(g, g.x((1, 5, 5, 32))), True),
    "a chain": (lambda g, x: times(g, exp(g, x)), True),
    "a sum": (lambda g, x: plus(g, conv(32)(g, x), x), False),
    "an element-wise operator": (times, False),
    "a function": (exp, False),
}


@pytest.mark.parametrize(("writer", "writes_rows"), _WRITERS.values(), ids=_WRITERS)
def test_writers(writer: Callable[[Net, int], int], writes_rows: bool) -> None:
    g = net()
    a = writer(g, g.x(IMAGE))
    assert (a in places(g, join(g, a, g.x(IMAGE)))) == writes_rows


@pytest.mark.parametrize("domain", ["hybrid", "int8", "uint8", "int16"])
def test_types(domain: str) -> None:
    """Rows are of floats that a float kernel writes; one piece may be of anything."""
    g = net(domain)
    a, b = made(g), made(g)
    in_rows, in_one = join(g, a, g.x(IMAGE)), join(g, b, g.x(IMAGE), axis=0)
    found = places(g, in_rows, in_one)
    assert a not in found
    assert found[b] == Place(in_one, 0)


def test_another_scale() -> None:
    """A part that is rescaled on the way is copied."""
    g = net("uint8")
    a, b = made(g), made(g)
    g.quantized(b, by(0.1, 3))
    whole = join(g, a, b, axis=0)
    assert set(places(g, whole)) == {a}


def test_where_no_buffer_may_begin() -> None:
    g = net()
    parts = [conv(channels)(g, g.x(IMAGE)) for channels in (16, 5, 16, ALIGNMENT // 4)]
    whole = join(g, *parts)
    found = places(g, whole)
    assert [part in found for part in parts] == [True, True, False, False]


def inputs_of_the_region(g: Net) -> tuple[int, int]:
    x = g.x(IMAGE)
    return x, join(g, x, made(g))


def twice(g: Net) -> tuple[int, int]:
    x = made(g)
    return x, join(g, x, x)


def constant(g: Net) -> tuple[int, int]:
    x = g.known(IMAGE)
    return x, join(g, x, made(g), axis=0)


def variable(g: Net) -> tuple[int, int]:
    x = g.held(IMAGE)
    return x, join(g, x, made(g), axis=0)


_NOWHERE: dict[str, Callable[[Net], tuple[int, int]]] = {
    "an input in rows": inputs_of_the_region,
    "twice": twice,
    "a constant": constant,
    "a variable": variable,
}


@pytest.mark.parametrize("build", _NOWHERE.values(), ids=_NOWHERE)
def test_nowhere(build: Callable[[Net], tuple[int, int]]) -> None:
    g = net()
    x, whole = build(g)
    assert x not in places(g, whole)


def test_the_first_that_has_a_place() -> None:
    g = net()
    a = made(g)
    by_rows, first, second = join(g, exp(g, a), a), join(g, a, a, axis=0), join(g, made(g), a, axis=0)
    assert places(g, by_rows, first, second)[a] == Place(second, 2048)


def test_given_operands() -> None:
    """A tensor whose operand is settled stays there; parts of it may lie in it."""
    g = net()
    a, b = made(g), made(g)
    whole = join(g, a, b, axis=0)
    flat = reshaped(g, whole, -1)
    graph = after(PASSES, g, flat, given={whole: Operand(g.tensors[whole]), b: Operand(g.tensors[b])})
    assert graph.places == {a: Place(whole, 0)}


def test_what_is_written_in_place() -> None:
    """The result of an update lies where the tensor did that it updates."""
    g = net()
    start = g.const(np.zeros(4, np.int32))
    first = g.op(DYNAMIC_UPDATE_SLICE, [g.x(IMAGE), g.x((1, 1, 4, 32)), start], NoOptions())
    second = g.op(DYNAMIC_UPDATE_SLICE, [first, g.x((1, 1, 4, 32)), start], NoOptions())
    whole = join(g, second, g.x(IMAGE), axis=0)
    assert second in places(g, whole)
    assert second not in places(g, whole, passes=(in_place, *PASSES))


def test_as_deep_as_it_may_be() -> None:
    """Results are placed one by one, not by way of each other."""
    g = net()
    x = exp(g, g.x(IMAGE))
    depth = 3000
    for i in range(depth):
        x = reshaped(g, x, *((-1, 32) if i % 2 else (1, -1)))
    assert len(places(g, x)) == depth


def test_several_readers_of_a_region_without_joins() -> None:
    g = net()
    x: Variant = conv(8)
    assert places(g, x(g, made(g)), g.apply(binary.MAXIMUM, [g.x(IMAGE), g.x(IMAGE)])) == {}
