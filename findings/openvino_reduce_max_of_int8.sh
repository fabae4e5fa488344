#!/usr/bin/env bash
# openvino 2026.4.1: REDUCE_MAX of an INT8 tensor of rank 3 or 4, with a scale and a zero point other than 0, as a
# fully quantized .tflite file has it, is -1 wherever the maximum is above -1. With zero point 0, or of rank 2, it is
# right, and so is REDUCE_MIN of these numbers. No error or warning.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   REDUCE_MAX of [3, 4], zero point 7: LiteRT [76, -7, 127], OpenVINO [76, -7, 127]
#   REDUCE_MIN of [3, 4], zero point 7: LiteRT [-50, -90, -128], OpenVINO [-50, -90, -128]
#   REDUCE_MAX of [3, 4, 1], zero point 0: LiteRT [76, -7, 127], OpenVINO [76, -7, 127]
#   REDUCE_MIN of [3, 4, 1], zero point 0: LiteRT [-50, -90, -128], OpenVINO [-50, -90, -128]
#   REDUCE_MAX of [3, 4, 1], zero point 7: LiteRT [76, -7, 127], OpenVINO [-1, -7, -1]
#   REDUCE_MIN of [3, 4, 1], zero point 7: LiteRT [-50, -90, -128], OpenVINO [-50, -90, -128]

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


def quantized(shape, kind, scale, zero, name, buffer=0):
    parameters = tfl.QuantizationParametersT(scale=[scale], zeroPoint=[zero])
    return tfl.TensorT(shape, kind, buffer, name, parameters)


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


INT8, INT32 = tfl.TensorType.INT8, tfl.TensorType.INT32
x = np.int8([[-50, 3, 76, 20], [-90, -7, -20, -33], [127, -128, 1, 0]])
for shape, zero in (([3, 4], 7), ([3, 4, 1], 0), ([3, 4, 1], 7)):
    tensors = [
        quantized(shape, INT8, 0.05, zero, "x"),
        tfl.TensorT([1], INT32, 1, "axis"),
        quantized([3, *shape[2:]], INT8, 0.05, zero, "y"),
    ]
    options = tfl.ReducerOptionsT(keepDims=False)
    for name in ("REDUCE_MAX", "REDUCE_MIN"):
        code = getattr(tfl.BuiltinOperator, name)
        content = file_of(code, tensors, [0, 1], [2], options, 2, [np.int32([1])])
        right, got = (f.ravel() for f in (run(content, "AUTO", x.reshape(shape)), in_openvino(content, x.reshape(shape))))
        print(f"{name} of {shape}, zero point {zero}: LiteRT {right.tolist()}, OpenVINO {got.tolist()}")
        wrong = name == "REDUCE_MAX" and len(shape) == 3 and zero != 0
        assert (right == (x.max(1) if name == "REDUCE_MAX" else x.min(1))).all()
        assert (got == (np.minimum(right, -1) if wrong else right)).all()
EOF
