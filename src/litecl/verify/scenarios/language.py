"""Parts of language models: attention with masks and lengths, rotary embeddings, and ring caches."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.graph import Model, Node, Shape, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import binary
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.control import CALL_ONCE, CallOnceOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.pack import PACK, PackOptions
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.select import SELECT_V2
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.tile import TILE
from litecl.interpreter.ops.unary import NEG, RSQRT
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, VAR_HANDLE, VarHandleOptions
from litecl.interpreter.schema import TensorType
from litecl.perf.models.build import Graph, model, randn
from litecl.verify.check import Check, Step
from litecl.verify.scenarios.scenario import scenario

_HEADS, _KEPT, _DEPTH = 4, 9, 8  # heads, cache slots, key size
_HIDDEN = np.float32(-0.7 * np.finfo(np.float32).max)  # as exporters write it
_NONE = NoOptions()


def _ints(g: Graph, *values: int) -> int:
    return g.const(np.array(values, np.int32))


def _attention(g: Graph, queries: int, keys: int, values: int, mask: int) -> int:
    """Return attention. mask: added to the scores."""
    scores = g.op(BATCH_MATMUL, [queries, keys], BatchMatMulOptions(adj_y=True))
    scores = g.op(binary.MUL, [scores, g.const(np.float32(_DEPTH**-0.5))], binary.MulOptions())
    scores = g.op(binary.ADD, [scores, mask], binary.AddOptions())
    weights = g.op(SOFTMAX, [scores], SoftmaxOptions(1.0))
    return g.op(BATCH_MATMUL, [weights, values], BatchMatMulOptions())


def _mask(g: Graph, length: int) -> int:
    """Return a mask that hides the cache slots from a length on."""
    known = g.op(LESS, [g.const(np.arange(_KEPT, dtype=np.int32)), length], _NONE)
    return g.op(SELECT_V2, [known, g.const(np.zeros(_KEPT, np.float32)), g.const(_HIDDEN)], _NONE)


def _masked() -> Model:
    """Return attention of three queries with the mask as an input."""
    g = Graph()
    queries, keys, values = (g.input((1, _HEADS, n, _DEPTH)) for n in (3, _KEPT, _KEPT))
    return model(g.build(_attention(g, queries, keys, values, g.input((1, 1, 3, _KEPT)))))


def _masks() -> list[Step]:
    """Return steps with a causal mask, one that hides all but one key, and one with a row that hides all keys."""
    rng, hidden = np.random.default_rng(31), [np.tri(3, _KEPT, k=_KEPT - 3) == 0, np.arange(_KEPT) > 0]
    hidden.append(np.arange(3)[:, None] == np.full(_KEPT, 1))
    fed = [randn(rng, 1, _HEADS, n, _DEPTH) for n in (3, _KEPT, _KEPT)]
    shape = (1, 1, 3, _KEPT)
    return [Step([*fed, np.where(np.broadcast_to(h, shape), _HIDDEN, 0).astype(np.float32)]) for h in hidden]


def _to_a_length() -> Model:
    """Return attention to the first slots of a cache, with keys shared by all heads."""
    g = Graph()
    queries, keys, values = (
        g.input((1, _HEADS, 1, _DEPTH)),
        g.input((1, 1, _KEPT, _DEPTH)),
        g.input((1, 1, _KEPT, _DEPTH)),
    )
    mask = _mask(g, g.input((), TensorType.INT32))
    keys, values = (g.op(TILE, [x, _ints(g, 1, _HEADS, 1, 1)], _NONE) for x in (keys, values))
    return model(g.build(_attention(g, queries, keys, values, mask)))


def _lengths() -> list[Step]:
    rng = np.random.default_rng(32)
    shapes = (1, _HEADS, 1, _DEPTH), (1, 1, _KEPT, _DEPTH), (1, 1, _KEPT, _DEPTH)
    return [Step([*(randn(rng, *s) for s in shapes), np.array(n, np.int32)]) for n in (1, 4, _KEPT, _KEPT + 1, 0)]


def _written(g: Graph, cache: int, new: int, position: int) -> int:
    """Write a new entry to a ring cache at a position, which wraps around."""
    slot = g.op(binary.FLOOR_MOD, [position, g.const(np.int32(_KEPT))], _NONE)
    zero = g.const(np.int32(0))
    start = g.op(PACK, [zero, zero, slot, zero], PackOptions(4, 0))
    return g.op(DYNAMIC_UPDATE_SLICE, [cache, new, start], _NONE)


def _ring() -> Model:
    """Return attention to ring caches that are inputs and outputs. Another output reads an old one."""
    g = Graph()
    queries, keys, values = (g.input((1, _HEADS, 1, _DEPTH)) for _ in range(3))
    old, position = [g.input((1, _HEADS, _KEPT, _DEPTH)) for _ in range(2)], g.input((), TensorType.INT32)
    keys, values = (_written(g, cache, new, position) for cache, new in zip(old, (keys, values), strict=True))
    length = g.op(binary.ADD, [position, g.const(np.int32(1))], binary.AddOptions())
    seen = _attention(g, queries, keys, values, _mask(g, length))
    return model(g.build(seen, keys, values, g.op(NEG, [old[0]], _NONE)))


def _rounds() -> list[Step]:
    rng = np.random.default_rng(33)
    shapes = ((1, _HEADS, 1, _DEPTH),) * 3 + ((1, _HEADS, _KEPT, _DEPTH),) * 2
    positions = (0, 3, _KEPT - 1, _KEPT, 2 * _KEPT + 4)
    return [Step([*(randn(rng, *shape) for shape in shapes), np.array(position, np.int32)]) for position in positions]


def _kept() -> Model:
    """Return attention to a ring cache that a resource variable keeps between invokes."""
    g, shape = Graph(), (1, 1, _KEPT, _DEPTH)
    queries, new = (g.input((1, 1, 1, _DEPTH)) for _ in range(2))
    position = g.input((), TensorType.INT32)
    g.nodes.append(Node(CALL_ONCE, (), (), CallOnceOptions(1)))
    cache = _read(g, _handle(g), shape)
    written = _written(g, cache, new, position)
    g.nodes.append(Node(ASSIGN_VARIABLE, (_handle(g), written), (), _NONE))
    length = g.op(binary.ADD, [position, g.const(np.int32(1))], binary.AddOptions())
    seen = _attention(g, queries, written, written, _mask(g, length))
    first = Graph("first")
    zeros = first.const(np.zeros(shape, np.float32))
    first.nodes.append(Node(ASSIGN_VARIABLE, (_handle(first), zeros), (), _NONE))
    return model(g.build(seen), first.build())


def _handle(g: Graph) -> int:
    return g.node(VAR_HANDLE, (), [TensorSpec(TensorType.RESOURCE, ())], VarHandleOptions("", "cache"))[0]


def _read(g: Graph, variable: int, shape: Shape) -> int:
    return g.node(READ_VARIABLE, (variable,), [TensorSpec(TensorType.FLOAT32, shape)], _NONE)[0]


def _going_on() -> list[Step]:
    rng = np.random.default_rng(34)
    return [Step([*(randn(rng, 1, 1, 1, _DEPTH) for _ in range(2)), np.array(i, np.int32)]) for i in range(_KEPT + 4)]


def _rotated() -> Model:
    """Return an RMS-normalised row with a rotary embedding."""
    g = Graph()
    x, position = g.input((1, _HEADS, 1, _DEPTH)), g.input((1,), TensorType.INT32)
    squares = g.op(MEAN, [g.op(binary.MUL, [x, x], binary.MulOptions()), _ints(g, -1)], ReducerOptions(keep_dims=True))
    size = g.op(RSQRT, [g.op(binary.ADD, [squares, g.const(np.float32(1e-6))], binary.AddOptions())], _NONE)
    x = g.op(binary.MUL, [x, size], binary.MulOptions())
    angles = np.arange(2 * _KEPT)[:, None] * 10_000.0 ** (-np.arange(_DEPTH) % (_DEPTH // 2) / (_DEPTH // 2))
    tables = [g.const(f(angles).astype(np.float32)) for f in (np.cos, np.sin)]
    cosine, sine = (_row(g, table, position) for table in tables)
    half = _DEPTH // 2
    low, high = (g.op(SLICE, [x, _ints(g, 0, 0, 0, start), _ints(g, 1, _HEADS, 1, half)], _NONE) for start in (0, half))
    turned = g.op(CONCATENATION, [g.op(NEG, [high], _NONE), low], ConcatenationOptions(3))
    parts = [g.op(binary.MUL, pair, binary.MulOptions()) for pair in ([x, cosine], [turned, sine])]
    return model(g.build(g.op(binary.ADD, parts, binary.AddOptions())))


def _row(g: Graph, table: int, position: int) -> int:
    row = g.op(GATHER, [table, position], GatherOptions(0))
    return g.op(RESHAPE, [row, _ints(g, 1, 1, 1, _DEPTH)], ReshapeOptions())


def _positions() -> Sequence[Step]:
    rng = np.random.default_rng(35)
    return [Step([randn(rng, 1, _HEADS, 1, _DEPTH), np.array([p], np.int32)]) for p in (0, 1, 2 * _KEPT - 1)]


CHECKS: tuple[Check, ...] = (
    scenario("attention with a mask", "attention", _masked, _masks),
    scenario("attention to a length, shared keys", "attention", _to_a_length, _lengths),
    scenario("a ring cache, fed and returned", "attention", _ring, _rounds),
    scenario("a ring cache in a variable", "attention", _kept, _going_on),
    scenario("a normalised row, turned by its position", "attention", _rotated, _positions),
)
