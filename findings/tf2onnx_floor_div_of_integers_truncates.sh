#!/usr/bin/env bash
# tf2onnx 1.17.0: FLOOR_DIV and FLOOR_MOD of integers become Div without Floor, which rounds to 0: where the signs differ,
# the quotient is one too large, and the remainder has the sign of the dividend. Floats are right. No error or warning.
# Run here by onnxruntime 1.32.0.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes), of [-7 -7 7 7] and [3 -3 3 -3]:
#   FLOOR_DIV INT32: LiteRT [-3, 2, 2, -3], tf2onnx [-2, 2, 2, -2]
#   FLOOR_MOD INT32: LiteRT [2, -1, 1, -2], tf2onnx [-1, -1, 1, 1]
#   FLOOR_MOD FLOAT32: LiteRT [2.0, -1.0, 1.0, -2.0], tf2onnx [2.0, -1.0, 1.0, -2.0]

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ai-edge-litert==2.3.0 flatbuffers==25.12.19 numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 tensorflow==2.21.0 tf2onnx==1.17.0
"$folder/venv/bin/python" - "$folder" 2>"$folder/log" <<'EOF' || { tail -5 "$folder/log"; exit 1; }
import subprocess
import sys

import flatbuffers
import numpy as np
import onnxruntime
from ai_edge_litert import schema_py_generated as tfl
from ai_edge_litert.interpreter import Interpreter


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


def in_litert(content, *values):
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), values):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def in_onnxruntime(content, *values):
    model, onnx = f"{sys.argv[1]}/model.tflite", f"{sys.argv[1]}/model.onnx"
    with open(model, "wb") as file:
        file.write(content)
    convert = [sys.executable, "-m", "tf2onnx.convert", "--tflite", model, "--output", onnx, "--opset", "18"]
    subprocess.run(convert, check=True, stdout=sys.stderr)
    session = onnxruntime.InferenceSession(onnx, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([each.name for each in session.get_inputs()], values)))[0]


x, y = np.int32([-7, -7, 7, 7]), np.int32([3, -3, 3, -3])
floored = {"FLOOR_DIV": x // y, "FLOOR_MOD": x % y}
truncated = {"FLOOR_DIV": np.trunc(x / y), "FLOOR_MOD": np.fmod(x, y)}
for op, kind, dtype in (
    ("FLOOR_DIV", "INT32", np.int32),
    ("FLOOR_MOD", "INT32", np.int32),
    ("FLOOR_MOD", "FLOAT32", np.float32),
):
    tensors = [tfl.TensorT([4], getattr(tfl.TensorType, kind), 0, name) for name in "xyz"]
    options = tfl.FloorDivOptionsT() if op == "FLOOR_DIV" else tfl.FloorModOptionsT()
    content = file_of(getattr(tfl.BuiltinOperator, op), tensors, [0, 1], [2], options)
    values = x.astype(dtype), y.astype(dtype)
    right, got = in_litert(content, *values), in_onnxruntime(content, *values)
    print(f"{op} {kind}: LiteRT {right.tolist()}, tf2onnx {got.tolist()}")
    assert (right == floored[op]).all() and (got == (truncated if kind == "INT32" else floored)[op]).all()
EOF
