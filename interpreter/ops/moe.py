"""moe: a mixture of experts, each a gated layer; every token goes through the few experts that a router chose.

    out[token] = sum of  weight[token, r] scale[e] W_linear[e] (gelu(W_gate[e] x) * W_ff1[e] x)  over its routes r,
    where e = expert[token, r]

LiteRT's XNNPACK runs this custom operator (xnnpack/moe_delegate_kernel.cc) as litert-torch writes it. Weights are
[rows, experts, columns], in float32, INT8 with one scale per row, or INT4 with one per row or group of columns.
"""

from collections.abc import Iterator

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError, UnsupportedOp
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.ops.gelu import GELU, GeluOptions
from litecl.interpreter.schema import TensorType

_ACTIVATIONS = {"gelu": GeluOptions(False), "gelu_tanh": GeluOptions(True)}
_STORED = {"fp32": (TensorType.FLOAT32,), "int8": (TensorType.INT8,), "int4": (TensorType.INT4, TensorType.INT8)}
_FED = (TensorType.FLOAT32, TensorType.FLOAT32, TensorType.INT32)  # tokens, weights of routes, experts of routes


@dataclass(frozen=True)
class MoeOptions:
    num_experts: int = 0
    num_active_experts: int = 0
    model_dim: int = 0
    hidden_dim: int = 0
    weight_type: str = ""
    activation: str = "gelu"
    renormalized_top_weights: bool = True

    @property
    def has_scales(self) -> bool:
        """Return whether every matrix is followed by its scales."""
        return self.weight_type != "fp32"

    @property
    def matrices(self) -> tuple[tuple[str, Shape], ...]:
        """Return the weights in order: name, and [rows, experts, columns]."""
        inner = (self.hidden_dim, self.num_experts, self.model_dim)
        return ("gate", inner), ("ff1", inner), ("linear", inner[::-1])


def _infer(options: MoeOptions, inputs: Specs) -> list[TensorSpec]:
    _check_options(options)
    count = 10 if options.has_scales else 7
    if len(inputs) != count:
        raise ShapeError(f"expected {count} inputs with weights {options.weight_type}, got {len(inputs)}")
    x, routes, experts, *weights = require.present(inputs, count)
    for spec, type_ in zip((x, routes, experts), _FED, strict=True):
        require.types(spec, (type_,))
    tokens, left = divmod(x.size, options.model_dim)
    if left:
        raise ShapeError(f"expected tokens of {options.model_dim} numbers, got shape {list(x.static_shape)}")
    for spec in (routes, experts):
        _count("routes", spec, tokens * options.num_active_experts)
    for index, (name, shape) in enumerate(options.matrices):
        _check_matrix(options, name, weights[2 * index :] if options.has_scales else weights[index:], shape)
    _count("per_expert_scale", require.typed(weights[-1:], TensorType.FLOAT32)[0], options.num_experts)
    return [TensorSpec(TensorType.FLOAT32, x.shape)]


def _check_options(options: MoeOptions) -> None:
    if options.weight_type not in _STORED:
        raise UnsupportedOp(f"expected weight_type {', '.join(_STORED)}, got {options.weight_type!r}")
    if options.activation not in _ACTIVATIONS:
        raise UnsupportedOp(f"expected activation {' or '.join(_ACTIVATIONS)}, got {options.activation!r}")
    sizes = (options.num_experts, options.num_active_experts, options.model_dim, options.hidden_dim)
    if min(sizes) < 1 or options.num_active_experts > options.num_experts:
        raise ShapeError("expected sizes of at least 1, and no more active experts than experts")


def _check_matrix(options: MoeOptions, name: str, operands: Specs, shape: Shape) -> None:
    (weights,) = require.present(operands, 1)
    require.types(weights, _STORED[options.weight_type])
    packed = options.weight_type == "int4" and weights.type == TensorType.INT8
    size = require.elements(shape)
    _count(f"{name}_weight", weights, (size + 1) // 2 if packed else size)
    if not options.has_scales:
        return
    _, scales = require.present(operands, 2)
    require.types(scales, (TensorType.FLOAT32,))
    rows = shape[0] * shape[1]
    most = shape[2] if options.weight_type == "int4" else 1
    if scales.size % rows or not rows <= scales.size <= rows * most:
        raise ShapeError(f"expected {name}_scale of a multiple of {rows} numbers, got {list(scales.static_shape)}")


def _count(name: str, spec: TensorSpec, expected: int) -> None:
    if spec.size != expected:
        raise ShapeError(f"expected {name} of {expected} elements, got shape {list(spec.static_shape)}")


def _nibbles(packed: Array, size: int) -> Array:
    """Unpack 4-bit integers, two per byte, the first from its lower half."""
    pairs = np.stack([packed << 4, packed], axis=-1) >> 4
    return pairs.reshape(-1)[:size]


def _matrices(options: MoeOptions, operands: list[Array]) -> Iterator[tuple[Array, Array]]:
    """Yield the weights as stored, and scales of shape [rows, experts, groups of columns]."""
    step = 2 if options.has_scales else 1
    for index, (_, shape) in enumerate(options.matrices):
        weights, size = operands[step * index].reshape(-1), require.elements(shape)
        scales = operands[step * index + 1] if options.has_scales else np.ones(shape[:2], np.float32)
        stored = _nibbles(weights, size) if weights.size < size else weights
        yield stored.reshape(shape), scales.reshape(*shape[:2], -1)


def _of_expert(weights: Array, scales: Array, expert: int) -> Array:
    """Return the matrix of one expert, as floats; the last group of a row takes the remaining columns."""
    groups, columns = scales.shape[2], weights.shape[2]
    group = np.minimum(np.arange(columns) // (columns // groups), groups - 1)
    return np.asarray(weights[:, expert].astype(np.float32) * scales[:, expert, group])


def _run(options: MoeOptions, inputs: Inputs) -> list[Array]:
    x, routes, experts, *weights = require.arrays(inputs, len(inputs))
    tokens = x.reshape(-1, options.model_dim)
    routes, experts = (values.reshape(len(tokens), options.num_active_experts) for values in (routes, experts))
    chosen = require.indices(np.where(experts < 0, experts + options.num_experts, experts), options.num_experts)
    gate, ff1, linear = _matrices(options, weights)
    per_expert = weights[-1].reshape(-1)
    result = np.zeros(tokens.shape, np.float32)
    for expert in range(options.num_experts):
        limits.tick()
        token, route = np.nonzero(chosen == expert)
        if not token.size:
            continue
        fed = tokens[token]
        (active,) = GELU.run(_ACTIVATIONS[options.activation], [fed @ _of_expert(*gate, expert).T])
        hidden = active * (fed @ _of_expert(*ff1, expert).T)
        scale = per_expert[expert] * routes[token, route]
        np.add.at(result, token, hidden @ _of_expert(*linear, expert).T * scale[:, None])
    return [result.reshape(x.shape)]


MOE = Op("moe", options=MoeOptions, infer=_infer, run=_run, custom=True)
