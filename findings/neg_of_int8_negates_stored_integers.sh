#!/usr/bin/env bash
# ai-edge-litert 2.3.0: NEG of INT8 negates the stored integer and ignores scale and zero point, of the default and of
# the reference kernels. With scale 0.1 and zero point 50, of operand and result, the real number -x is stored as 100 -
# q; LiteRT writes -q. It takes the file without an error. OpenVINO 2026.4.1 computes 100 - q.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   x as real numbers: [-7.0, -5.0, 0.0, 1.0, 5.0]
#   AUTO: stored [20, 0, -50, -60, -100], real [-3.0, -5.0, -10.0, -11.0, -15.0]
#   BUILTIN_REF: stored [20, 0, -50, -60, -100], real [-3.0, -5.0, -10.0, -11.0, -15.0]
#   OpenVINO: stored [120, 100, 50, 40, 0], real [7.0, 5.0, 0.0, -1.0, -5.0]

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


INT8 = tfl.TensorType.INT8
x = np.int8([-20, 0, 50, 60, 100])
tensors = [quantized([5], INT8, 0.1, 50, "x"), quantized([5], INT8, 0.1, 50, "y")]
content = file_of(tfl.BuiltinOperator.NEG, tensors, [0], [1], tfl.NegOptionsT(), version=1)


def real(q):
    return ((q.astype(int) - 50) * 0.1).round(1).tolist()


print(f"x as real numbers: {real(x)}")
for resolver in ("AUTO", "BUILTIN_REF"):
    got = run(content, resolver, x)
    print(f"{resolver}: stored {got.tolist()}, real {real(got)}")
    assert (got == -x).all()
got = in_openvino(content, x)
print(f"OpenVINO: stored {got.tolist()}, real {real(got)}")
assert (got == np.clip(100 - x.astype(int), -128, 127)).all()
EOF
