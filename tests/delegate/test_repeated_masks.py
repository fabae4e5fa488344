"""Attention over heads that share keys, whose mask the file repeats for each of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.gpu.pipeline import GPU_PASSES
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.compare import NOT_EQUAL
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.select import SELECT_V2
from litecl.interpreter.schema import TensorType as T
from support import oracle
from support.attention_nets import Attended
from support.build import model, randn
from support.loop_models import outputs, prepared
from support.regions import after, names

KEYS, DEPTH = 37, 8


class Grouped(Attended):
    """Heads times words as queries of one product, [1, 1, heads * words, depth], and a mask of words by keys."""

    def __init__(self, heads: int, words: int) -> None:
        super().__init__()
        self.heads, self.words, self.rows = heads, words, heads * words
        self.products = self.scores((1, 1, self.rows, DEPTH), (1, 1, KEYS, DEPTH))

    def shaped(self, x: int, *shape: int) -> int:
        return self.op(RESHAPE, [x, self.const(np.array(shape, np.int32))], ReshapeOptions(shape))

    def again(self, x: int, axis: int, times: int | None = None) -> int:
        return self.op(CONCATENATION, [x] * (times or self.heads), ConcatenationOptions(axis))

    def floats(self, x: int) -> int:
        shape = self.tensors[x].static_shape
        return self.node(CAST, (x,), [TensorSpec(T.FLOAT32, shape)], CastOptions())[0]

    def booleans(self, x: int, other: float = 0.0) -> int:
        shape = self.tensors[x].static_shape
        return self.node(NOT_EQUAL, (x, self.const(np.float32(other))), [TensorSpec(T.BOOL, shape)], NoOptions())[0]

    def given(self, type_: T = T.BOOL, *shape: int) -> int:
        self.mask = self.input(shape or (1, 1, self.words, KEYS), type_)
        return self.mask

    def select(self, mask: int) -> int:
        chosen = self.op(SELECT_V2, [mask, self.products, self.const(np.float32(-10000))], NoOptions())
        return self.seen(chosen, (1, 1, KEYS, 5), values_in_rows=False)

    def add(self, mask: int) -> int:
        return self.seen(self.op(ADD, [self.products, mask], AddOptions()), (1, 1, KEYS, 5), values_in_rows=False)


def _exported(g: Grouped) -> int:
    """As the decomposition of odml.sdpa_transposed."""
    mask = g.booleans(g.again(g.floats(g.given()), 1))
    return g.select(g.shaped(mask, 1, 1, g.rows, KEYS))


_FORMS: dict[str, Callable[[Grouped], int]] = {
    "exported": _exported,
    "rows": lambda g: g.select(g.booleans(g.again(g.floats(g.given()), 2))),
    "of three dimensions": lambda g: g.select(g.again(g.shaped(g.given(T.BOOL, 1, g.words, KEYS), 1, 1, -1, KEYS), 2)),
    "added": lambda g: g.add(g.again(g.given(T.FLOAT32), 2)),
    "added in another shape": lambda g: g.add(g.shaped(g.again(g.given(T.FLOAT32), 1), 1, 1, g.rows, KEYS)),
}


def feeds_of(g: Grouped) -> list[Array]:
    rng, feeds = np.random.default_rng(3), []
    for t in g.inputs:
        spec = g.tensors[t]
        x = randn(rng, *spec.static_shape)
        if t == g.mask:
            x = x > 0.3 if spec.type == T.BOOL else np.where(x > 0.3, 0, -1e38).astype(np.float32)
            x.reshape(-1, KEYS)[-1] = (
                x.dtype.type(-1e38) if spec.type == T.FLOAT32 else False
            )  # a word that sees nothing
        feeds.append(x)
    return feeds


def check(g: Grouped, y: int, **options: Any) -> None:
    feeds = feeds_of(g)
    interpreter = prepared(model(g.build(y)), feeds, [CLDelegate(**{"strict": True, **options})])
    assert any("attention" in name for name in interpreter.delegation_report().partitions[0].kernels)
    (expected,) = oracle.run(write(model(g.build(y))), feeds)
    np.testing.assert_allclose(outputs(interpreter)[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("passes", [PASSES, GPU_PASSES])
@pytest.mark.parametrize("name", _FORMS)
def test_read_where_it_is(name: str, passes: Any) -> None:
    g = Grouped(4, 3)
    graph = after(passes, g, _FORMS[name](g))
    assert names(graph)[-1] == "ATTENTION"
    assert not {*names(graph)} & {"CONCATENATION", "CAST", "NOT_EQUAL"}


@pytest.mark.parametrize(("heads", "words"), [(4, 1), (3, 5), (2, 8), (5, 7)])
@pytest.mark.parametrize("name", _FORMS)
def test_numbers(name: str, heads: int, words: int, gpu: dict[str, Any]) -> None:
    """A word, several rows at a time that begin in the middle of a head, and tiles of rows."""
    for options in ({}, gpu):
        g = Grouped(heads, words)
        check(g, _FORMS[name](g), **options)


def _by_turns(g: Grouped) -> int:
    """Repeat each word's mask several times in a row."""
    each = g.shaped(g.given(T.BOOL), 1, g.words, 1, KEYS)
    return g.select(g.shaped(g.again(each, 2), 1, 1, g.rows, KEYS))


def _two_masks(g: Grouped) -> int:
    other = g.input((1, 1, g.words * (g.heads - 1), KEYS), T.BOOL)
    return g.select(g.op(CONCATENATION, [g.given(), other], ConcatenationOptions(2)))


def _not_one(g: Grouped) -> int:
    return g.select(g.booleans(g.again(g.floats(g.given()), 2), 1.0))


def _of_numbers(g: Grouped) -> int:
    """Return a mask of integers, which differs from a mask of booleans."""
    return g.select(g.booleans(g.again(g.floats(g.given(T.INT32)), 2)))


@pytest.mark.parametrize("make", [_by_turns, _two_masks, _not_one, _of_numbers])
def test_what_is_no_repetition(make: Callable[[Grouped], int]) -> None:
    """The nodes stay, before attention."""
    g = Grouped(3, 5)
    graph = after(PASSES, g, make(g))
    assert "ATTENTION" in names(graph)
    assert {*names(graph)} & {"CONCATENATION", "NOT_EQUAL"}


@pytest.mark.parametrize("make", [_by_turns, _not_one])
def test_numbers_of_no_repetition(make: Callable[[Grouped], int]) -> None:
    g = Grouped(3, 5)
    check(g, make(g))


def test_a_repeated_mask_that_something_else_reads() -> None:
    g = Grouped(4, 3)
    mask = g.again(g.given(T.FLOAT32), 2)
    found = names(after(PASSES, g, g.add(mask), mask))
    assert found == ["CONCATENATION", "ATTENTION"]
