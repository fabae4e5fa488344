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
    """Shapes as with queries, keys and values in rows. hidden: of the mask, by minus infinity or ``by``. shown: if the
    mask is of booleans, which of them shows a key; hidden scores are ``by``.
    """

    q: Shape
    k: Shape
    v: Shape
    mask: Shape | None = None
    hidden: str = ""
    by: float = -INF
    keys_in_rows: bool = True
    values_in_rows: bool = True
    spread: float = 1.0
    shown: bool | None = None


def case(rows: int, keys: int, depth: int, columns: int, batch: Shape = (2, 3), **more: Any) -> Case:
    return Case((*batch, rows, depth), (*batch, keys, depth), (*batch, keys, columns), **more)


LOW = -0.7 * float(np.finfo(np.float32).max)  # as exporters of language models write it
_CHOICES: dict[str, Shape] = {"end": (200,), "begin": (1, 1, 1, 200), "rows": (2, 1, 1, 200), "later": (20, 200)}

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
    **{
        f"{rows} rows of a cache, {keys_in_rows}, {values_in_rows}": case(
            rows,
            203,
            19,
            21,
            mask=(203,),
            hidden="end",
            by=LOW,
            keys_in_rows=keys_in_rows,
            values_in_rows=values_in_rows,
        )
        for rows in (1, 2, 3, 4, 5, 9, 25)
        for keys_in_rows in (True, False)
        for values_in_rows in (True, False)
    },
    "a whole cache": case(3, 128, 16, 64, mask=(128,), values_in_rows=False),
    "hidden first by floats": case(2, 200, 16, 16, mask=(200,), hidden="begin", by=LOW, values_in_rows=False),
    "causal by the least": case(70, 70, 8, 8, mask=(70, 70), hidden="later", by=float(np.finfo(np.float32).min)),
    "hidden rows by floats": case(6, 70, 8, 8, mask=(2, 1, 6, 1), hidden="rows", by=LOW, values_in_rows=False),
    "a hidden row by floats": case(1, 150, 8, 8, mask=(2, 1, 1, 150), hidden="rows", by=LOW),
    "hidden rows of tiles": case(40, 70, 8, 8, mask=(2, 1, 40, 70), hidden="rows", by=LOW),
    **{
        f"chosen, {name}, {rows} rows, {by}": case(
            rows, 200, 16, 16, mask=mask, hidden=name, by=by, shown=shown, values_in_rows=shown
        )
        for name, mask in _CHOICES.items()
        for rows, shown in ((2, True), (2, False), (20, True))
        for by in (-INF, LOW, -1e9, -30.0, 0.0)
        if name != "later" or rows > 2
    },
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


def as_booleans(c: Case, mask: Array) -> Array:
    shows = mask != np.float32(c.by)
    return shows if c.shown else ~shows


def expected(c: Case, q: Array, k: Array, v: Array, mask: Array | float = 0.0) -> Array:
    with np.errstate(invalid="ignore"):
        scores = q.astype(np.float64) @ k.swapaxes(-1, -2) * 0.25
        scores = scores + mask if c.shown is None else np.where(mask == c.shown, scores, c.by)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        result: Array = (weights / weights.sum(-1, keepdims=True)) @ v
    return result


def attended(c: Case, g: Attended) -> int:
    scores = g.scaled(g.scores(c.q, c.k, keys_in_rows=c.keys_in_rows), 0.25)
    if c.mask is not None:
        scores = g.masked(scores, c.mask) if c.shown is None else g.chosen(scores, c.mask, c.by, shown=c.shown)
    return g.seen(scores, c.v, values_in_rows=c.values_in_rows)


def turned(x: Array, in_rows: bool) -> Array:
    return x if in_rows else np.ascontiguousarray(x.swapaxes(-1, -2))


def run(options: dict[str, Any]) -> Iterator[tuple[str, Array, Array]]:
    """Yield every case with its result and the expected one, computed in one region."""
    g, rng = Attended(), np.random.default_rng(5)
    outputs = [attended(c, g) for c in CASES.values()]
    interpreter = Interpreter(model(g.build(*outputs)), delegates=[CLDelegate(strict=True, **options)])
    interpreter.allocate_tensors()
    tensors, wanted = iter(g.inputs), []
    for c in CASES.values():
        arrays = [randn(rng, *shape, scale=c.spread) for shape in (c.q, c.k, c.v)]
        mask = () if c.mask is None else (masked(c, rng),)
        mask = mask if c.shown is None else (as_booleans(c, *mask),)
        wanted.append(expected(c, *arrays, *mask))
        feeds = (arrays[0], turned(arrays[1], c.keys_in_rows), *mask, turned(arrays[2], c.values_in_rows))
        for feed in feeds:
            interpreter.set_tensor(next(tensors), feed)
    interpreter.invoke()
    (row,) = interpreter.delegation_report().partitions
    moves = {"pack", "copy", "transpose", "transpose_local"}
    assert {name.split(":")[0] for name in row.kernels} <= {"attention", "attention_local", *moves}
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


@pytest.mark.parametrize("shown", [None, True, False])
@pytest.mark.parametrize("rows", [1, 3, 20])
def test_hidden_blocks_are_not_read(rows: int, shown: bool | None) -> None:
    """Blocks of keys that a mask hides from all rows are skipped, so the time follows the visible part of a cache."""
    c = case(rows, 512, 8, 8, (), mask=(512,), by=LOW, shown=shown, values_in_rows=False)
    g, rng = Attended(), np.random.default_rng(5)
    interpreter = Interpreter(model(g.build(attended(c, g))), delegates=[CLDelegate(strict=True, num_threads=1)])
    interpreter.allocate_tensors()
    seen = np.arange(512) < 60
    q, k, v = (randn(rng, *shape) for shape in (c.q, c.k, c.v))
    mask = np.where(seen, 0, np.float32(LOW)) if shown is None else seen == shown
    wanted = expected(c, q, k, v, mask)
    k[128:] = v[128:] = np.nan
    for tensor, value in zip(g.inputs, (q, k, mask, turned(v, in_rows=False)), strict=True):
        interpreter.set_tensor(tensor, value)
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(g.y), wanted, rtol=1e-5, atol=1e-6)


def test_attention_of_attention() -> None:
    """The second attention's weights come from the first's result, which is also the first product of both."""
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


@pytest.mark.nightly
def test_attention_on_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check(devices.as_on_a_gpu(monkeypatch, tmp_path))
