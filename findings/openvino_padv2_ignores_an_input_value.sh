#!/usr/bin/env bash
# openvino 2026.4.1: PADV2 whose third operand, the value to pad with, is an input of the model pads with 0, whatever
# the value is. No error or warning. A value that the file stores as a constant is right, and LiteRT is right with
# both.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   9 as a constant: LiteRT [9.0, 1.0, 2.0, 3.0, 9.0, 9.0], OpenVINO [9.0, 1.0, 2.0, 3.0, 9.0, 9.0]
#   9 as an input: LiteRT [9.0, 1.0, 2.0, 3.0, 9.0, 9.0], OpenVINO [0.0, 1.0, 2.0, 3.0, 0.0, 0.0]

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
x = np.float32([1, 2, 3])
for stored in (True, False):
    tensors = [
        tfl.TensorT([3], FLOAT32, 0, "x"),
        tfl.TensorT([1, 2], INT32, 1, "paddings"),
        tfl.TensorT([], FLOAT32, 2 * stored, "value"),
        tfl.TensorT([6], FLOAT32, 0, "y"),
    ]
    buffers = [np.int32([[1, 2]]), np.float32(9)][: 1 + stored]
    content = file_of(tfl.BuiltinOperator.PADV2, tensors, [0, 1, 2], [3], tfl.PadV2OptionsT(), 1, buffers)
    values = [x] if stored else [x, np.float32(9)]
    right, got = run(content, "BUILTIN_REF", *values), in_openvino(content, *values)
    print(f"9 as {'a constant' if stored else 'an input'}: LiteRT {right.tolist()}, OpenVINO {got.tolist()}")
    assert (right == np.pad(x, (1, 2), constant_values=9)).all()
    assert (got == np.pad(x, (1, 2), constant_values=9 * stored)).all()
EOF
