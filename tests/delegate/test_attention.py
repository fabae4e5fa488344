"""Attention as one kernel: every layout, mask and edge against float64, wherever kernels run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Shape
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from support import devices
from support.attention_nets import Attended
from support.build import model, randn

INF = np.inf


@dataclass(frozen=True)
class Case:
    """Shapes as with queries, keys and values in rows. hidden: of the mask, by minus infinity or ``by``."""

    q: Shape
    k: Shape
    v: Shape
    mask: Shape | None = None
    hidden: str = ""
    by: float = -INF
    keys_in_rows: bool = True
    values_in_rows: bool = True
    spread: float = 1.0


def case(rows: int, keys: int, depth: int, columns: int, batch: Shape = (2, 3), **more: Any) -> Case:
    return Case((*batch, rows, depth), (*batch, keys, depth), (*batch, keys, columns), **more)


CASES = {
    "a row": case(1, 7, 5, 3),
    "a key": case(1, 1, 16, 16),
    "rows": case(3, 65, 33, 70, mask=(3, 65)),
    "columns": case(2, 130, 16, 20, mask=(1, 3, 1, 130), keys_in_rows=False, values_in_rows=False),
    "tiles": case(23, 70, 9, 37, mask=(2, 3, 23, 70), keys_in_rows=False),
    "tiles of many": case(15, 200, 8, 64, mask=(200,), spread=30.0),
    "one product": case(9, 9, 4, 4, ()),
    "shared by heads": Case((2, 4, 3, 8), (2, 1, 40, 8), (40, 8), (2, 1, 3, 40)),
    "more values": Case((3, 5, 8), (3, 20, 8), (2, 3, 20, 6)),
    "a cache": case(1, 200, 16, 16, mask=(200,), hidden="end"),
    "a cache of floats": case(1, 200, 16, 16, mask=(1, 1, 1, 200), hidden="end", by=-1e9),
    "hidden first": case(2, 200, 16, 16, mask=(200,), hidden="begin"),
    "causal": case(40, 40, 8, 8, mask=(40, 40), hidden="later"),
    "causal by floats": case(40, 40, 8, 8, mask=(1, 1, 40, 40), hidden="later", by=-1e30),
    "hidden rows": case(6, 70, 8, 8, mask=(2, 1, 6, 1), hidden="rows"),
    "a hidden row": case(1, 70, 8, 8, mask=(2, 1, 1, 70), hidden="rows"),
    "all of one": case(3, 10, 8, 8, mask=(1,)),
}


def masked(c: Case, rng: np.random.Generator) -> Array:
    assert c.mask is not None
    mask = randn(rng, *c.mask)
    if c.hidden == "later":
        mask[..., np.triu(np.ones(mask.shape[-2:], bool), 1)] = c.by
    elif c.hidden == "rows":  # of the first image, every second one
        mask[0, :, ::2] = c.by
    elif c.hidden:
        mask[..., slice(70, None) if c.hidden == "end" else slice(0, 70)] = c.by
    return mask


def expected(c: Case, q: Array, k: Array, v: Array, mask: Array | float = 0.0) -> Array:
    with np.errstate(invalid="ignore"):
        scores = q.astype(np.float64) @ k.swapaxes(-1, -2) * 0.25 + mask
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        result: Array = (weights / weights.sum(-1, keepdims=True)) @ v
    return result


def attended(c: Case, g: Attended) -> int:
    scores = g.scaled(g.scores(c.q, c.k, keys_in_rows=c.keys_in_rows), 0.25)
    scores = scores if c.mask is None else g.masked(scores, c.mask)
    return g.seen(scores, c.v, values_in_rows=c.values_in_rows)


def turned(x: Array, in_rows: bool) -> Array:
    return x if in_rows else np.ascontiguousarray(x.swapaxes(-1, -2))


def run(options: dict[str, Any]) -> Iterator[tuple[str, Array, Array]]:
    """Yield every case with its result and what is expected, all of one region."""
    g, rng = Attended(), np.random.default_rng(5)
    outputs = [attended(c, g) for c in CASES.values()]
    interpreter = Interpreter(model(g.build(*outputs)), delegates=[CLDelegate(strict=True, **options)])
    interpreter.allocate_tensors()
    tensors, wanted = iter(g.inputs), []
    for c in CASES.values():
        arrays = [randn(rng, *shape, scale=c.spread) for shape in (c.q, c.k, c.v)]
        mask = () if c.mask is None else (masked(c, rng),)
        wanted.append(expected(c, *arrays, *mask))
        feeds = (arrays[0], turned(arrays[1], c.keys_in_rows), *mask, turned(arrays[2], c.values_in_rows))
        for feed in feeds:
            interpreter.set_tensor(next(tensors), feed)
    interpreter.invoke()
    (row,) = interpreter.delegation_report().partitions
    assert {name.split(":")[0] for name in row.kernels} <= {"attention", "attention_local", "pack", "copy", "transpose"}
    for name, output, result in zip(CASES, outputs, wanted, strict=True):
        yield name, interpreter.get_tensor(output), result


def check(options: dict[str, Any]) -> None:
    for name, got, wanted in run(options):
        np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted), err_msg=name)
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=2e-5 * np.nanmax(np.abs(wanted)), err_msg=name)


_MODES: Sequence[dict[str, Any]] = ({"num_threads": 1, "profile": True}, {"num_threads": 2}, {"queue_loops": True})


@pytest.mark.parametrize("options", _MODES, ids=str)
def test_attention(options: dict[str, Any]) -> None:
    check(options)


def test_the_smallest_weight_counts() -> None:
    """Weights that vanish beside the sum of all do not vanish in results whose values are large."""
    c, g = case(2, 200, 8, 8, (), mask=(200,)), Attended()
    interpreter = Interpreter(model(g.build(attended(c, g))), delegates=[CLDelegate(strict=True, num_threads=1)])
    interpreter.allocate_tensors()
    rng = np.random.default_rng(5)
    q, k, v = (randn(rng, *shape) for shape in (c.q, c.k, c.v))
    late = np.arange(200) >= 128
    mask, v = np.where(late, -30, 0).astype(np.float32), v * np.where(late, 1e15, 1).astype(np.float32)[:, None]
    for tensor, value in zip(g.inputs, (q, k, mask, v), strict=True):
        interpreter.set_tensor(tensor, value)
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(g.y), expected(c, q, k, v, mask), rtol=1e-4)


def test_attention_of_attention() -> None:
    """The weights of a second attention are made of the result of the first, which is the first product of both."""
    g = Attended()
    first = g.seen(g.scores())
    weights, values = g.softmax(first), g.input((2, 3, 6, 4))
    y = g.op(BATCH_MATMUL, [weights, values], BatchMatMulOptions())
    interpreter = Interpreter(model(g.build(y)), delegates=[CLDelegate(strict=True)])
    interpreter.allocate_tensors()
    rng = np.random.default_rng(5)
    q, k, v, w = (randn(rng, *g.tensors[t].static_shape) for t in (g.q, g.k, g.v, values))
    for tensor, value in zip((g.q, g.k, g.v, values), (q, k, v, w), strict=True):
        interpreter.set_tensor(tensor, value)
    interpreter.invoke()
    inner = _softmax(q.astype(np.float64) @ k.swapaxes(-1, -2)) @ v
    np.testing.assert_allclose(interpreter.get_tensor(y), _softmax(inner) @ w, rtol=1e-4, atol=1e-5)


def _softmax(scores: Array) -> Array:
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def test_attention_on_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check(devices.as_on_a_gpu(monkeypatch, tmp_path))
