"""Integer cases with other scales, zero points and values: what agrees at the scales of the cases may not at others."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from litecl.cases import Case
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.schema import TensorType as T

_RANDOM = {T.INT8: np.dtype(np.int8), T.UINT8: np.dtype(np.uint8), T.INT16: np.dtype(np.int16)}
_FIXED = ("LOGISTIC", "TANH", "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")  # operators whose output's scale is given
_BIASED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")
_LEAST, _MOST = np.log(1e-6), np.log(100)  # of scales


def rescaled(case: Case, rng: np.random.Generator) -> Case:
    """Return a case of the same shapes and options, with random scales, zero points and elements.

    Scales lie between 1e-6 and 100, each near the case's, or all, or any. Tensors of equal scales may keep them equal.
    """
    kind, alike = rng.integers(4), bool(case.op.states) or rng.random() < 0.6
    shift = rng.uniform(-6, 6) if kind == 1 else 0.0
    known: dict[tuple[object, ...], Quantization] = {}

    def drawn(q: Quantization, type_: T, constant: bool) -> Quantization:
        key = (type_, q.scale.tobytes(), q.zero_point.tobytes())
        if alike and key in known:
            return known[key]
        if case.op.states and type_ == T.INT16:  # scales of cells are powers of two
            return q
        log = np.log(np.maximum(q.scale, 1e-30)) + shift + rng.normal(0, 0.7)
        if kind == 3:
            log = rng.uniform(_LEAST, _MOST) + np.log(q.scale / q.scale.mean())
        zero = q.zero_point
        if type_ in _RANDOM and type_ != T.INT16 and q.scale.size == 1 and (not constant or zero.any()):
            limits = np.iinfo(_RANDOM[type_])
            zero = rng.integers(limits.min, limits.max + 1, zero.shape)
        known[key] = replace(q, scale=np.exp(np.clip(log, _LEAST, _MOST)).astype(np.float32), zero_point=zero)
        return known[key]

    inputs, quantization = list(case.inputs), dict(case.quantization)
    for i, q in case.quantization.items():
        value = inputs[i]
        if value is None or not q.scale.size:
            continue
        type_ = case.types.get(i, T.of(value.dtype))
        if type_ in _RANDOM:
            quantization[i] = drawn(q, type_, i in case.constants)
            if i not in case.op.states:
                inputs[i] = _values(value, rng, -127 if i in case.constants and type_ == T.INT8 else None)
    for i, q in case.quantization.items() if case.op.name in _BIASED else ():
        value = inputs[i]
        if value is not None and value.dtype in (np.int32, np.int64) and q.scale.size and i >= 2:
            product = quantization[i - 2].scale * quantization[i - 1].scale
            quantization[i] = replace(q, scale=product.astype(np.float32))
    options, outputs = case.options, case.outputs
    for name in ("alpha", "beta"):
        if hasattr(options, name):
            options = replace(options, **{name: float(np.float32(rng.uniform(0.05, 2)))})
    if outputs is not None and not (case.op.name in _FIXED and rng.random() < 0.9):
        outputs = tuple(_spec(spec, drawn) for spec in outputs)
    return replace(case, options=options, inputs=inputs, quantization=quantization, outputs=outputs)


def _values(value: Array, rng: np.random.Generator, least: int | None) -> Array:
    limits = np.iinfo(value.dtype)
    return rng.integers(limits.min if least is None else least, limits.max + 1, value.shape).astype(value.dtype)


def _spec(spec: TensorSpec, drawn: Callable[[Quantization, T, bool], Quantization]) -> TensorSpec:
    if spec.quantization is None or not spec.quantization.scale.size or spec.type not in _RANDOM:
        return spec
    return replace(spec, quantization=drawn(spec.quantization, spec.type, False))
