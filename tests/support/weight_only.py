"""Products whose weights are stored as integers and dequantized."""

from dataclasses import dataclass

import numpy as np

from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.quantize import DEQUANTIZE
from litecl.interpreter.schema import ActivationFunctionType
from litecl.interpreter.schema import TensorType as T
from support.build import Graph, model, randn

RELU, NONE = ActivationFunctionType.RELU, ActivationFunctionType.NONE


@dataclass(frozen=True)
class Case:
    """A product of rows with weights [columns, depth]. blocks: scales of a row; 0 for one of all. along: the dimension
    that scales are given along. stays: whether the weights become floats.
    """

    type: T = T.INT8
    columns: int = 257
    depth: int = 320
    blocks: int = 1
    rows: int = 1
    zero: int = 0
    has_bias: bool = True
    activation: ActivationFunctionType = NONE
    has_residual: bool = False
    along: int = 0
    stays: bool = False


_LIMITS = {T.INT8: (-128, 128), T.UINT8: (0, 256), T.INT4: (-8, 8), T.INT2: (-2, 2)}


def stored(c: Case, rng: np.random.Generator) -> tuple[TensorSpec, Array]:
    """Return weights as a file has them, and their floats."""
    values = rng.integers(*_LIMITS[c.type], (c.columns, c.depth)).astype(c.type.dtype)
    shape = (1, 1) if not c.blocks else (1, c.depth) if c.along else (c.columns, c.blocks)
    scales = rng.uniform(0.01, 0.1, shape).astype(np.float32)
    scales[:, -1:] *= len(scales) == 1  # zeros
    block = c.depth // c.blocks if c.blocks > 1 else 0
    zeros = np.full(scales.shape if block else scales.size, c.zero, np.int64)
    by = Quantization(scales if block else scales.ravel(), zeros, 1 if block else c.along, block_size=block)
    floats = scales.astype(np.float64) if c.along else np.repeat(scales.astype(np.float64), c.depth // shape[1], axis=1)
    return TensorSpec(c.type, values.shape, "weights", values, by), (values.astype(np.float64) - c.zero) * floats


def build(c: Case, g: Graph, rng: np.random.Generator) -> tuple[int, list[Array], Array]:
    """Add a product; return its tensor, its inputs and the expected result."""
    spec, floats = stored(c, rng)
    if c.blocks == 1 and not c.along and c.columns > 9:
        floats[9], spec.quantization.scale[9] = 0, 0  # type: ignore[union-attr]
    g.tensors.append(spec)
    (weights,) = g.node(DEQUANTIZE, [len(g.tensors) - 1], [TensorSpec(T.FLOAT32, spec.shape)], NoOptions())
    x, bias = randn(rng, c.rows, c.depth), randn(rng, c.columns)
    feeds, wanted = [x], x @ floats.T + (bias if c.has_bias else 0)
    residual = c.has_residual
    options = FullyConnectedOptions(fused_activation_function=NONE if residual else c.activation)
    y = g.op(FULLY_CONNECTED, [g.input(x.shape), weights, g.const(bias) if c.has_bias else None], options)
    if residual:
        feeds.append(randn(rng, *wanted.shape))
        y = g.op(ADD, [y, g.input(wanted.shape)], AddOptions(fused_activation_function=c.activation))
        wanted = wanted + feeds[-1]
    return y, feeds, np.maximum(wanted, 0) if c.activation is RELU else wanted


def fed() -> tuple[bytes, list[Array]]:
    """Return a model of a product, and its inputs."""
    g = Graph()
    y, feeds, _ = build(Case(), g, np.random.default_rng(7))
    return write(model(g.build(y))), feeds
