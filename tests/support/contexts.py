"""Graphs around an operator in which the delegate fuses, joins or cuts, if the operator's record allows it."""

from collections.abc import Callable

import numpy as np

from litecl.interpreter.graph import Quantization, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary, unary
from litecl.interpreter.ops.pack import PACK, PackOptions
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.split import SPLIT, SplitOptions
from support.nets import IMAGE, INT8, Domain, Net, Variant, add_one, by, conv, join, plus, times


def activated(*ops: Op) -> Callable[[Net, Variant], list[int]]:
    return lambda g, f: [g.apply(op, [f(g, g.x(IMAGE))]) for op in ops]


def padded(g: Net, f: Variant) -> list[int]:
    """Zeros around the image, once with two readers."""
    amounts = g.const(np.array([(0, 0), (2, 1), (1, 3), (0, 0)], np.int32))
    one, other = (g.apply(PAD, [g.x(IMAGE), amounts]) for _ in range(2))
    return [f(g, one), f(g, other), other]


def swish(g: Net, f: Variant) -> list[int]:
    y = f(g, g.x(IMAGE))
    return [g.apply(binary.MUL, [y, g.apply(unary.LOGISTIC, [y], by_=_sigmoid(g.domain))], binary.MulOptions())]


def _sigmoid(domain: Domain) -> Quantization:
    """The scale that TensorFlow Lite wants of the results of LOGISTIC."""
    bits = 8 * domain.type.dtype.itemsize
    return by(2.0**-15) if bits == 16 else by(2.0**-8, -128 if domain.type == INT8 else 0)


def residual(g: Net, f: Variant) -> list[int]:
    """An addend that is fed, made before, made after, a part of something, the other's own; and what follows it."""
    y = [f(g, g.x(IMAGE)) for _ in range(4)]
    before = g.apply(unary.RELU, [g.x(g.shape(y[0]))])
    sums = [plus(g, y[0], g.x(g.shape(y[0]))), plus(g, before, y[1])]
    after = g.apply(unary.RELU, [g.x(g.shape(y[0]))])
    part = f(g, g.x(IMAGE))
    joined = join(g, part, after)
    return [g.apply(unary.RELU6, sums[:1]), sums[1], plus(g, y[2], after), plus(g, y[3], part), joined]


def chained(g: Net, f: Variant) -> list[int]:
    """Element-wise operators before and after."""
    x = g.apply(binary.MUL, [g.apply(unary.RELU, [g.x(IMAGE)]), half(g)], binary.MulOptions())
    y = f(g, x)
    for _ in range(2):
        y = times(g, add_one(g, y))
    return [g.apply(unary.RELU6, [y])]


def half(g: Net) -> int:
    """Multiply by a factor that leaves floats exact, so that values quantized at run time agree to the last bit."""
    return g.const(np.float32(0.5)) if g.domain.quantization is None else g.known((1,))


def joined(g: Net, f: Variant) -> list[int]:
    """The first of several parts, a later one, of rows and of whole images, read beside, and in something yet wider."""
    y = [f(g, g.x(IMAGE)) for _ in range(8)]
    wide = conv(32)
    same_image = g.x((*g.shape(y[0])[:-1], 32)) if len(g.shape(y[0])) != 4 else wide(g, g.x((*g.shape(y[0])[:3], 8)))
    inner = join(g, y[0], y[1])
    results = [join(g, same_image, y[2], y[0]), join(g, y[3], same_image), join(g, inner, y[4]), times(g, y[4])]
    return [*results, join(g, y[5], y[6], axis=0), join(g, y[7], axis=0)]


def packed(g: Net, f: Variant) -> list[int]:
    y = [f(g, g.x(IMAGE)) for _ in range(4)]
    return [g.apply(PACK, y[:2], PackOptions(2, 0)), g.apply(PACK, y[2:], PackOptions(2, -1))]


def cut(g: Net, f: Variant) -> list[int]:
    """Read a part of a tensor: some images, some channels, a box."""
    results = []
    for axis in (0, 3):
        shape = [2 * size if i == axis else size for i, size in enumerate(IMAGE)]
        whole = g.apply(unary.RELU, [g.x(shape)])
        specs = [TensorSpec(g.domain.type, IMAGE)] * 2
        parts = g.node(SPLIT, [g.const(np.int32(axis)), whole], specs, SplitOptions(2))
        results += [f(g, g.quantized(part)) for part in parts]
    begin, size = (g.const(np.array(values, np.int32)) for values in ([1, 0, 0, 0], IMAGE))
    return [*results, f(g, g.apply(SLICE, [g.apply(unary.RELU, [g.x((4, *IMAGE[1:]))]), begin, size]))]


def read_in_rows(g: Net, f: Variant) -> list[int]:
    """Read rows of a wider tensor: its first part, and a later one."""
    results = []
    for order in (1, -1):
        parts = [conv(32)(g, g.x(IMAGE)), conv(8)(g, g.x(IMAGE))][::order]
        results += [join(g, *parts), *(f(g, part) for part in parts)]
    return results


def kept(g: Net, f: Variant) -> list[int]:
    """Return results that would be fused if they weren't outputs."""
    y = f(g, g.x(IMAGE))
    return [y, g.apply(unary.RELU6, [y]), join(g, y, y), join(g, f(g, g.x(IMAGE)), y)]


def held(g: Net, f: Variant) -> list[int]:
    """Read a variable, add a variable, and give one to a chain."""
    y = f(g, g.held(IMAGE))
    sum_ = plus(g, f(g, g.x(IMAGE)), g.held(g.shape(y)))
    return [plus(g, times(g, y), g.held(g.shape(y))), sum_, join(g, g.held(g.shape(y)), y)]


CONTEXTS: dict[str, Callable[[Net, Variant], list[int]]] = {
    "pads before": padded,
    "activations after": activated(unary.RELU6, unary.RELU),
    "smooth activations after": activated(unary.TANH, unary.HARD_SWISH),
    "SWISH after": swish,
    "a residual after": residual,
    "a chain around": chained,
    "joined": joined,
    "packed": packed,
    "cut before": cut,
    "read in rows": read_in_rows,
    "kept": kept,
    "variables": held,
}
