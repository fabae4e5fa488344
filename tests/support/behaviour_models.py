"""Models whose behaviour under calls is compared with LiteRT's, and calls that get them ready."""

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Quantization, Signature, TensorSpec
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.quantize import QUANTIZE
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.schema import TensorType
from support.build import Graph, model, randn

Behaviour = Callable[[Any], Any]
RNG = np.random.default_rng(5)
X = randn(RNG, 1, 4)


def _layers(name: str) -> Graph:
    """softmax(x * w + b), with an open batch dimension: tensors 0 (x), 2, 4 and 5 (the result)."""
    g = Graph(name)
    x = g.input((1, 4), signature=(-1, 4))
    scaled = g.op(MUL, [x, g.const(randn(RNG, 4))], MulOptions())
    shifted = g.op(ADD, [scaled, g.const(randn(RNG, 4))], AddOptions())
    g.op(SOFTMAX, [shifted], SoftmaxOptions(1.0))
    return g


def _two_subgraphs() -> bytes:
    signatures = [
        Signature("first", {"b": 0}, {"y": 5}, 0),
        Signature("second", {"x": 0}, {"z": 5, "a": 4}, 1),
    ]
    return write(model(_layers("one").build(5), _layers("two").build(5, 4), signatures=signatures))


def _quantized() -> bytes:
    g = Graph()
    x = g.input((2, 3))
    by = Quantization(np.full(1, 0.5, np.float32), np.full(1, 3, np.int64))
    g.node(QUANTIZE, [x], [TensorSpec(TensorType.INT8, (2, 3), quantization=by)], QUANTIZE.options())
    g.tensors[1] = TensorSpec(TensorType.INT8, (2, 3), "quantized", quantization=by)
    return write(model(g.build(1)))


def _dynamic() -> bytes:
    """A reshape to a shape that is fed."""
    g = Graph()
    x, shape = g.input((2, 6)), g.input((2,), TensorType.INT32)
    (y,) = g.node(RESHAPE, [x, shape], [TensorSpec(TensorType.FLOAT32, ())], ReshapeOptions())
    return write(model(g.build(y)))


def _scalar() -> bytes:
    """The sum of an input and a constant without dimensions, which is tensor 1."""
    g = Graph()
    x = g.input((), TensorType.INT32)
    return write(model(g.build(g.op(ADD, [x, g.const(np.array(5, np.int32))], AddOptions()))))


INPUT, WEIGHT, INNER, OUTPUT, NONE = 0, 1, 2, 5, 99
CONTENT = write(model(_layers("main").build(OUTPUT), signatures=[Signature("serving_default", {"x": 0}, {"y": 5})]))
TWO, QUANTIZED, DYNAMIC, SCALAR = _two_subgraphs(), _quantized(), _dynamic(), _scalar()


def fresh(lib: Any, content: Any = CONTENT, **keywords: Any) -> Any:
    """An interpreter that has not been allocated."""
    return lib.Interpreter(model_content=content, **keywords)


def ready(lib: Any, content: Any = CONTENT, **keywords: Any) -> Any:
    """One that has."""
    interpreter = fresh(lib, content, **keywords)
    interpreter.allocate_tensors()
    return interpreter


def ran(lib: Any, x: Array = X, **keywords: Any) -> Any:
    """One that has run."""
    interpreter = ready(lib, **keywords)
    interpreter.set_tensor(INPUT, x)
    interpreter.invoke()
    return interpreter


def resized(lib: Any, shape: Any, *, allocate: bool = True, **keywords: Any) -> Any:
    """One whose input has another shape."""
    interpreter = ready(lib)
    interpreter.resize_tensor_input(INPUT, shape, **keywords)
    if allocate:
        interpreter.allocate_tensors()
    return interpreter


def runner(lib: Any) -> Any:
    """The runner of the only signature."""
    return ready(lib).get_signature_runner()


def form(array: Array) -> tuple[Any, ...]:
    """What is compared of memory that was never written."""
    return array.shape, array.dtype


def then(first: Any, *rest: Any) -> Any:
    """The last of values that were computed in order."""
    return (first, *rest)[-1]


class OtherEnum(enum.Enum):
    """No resolver."""

    AUTO_PILOT = 0
