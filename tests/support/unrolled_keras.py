"""Recurrent layers step by step, node for node as converters write those of Keras with ``unroll=True``."""

from collections.abc import Callable, Sequence

import numpy as np

from litecl.interpreter.graph import Model
from litecl.interpreter.ops.binary import ADD, MINIMUM, MUL, SUB, AddOptions
from litecl.interpreter.ops.pack import PACK, UNPACK, PackOptions, UnpackOptions
from litecl.interpreter.ops.split import SPLIT, SplitOptions
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.ops.unary import LOGISTIC, RELU, TANH
from litecl.interpreter.schema import ActivationFunctionType
from litecl.perf.models.build import Graph, model
from support.unrolled import Layer, Sizes

State = tuple[int | None, int | None]
_SIZES = Sizes()


def _swapped(layer: Layer, x: int) -> int:
    return layer.op(TRANSPOSE, x, layer.ints(1, 0, 2))


def _steps(layer: Layer, x: int) -> list[int]:
    """The steps [B,F] of a sequence [B,T,F]."""
    count = layer.sizes.steps
    first = layer.op(UNPACK, _swapped(layer, x), options=UnpackOptions(count, 0))
    order = list(range(first, first + count))
    if "order" in layer.changes:
        order[0], order[1] = order[1], order[0]
    return order


def _parts(layer: Layer, x: int, count: int) -> list[int]:
    first = layer.op(SPLIT, layer.g.const(np.int32(-1)), x, options=SplitOptions(count))
    return list(range(first, first + count))


def _columns(layer: Layer, x: int, count: int) -> list[int]:
    """Parts as a STRIDED_SLICE each, the last one to the end."""
    units = layer.sizes.units
    bounds = [(units * k, units * (k + 1) if k + 1 < count else 0) for k in range(count)]
    return [
        layer.op(
            STRIDED_SLICE,
            x,
            *(layer.ints(0, first), layer.ints(0, last), layer.ints(1, 1)),
            options=StridedSliceOptions(begin_mask=1, end_mask=1 if last else 3),
        )
        for first, last in bounds
    ]


def _gate(layer: Layer, step: int, x: int, op: object) -> int:
    """An activation, which may be another at one step, or be clipped."""
    made = layer.op(RELU if layer.changed("activation", step) else op, x)
    return layer.op(MINIMUM, made, layer.g.const(np.float32(0.1))) if layer.changed("clip", step) else made


def _recurrent(layer: Layer, h: int | None, step: int, first: int, count: int) -> list[int]:
    """The products of gates with h, whose rows alone are left of them where h is zeros."""
    s = layer.sizes
    rows = slice(first * s.units, (first + count) * s.units)
    row = layer.row[rows]
    if h is None:
        return [layer.g.const(part) for part in np.tile(row, (s.batch, 1)).reshape(s.batch, count, -1).swapaxes(0, 1)]
    matrix = layer.matrix[rows] + np.float32(0.01 * layer.changed("weights", step))
    row = row + np.float32(0.01 * layer.changed("row", step))
    made = layer.product(h, layer.g.const(matrix), layer.g.const(row))
    return _columns(layer, made, count) if count > 1 else [made]


def _gru(layer: Layer, step: int, x: int, state: State) -> State:
    h, _ = state
    late = layer.changes.get("early", 0) == 0
    fed = _parts(layer, layer.product(x, layer.kernel, layer.input_bias), 3)
    made = _recurrent(layer, h, step, 0, 3 if late else 2)
    update, reset = (layer.op(LOGISTIC, layer.op(ADD, fed[k], made[k])) for k in (0, 1))
    if late:
        added = layer.op(MUL, reset, made[2])
    elif h is None:
        (added,) = _recurrent(layer, None, step, 2, 1)
    else:
        (added,) = _recurrent(layer, layer.op(MUL, reset, h), step, 2, 1)
    n = _gate(layer, step, layer.op(ADD, fed[2], added), TANH)
    new = layer.op(MUL, layer.op(SUB, layer.g.const(np.float32(1)), update), n)
    return (new if h is None else layer.op(ADD, layer.op(MUL, update, h), new)), None


def _lstm(layer: Layer, step: int, x: int, state: State) -> State:
    h, c = state
    total = layer.product(x, layer.kernel, None if h is not None else layer.input_bias)
    if h is not None:
        total = layer.op(ADD, total, _whole(layer, h, step))
        total = layer.op(ADD, total, layer.input_bias)
    i, f, g, o = _parts(layer, total, 4)
    new = layer.op(MUL, layer.op(LOGISTIC, i), _gate(layer, step, g, TANH))
    if c is not None:
        new = layer.op(ADD, layer.op(MUL, layer.op(LOGISTIC, f), c), new)
    return layer.op(MUL, layer.op(LOGISTIC, o), layer.op(TANH, new)), new


def _whole(layer: Layer, h: int, step: int) -> int:
    return layer.product(h, layer.again(step), None)


def _rnn(layer: Layer, step: int, x: int, state: State) -> State:
    """A step; its product with the sequence may be computed before ("ahead"), and its RELU be fused (2)."""
    relu, ahead = layer.changes.get("relu", 0), "ahead" in layer.changes
    total, added = x if ahead else layer.product(x, layer.kernel, layer.input_bias), None
    if state[0] is not None:
        added = _whole(layer, state[0], step)
    elif ahead:
        added = layer.g.const(np.zeros((layer.sizes.batch, layer.sizes.units), np.float32))
    activation = RELU if bool(relu) != layer.changed("activation", step) else TANH
    fused = relu == 2 and added is not None and activation is RELU
    if added is not None:
        options = AddOptions(ActivationFunctionType.RELU if fused else ActivationFunctionType.NONE)
        total = layer.op(ADD, total, added, options=options)
    made = total if fused else layer.op(activation, total)
    return (layer.op(MINIMUM, made, layer.g.const(np.float32(0.1))) if layer.changed("clip", step) else made), None


_CELLS: dict[str, tuple[int, Callable[[Layer, int, int, State], State]]] = {
    "LSTM": (4, _lstm),
    "GRU": (3, _gru),
    "RNN": (1, _rnn),
}


def unrolled_keras(
    kind: str,
    sizes: Sizes = _SIZES,
    *,
    layers: int = 1,
    read: Sequence[str] = ("sequence",),
    seed: int = 0,
    **changes: int,
) -> Model:
    """A model of layers of a kind over [B,T,F]. read: as for ``support.unrolled.unrolled``, but for "c".

    changes: the step at which something is another; early: 1 for a GRU whose reset gate scales the state itself.
    ahead, relu: of a simple layer (``_rnn``).
    """
    g, rng, s = Graph(), np.random.default_rng(seed), sizes
    x = g.input((s.batch, s.steps, s.depth))
    gates, cell = _CELLS[kind]
    hidden: list[int] = []
    for number in range(layers):
        layer = Layer(g, s, gates, rng, changes=changes, depth=s.units if number else s.depth, lead=())
        state: State = (None, None)
        hidden = []
        ahead = layer.product(x, layer.kernel, layer.input_bias, keep=True) if "ahead" in changes else x
        for step, fed in enumerate(_steps(layer, ahead)):
            skipped = layer.changed("skip", step)
            state = cell(layer, step, fed, (hidden[-2], state[1]) if skipped else state)
            hidden.append(state[0] or 0)
        x = _swapped(layer, layer.op(PACK, *hidden, options=PackOptions(s.steps, 0)))
    return model(g.build(*(x if name == "sequence" else hidden[int(name[1:] or -1)] for name in read)))
