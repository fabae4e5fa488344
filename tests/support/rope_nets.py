"""Rotary position embeddings in the forms that files have them in."""

from collections.abc import Callable, Sequence

import numpy as np

from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.binary import ADD, MUL, SUB, AddOptions, MulOptions, SubOptions
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.split import SPLIT, SplitOptions
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.ops.unary import COS, NEG, SIN
from litecl.interpreter.schema import TensorType
from support.build import Graph, model, randn

_OPTIONS = {ADD: AddOptions(), SUB: SubOptions(), MUL: MulOptions()}


class Rotated:
    """A graph that rotates rows [batch, words, heads, width], its first input."""

    def __init__(self, shape: Shape = (2, 5, 3, 12)) -> None:
        self.graph, self.shape, self.half = Graph(), shape, shape[-1] // 2
        self.x = self.graph.input(shape)

    def of(self, op: Op, *inputs: int) -> int:
        return self.graph.op(op, list(inputs), _OPTIONS.get(op, NoOptions()))

    def turns(self, width: int, words: Shape = (1, -1, 1)) -> tuple[int, int]:
        """Add cosines and sines as inputs. words: their dimensions before the last; -1 for all words."""
        shape = (*(self.shape[1] if n < 0 else n for n in words), width)
        return self.graph.input(shape), self.graph.input(shape)

    def angles(self, type_: TensorType = TensorType.INT32, frequencies: Array | None = None) -> tuple[int, int]:
        """Add cosines and sines of positions, an input, times frequencies."""
        g, words = self.graph, self.shape[1]
        positions = self.reshaped(g.input((words,), type_), (1, words, 1))
        numbers = g.node(CAST, (positions,), [_floats((1, words, 1))], CastOptions())[0]
        given = 10000.0 ** (-np.arange(self.half) / self.half) if frequencies is None else frequencies
        product = self.of(MUL, numbers, g.const(given.astype(np.float32).reshape(1, 1, -1)))
        made = (self.reshaped(self.of(op, product), (1, words, 1, self.half)) for op in (COS, SIN))
        return next(made), next(made)

    def reshaped(self, x: int, shape: Shape) -> int:
        return self.graph.op(RESHAPE, [x, self.graph.const(np.array(shape, np.int32))], ReshapeOptions(shape))

    def transposed(self, x: int, axes: Sequence[int]) -> int:
        return self.of(TRANSPOSE, x, self.graph.const(np.array(axes, np.int32)))

    def sliced(self, x: int, begin: int, size: int) -> int:
        shape = self.graph.tensors[x].static_shape
        edges = ([*[0] * (len(shape) - 1), begin], [*shape[:-1], size])
        return self.of(SLICE, x, *(self.graph.const(np.array(edge, np.int32)) for edge in edges))

    def halves(self, x: int) -> tuple[int, int]:
        return self.sliced(x, 0, self.half), self.sliced(x, self.half, self.half)

    def split(self, x: int) -> tuple[int, int]:
        shape = self.graph.tensors[x].static_shape
        part, axis = _floats((*shape[:-1], shape[-1] // 2)), self.graph.const(np.array(len(shape) - 1, np.int32))
        a, b = self.graph.node(SPLIT, (axis, x), [part, part], SplitOptions(2))
        return a, b

    def joined(self, *parts: int, axis: int = -1) -> int:
        return self.graph.op(CONCATENATION, list(parts), ConcatenationOptions(axis))

    def product(self, ab: tuple[int, int], cs: tuple[int, int]) -> int:
        """Add (a + ib) (c + is), its parts side by side."""
        (a, b), (c, s) = ab, cs
        real = self.of(SUB, self.of(MUL, a, c), self.of(MUL, b, s))
        return self.joined(real, self.of(ADD, self.of(MUL, b, c), self.of(MUL, s, a)))

    def sum(self, x: int, minus: Callable[[int], int], cs: tuple[int, int]) -> int:
        """Add x c + (-b, a) s."""
        a, b = self.halves(x)
        return self.of(ADD, self.of(MUL, x, cs[0]), self.of(MUL, self.joined(minus(b), a), cs[1]))

    def negative(self, x: int, by: float = -1.0) -> int:
        return self.of(MUL, x, self.graph.const(np.float32(by)))


def _floats(shape: Shape) -> TensorSpec:
    return TensorSpec(TensorType.FLOAT32, shape)


def rotate(x: Array, cosines: Array, sines: Array) -> Array:
    """Rotate the halves of rows in float64."""
    a, b = np.split(x.astype(np.float64), 2, -1)
    first, second = (np.split(t, 2, -1) if t.shape[-1] == x.shape[-1] else (t, t) for t in (cosines, sines))
    return np.concatenate([a * first[0] - b * second[0], b * first[1] + a * second[1]], -1)


FORMS: dict[str, Callable[[Rotated], int]] = {
    "parts": lambda r: r.product(r.halves(r.x), r.turns(r.half)),
    "split": lambda r: r.product(r.split(r.x), r.turns(r.half, (1, 1, 3))),
    "the other way": lambda r: r.product(r.turns(r.half), r.halves(r.x)),
    "one turn": lambda r: r.product(r.halves(r.x), r.turns(r.half, ())),
    "sum": lambda r: r.sum(r.x, lambda b: r.of(NEG, b), r.turns(r.shape[-1])),
    "times -1": lambda r: r.sum(r.x, r.negative, r.turns(r.shape[-1])),
}


def fed() -> tuple[bytes, list[Array]]:
    """Return a model that rotates rows, and what it is fed."""
    r, rng = Rotated(), np.random.default_rng(8)
    content = write(model(r.graph.build(FORMS["sum"](r))))
    return content, [randn(rng, *r.graph.tensors[t].static_shape) for t in r.graph.inputs]
