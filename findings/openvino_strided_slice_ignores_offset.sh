#!/usr/bin/env bash
# openvino 2026.4.1: STRIDED_SLICE with `offset`, which says that `end` counts from `begin`, is computed as without it:
# other elements, of another shape than the file declares. No error or warning.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   begin 3, end 5, offset False: LiteRT [3.0, 4.0], OpenVINO [3.0, 4.0]
#   begin 3, end 5, offset True: LiteRT [3.0, 4.0, 5.0, 6.0, 7.0], OpenVINO [3.0, 4.0]

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
x = np.arange(10, dtype=np.float32)
begin, end = 3, 5
for offset in (False, True):
    count = end if offset else end - begin
    tensors = [
        tfl.TensorT([10], FLOAT32, 0, "x"),
        *(tfl.TensorT([1], INT32, i + 1, name) for i, name in enumerate(("begin", "end", "strides"))),
        tfl.TensorT([count], FLOAT32, 0, "y"),
    ]
    stored = [np.int32([n]) for n in (begin, end, 1)]
    options = tfl.StridedSliceOptionsT(offset=offset)
    content = file_of(tfl.BuiltinOperator.STRIDED_SLICE, tensors, [0, 1, 2, 3], [4], options, 8, stored)
    right, got = run(content, "AUTO", x), in_openvino(content, x)
    print(f"begin 3, end 5, offset {offset}: LiteRT {right.tolist()}, OpenVINO {got.tolist()}")
    assert (right == x[begin : begin + count]).all() and (got == x[begin:end]).all()
EOF
