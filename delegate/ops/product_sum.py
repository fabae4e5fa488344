"""The sum, or the mean, of the products of two tensors along adjacent dimensions; the products are never stored.

No model file contains this operator; the pass ``product_sums`` creates it.
"""

from math import prod

from litecl.delegate.cl_op import Call, ClOp, Record, Step
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.kit.schedule import chunks
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Shape


@dataclass(frozen=True)
class ProductSum(Record):
    """Sizes of the reduced dimension and the one within it, and both factors' steps along the outer and reduced one."""

    length: int
    inner: int
    a_outer: int
    a_length: int
    b_outer: int
    b_length: int
    divisor: float


@dataclass(frozen=True)
class ProductSumOptions:
    """The shape of the products, the first reduced dimension and the one after the last, and whether it is a mean."""

    shape: Shape
    first: int
    end: int
    mean: bool


def steps_of(factor: Shape, options: ProductSumOptions) -> tuple[int, int, int] | None:
    """Return the steps of a factor along the outer, reduced and inner dimensions of the products, 0 where it broadcasts
    along all of these; None if it broadcasts along only some of them.
    """
    own = (1,) * (len(options.shape) - len(factor)) + tuple(factor)
    steps = []
    for dims in (range(options.first), range(options.first, options.end), range(options.end, len(own))):
        real = [d for d in dims if options.shape[d] > 1]
        repeated = [own[d] == 1 for d in real]
        if any(repeated) and not all(repeated):
            return None
        steps.append(0 if all(repeated) else prod(own[real[-1] + 1 :]))
    outer, length, inner = steps
    return outer, length, inner


def _lower(call: Call) -> list[Step]:
    options: ProductSumOptions = call.options
    a, b, (y,) = call.input(0), call.input(1), call.outputs
    length, inner = prod(options.shape[options.first : options.end]), prod(options.shape[options.end :])
    (a_outer, a_length, a_inner), (b_outer, b_length, b_inner) = (_known(steps_of(x.shape, options)) for x in (a, b))
    sizes = ProductSum(length, inner, a_outer, a_length, b_outer, b_length, float(length if options.mean else 1))
    rows = inner == 1
    defines = {"A_STEP": a_length if rows else a_inner, "B_STEP": b_length if rows else b_inner}
    if a is b:
        defines["SQUARES"] = 1
    step = 1 if rows else min(inner, call.target.vector_width)
    share = chunks("product_sum", y.spec.size, call.target, step=step, work=length)
    entry = "product_rows" if rows else "product_columns"
    return [share.launch(entry, (a, b, y, sizes, *share.args), defines, 2 * length * y.spec.size)]


def _known(steps: tuple[int, int, int] | None) -> tuple[int, int, int]:
    assert steps is not None, "the pass checks the factors"
    return steps


PRODUCT_SUM = ClOp(composed("PRODUCT_SUM", ProductSumOptions), claim=takes(*FLOAT), lower=_lower)
