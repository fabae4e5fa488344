#!/usr/bin/env bash
# openvino 2026.4.1: TRANSPOSE_CONV of a .tflite file with a fused RELU, which version 4 of the operator has, is
# computed without it: negative results stay. No error or warning. CONV_2D with a fused RELU, by the same weights, is
# right.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   TRANSPOSE_CONV, NONE: LiteRT [1.0, -2.0, 3.0, -4.0], OpenVINO [1.0, -2.0, 3.0, -4.0]
#   CONV_2D, NONE:        LiteRT [1.0, -2.0, 3.0, -4.0], OpenVINO [1.0, -2.0, 3.0, -4.0]
#   TRANSPOSE_CONV, RELU: LiteRT [1.0, 0.0, 3.0, 0.0], OpenVINO [1.0, -2.0, 3.0, -4.0]
#   CONV_2D, RELU:        LiteRT [1.0, 0.0, 3.0, 0.0], OpenVINO [1.0, 0.0, 3.0, 0.0]

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ai-edge-litert==2.3.0 flatbuffers==25.12.19 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps openvino==2026.4.1  # without its telemetry
"$folder/venv/bin/python" - "$folder/model.tflite" <<'EOF'
import sys

import flatbuffers
import numpy as np
import openvino
from ai_edge_litert import schema_py_generated as tfl
from ai_edge_litert.interpreter import Interpreter, OpResolverType


def file_of(code, tensors, inputs, outputs, options=None, version=1, buffers=()):
    """Return the bytes of a model of one node. tensors: TensorT; those of ``buffers`` are constants."""
    kind = None if options is None else getattr(tfl.BuiltinOptions, type(options).__name__[:-1])
    node = tfl.OperatorT(0, inputs, outputs, kind or 0, options)
    given = [t for t in inputs if not tensors[t].buffer]
    graph = tfl.SubGraphT(tensors, given, outputs, [node])
    codes = [tfl.OperatorCodeT(min(code, 127), version=version, builtinCode=code)]
    stored = [tfl.BufferT(), *(tfl.BufferT(np.frombuffer(b.tobytes(), np.uint8)) for b in buffers)]
    builder = flatbuffers.Builder()
    builder.Finish(tfl.ModelT(3, codes, [graph], buffers=stored).Pack(builder), b"TFL3")
    return bytes(builder.Output())


def run(content, resolver, *values):
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType[resolver])
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), values):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def in_openvino(content, *values):
    with open(sys.argv[1], "wb") as file:
        file.write(content)
    return openvino.Core().compile_model(sys.argv[1], "CPU")([*values])[0]


FLOAT32, INT32 = tfl.TensorType.FLOAT32, tfl.TensorType.INT32
RELU, NONE = tfl.ActivationFunctionType.RELU, tfl.ActivationFunctionType.NONE
x, weight, size = np.float32([1, -2, 3, -4]).reshape(1, 2, 2, 1), np.float32([[[[1]]]]), np.int32([1, 2, 2, 1])
for function, name in ((NONE, "NONE"), (RELU, "RELU")):
    whole = [
        tfl.TensorT([4], INT32, 1, "size"),
        tfl.TensorT([1, 1, 1, 1], FLOAT32, 2, "w"),
        tfl.TensorT([1, 2, 2, 1], FLOAT32, 0, "x"),
        tfl.TensorT([1], FLOAT32, 3, "bias"),
        tfl.TensorT([1, 2, 2, 1], FLOAT32, 0, "y"),
    ]
    options = tfl.TransposeConvOptionsT(tfl.Padding.SAME, 1, 1, function)
    stored = [size, weight, np.zeros(1, np.float32)]
    content = file_of(tfl.BuiltinOperator.TRANSPOSE_CONV, whole, [0, 1, 2, 3], [4], options, 4, stored)
    right, got = run(content, "AUTO", x).ravel(), in_openvino(content, x).ravel()
    print(f"TRANSPOSE_CONV, {name}: LiteRT {right.tolist()}, OpenVINO {got.tolist()}")
    assert (right == (x.ravel() if name == "NONE" else x.ravel().clip(0))).all() and (got == x.ravel()).all()
    options = tfl.Conv2DOptionsT(tfl.Padding.SAME, 1, 1, function)
    content = file_of(tfl.BuiltinOperator.CONV_2D, whole, [2, 1, 3], [4], options, 1, stored)
    right, got = run(content, "AUTO", x).ravel(), in_openvino(content, x).ravel()
    print(f"CONV_2D, {name}:        LiteRT {right.tolist()}, OpenVINO {got.tolist()}")
    assert (right == got).all()
EOF
