"""Small models of the kinds that public programs run, by the file names that call patterns use."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from litecl.cases.detection_postprocess import CASES as DETECTIONS
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model, Quantization, Signature, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.control import CALL_ONCE, CallOnceOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.quantize import DEQUANTIZE, QUANTIZE
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.unary import TANH
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, VAR_HANDLE, VarHandleOptions
from litecl.interpreter.schema import Padding, TensorType
from support.build import Graph, model, randn

RNG = np.random.default_rng(16)


def _by(scale: float, zero: int) -> Quantization:
    return Quantization(np.full(1, scale, np.float32), np.full(1, zero, np.int64))


def _dense(g: Graph, x: int, inputs: int, outputs: int) -> int:
    weights, bias = g.const(randn(RNG, outputs, inputs, scale=0.3)), g.const(randn(RNG, outputs))
    return g.op(FULLY_CONNECTED, [x, weights, bias], FullyConnectedOptions())


def classifier() -> Model:
    """Images of 8 by 8 float pixels to ten probabilities."""
    g = Graph()
    x = g.input((1, 8, 8, 3))
    pooled = g.op(AVERAGE_POOL_2D, [x], Pool2DOptions(Padding.VALID, 2, 2, 2, 2))
    flat = g.op(RESHAPE, [pooled, g.const(np.array([1, 48], np.int32))], ReshapeOptions((1, 48)))
    y = g.op(SOFTMAX, [_dense(g, flat, 48, 10)], SoftmaxOptions(1.0))
    return model(g.build(y), signatures=[Signature("serving_default", {"image": x}, {"probabilities": y})])


def quantized_classifier() -> Model:
    """Images of bytes to ten scores in bytes."""
    g = Graph()
    x = g.input((1, 8, 8, 3), TensorType.UINT8)
    g.tensors[x] = TensorSpec(TensorType.UINT8, (1, 8, 8, 3), "image", quantization=_by(1 / 128, 128))
    pooled_spec = TensorSpec(TensorType.UINT8, (1, 4, 4, 3), quantization=_by(1 / 128, 128))
    (pooled,) = _quantized(g, AVERAGE_POOL_2D, [x], pooled_spec, Pool2DOptions(Padding.VALID, 2, 2, 2, 2))
    real = g.op(DEQUANTIZE, [pooled], DEQUANTIZE.options())
    flat = g.op(RESHAPE, [real, g.const(np.array([1, 48], np.int32))], ReshapeOptions((1, 48)))
    y = g.op(SOFTMAX, [_dense(g, flat, 48, 10)], SoftmaxOptions(1.0))
    score = TensorSpec(TensorType.UINT8, (1, 10), quantization=_by(1 / 256, 0))
    return model(g.build(*_quantized(g, QUANTIZE, [y], score, QUANTIZE.options())))


def _quantized(g: Graph, op: object, inputs: list[int], spec: TensorSpec, options: object) -> list[int]:
    outputs = g.node(op, inputs, [spec], options)  # type: ignore[arg-type]
    g.tensors[outputs[0]] = TensorSpec(spec.type, spec.shape, f"scores{outputs[0]}", quantization=spec.quantization)
    return outputs


def detector() -> Model:
    """Boxes, classes, scores and their number, from encoded boxes and class scores."""
    return next(case for case in DETECTIONS if case.name == "fast").model()


def denoiser() -> Model:
    """A frame and a state to a frame and the next state."""
    g = Graph()
    frame, state = g.input((1, 1, 16)), g.input((1, 2, 16))
    mixed = g.op(ADD, [frame, state], AddOptions())
    kept = g.op(TANH, [mixed], TANH.options())
    out = g.op(MEAN, [kept, g.const(np.array([1], np.int32))], ReducerOptions(keep_dims=True))
    return model(g.build(out, kept))


def wake_word() -> Model:
    """A frame to a score, with what was heard before in a resource variable."""
    resource = TensorSpec(TensorType.RESOURCE, ())
    main, init = Graph("main"), Graph("init")
    x = main.input((1, 8))
    main.node(CALL_ONCE, (), (), CallOnceOptions(1))
    (handle,) = main.node(VAR_HANDLE, (), (resource,), VarHandleOptions("", "heard"))
    (heard,) = main.node(READ_VARIABLE, [handle], [TensorSpec(TensorType.FLOAT32, (1, 8))], NoOptions())
    now = main.op(ADD, [main.op(MUL, [heard, main.const(np.float32(0.5))], MulOptions()), x], AddOptions())
    main.node(ASSIGN_VARIABLE, [handle, now], [], NoOptions())
    score = main.op(SOFTMAX, [_dense(main, now, 8, 2)], SoftmaxOptions(1.0))
    (filled,) = init.node(VAR_HANDLE, (), (resource,), VarHandleOptions("", "heard"))
    init.node(ASSIGN_VARIABLE, [filled, init.const(np.zeros((1, 8), np.float32))], [], NoOptions())
    return model(main.build(score), init.build())


def keypoints() -> Model:
    """42 coordinates to four classes."""
    g = Graph()
    x = g.input((1, 42))
    return model(g.build(g.op(SOFTMAX, [_dense(g, x, 42, 4)], SoftmaxOptions(1.0))))


def any_image() -> Model:
    """Images of any size, in bytes, to their mean colour."""
    g = Graph()
    x = g.input((1, 1, 1, 3), TensorType.UINT8, signature=(1, -1, -1, 3))
    real = g.op(CAST, [x], CastOptions(TensorType.UINT8, TensorType.FLOAT32))
    return model(g.build(g.op(MEAN, [real, g.const(np.array([1, 2], np.int32))], ReducerOptions())))


def waveform() -> Model:
    """A waveform of any length to one of the same, and its mean."""
    g = Graph()
    x = g.input((1,), signature=(-1,))
    y = g.op(TANH, [x], TANH.options())
    return model(g.build(y, g.op(MEAN, [y, g.const(np.array([0], np.int32))], ReducerOptions())))


MODELS: dict[str, Callable[[], Model]] = {
    "classifier.tflite": classifier,
    "quantized.tflite": quantized_classifier,
    "detector.tflite": detector,
    "denoiser.tflite": denoiser,
    "wake_word.tflite": wake_word,
    "keypoints.tflite": keypoints,
    "any_image.tflite": any_image,
    "waveform.tflite": waveform,
}


def write_all(folder: Path) -> None:
    """Write every model to a folder."""
    for name, make in MODELS.items():
        (folder / name).write_bytes(write(make()))
