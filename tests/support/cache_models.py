"""Models whose signatures update a cache, and the same in numpy."""

import numpy as np

from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Signature
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.unary import ABS
from litecl.interpreter.schema import TensorType as T
from support.build import Graph, model, randn

SHAPE = (1, 2, 1024, 16)  # 128 KiB


def signatures(*rows: int, reads: bool = False, kept: bool = False) -> bytes:
    """Return a file of a signature s0, s1, ... for each number of rows that are written at once. reads: whether the old
    cache is used after the new one is made. kept: whether it is also an output.
    """
    graphs, named = [], []
    for i, count in enumerate(rows):
        g = Graph(f"s{i}")
        cache, update, start = g.input(SHAPE), g.input((1, 2, count, 16)), g.input((4,), T.INT32)
        new = g.op(DYNAMIC_UPDATE_SLICE, [cache, update, start], NoOptions())
        y = g.op(ADD, [new, cache], AddOptions()) if reads else g.op(ABS, [new], NoOptions())
        graphs.append(g.build(new, y, *([cache] if kept else [])))
        outputs = {"new": new, "y": y} | ({"old": cache} if kept else {})
        named.append(Signature(g.name, {"cache": cache, "update": update, "start": start}, outputs, i))
    return write(model(*graphs, signatures=named))


def updated(cache: Array, update: Array, at: int) -> Array:
    result = cache.copy()
    result[:, :, at : at + update.shape[2]] = update
    return result


def start(at: int) -> Array:
    return np.array([0, 0, at, 0], np.int32)


def feeds(rng: np.random.Generator, which: int, at: int) -> dict[str, Array]:
    """Return a signature's inputs without the cache."""
    return {"update": randn(rng, 1, 2, (3, 1)[which], 16), "start": start(at)}


def named_alike(*rows: int) -> bytes:
    """Return a file of a signature s0, s1, ... for each number of rows (one of 1), of two caches, each an input and an
    output of one name.
    """
    graphs, named = [], []
    for i, count in enumerate(rows or (1,)):
        g = Graph(f"s{i}")
        k, v, update, at = g.input(SHAPE), g.input(SHAPE), g.input((1, 2, count, 16)), g.input((4,), T.INT32)
        new = [g.op(DYNAMIC_UPDATE_SLICE, [cache, update, at], NoOptions()) for cache in (k, v)]
        inputs, outputs = {"k": k, "v": v, "update": update, "start": at}, dict(zip("kv", new, strict=True))
        graphs.append(g.build(*new))
        named.append(Signature(g.name, inputs, outputs, i))
    return write(model(*graphs, signatures=named))
