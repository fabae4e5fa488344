#!/usr/bin/env bash
# tf2onnx 1.17.0: FULLY_CONNECTED of an input of rank 3, which it flattens to rows (keep_num_dims False), loses its bias.
# No error or warning. Of an input of rank 2 the bias stays. Run here by onnxruntime 1.32.0.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes), with the bias [100, 200]:
#   input of shape [1, 6]: LiteRT [[155.0, 345.0]], tf2onnx [[155.0, 345.0]]
#   input of shape [1, 2, 3]: LiteRT [[155.0, 345.0]], tf2onnx [[55.0, 145.0]]

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


FLOAT32 = tfl.TensorType.FLOAT32
weights, bias = np.arange(12, dtype=np.float32).reshape(2, 6), np.float32([100, 200])
for shape in ([1, 6], [1, 2, 3]):
    x = np.arange(6, dtype=np.float32).reshape(shape)
    tensors = [
        tfl.TensorT(shape, FLOAT32, 0, "x"),
        tfl.TensorT([2, 6], FLOAT32, 1, "weights"),
        tfl.TensorT([2], FLOAT32, 2, "bias"),
        tfl.TensorT([1, 2], FLOAT32, 0, "y"),
    ]
    options = tfl.FullyConnectedOptionsT()
    content = file_of(tfl.BuiltinOperator.FULLY_CONNECTED, tensors, [0, 1, 2], [3], options, 1, [weights, bias])
    right, got = in_litert(content, x), in_onnxruntime(content, x)
    print(f"input of shape {shape}: LiteRT {right.tolist()}, tf2onnx {got.tolist()}")
    product = x.reshape(1, 6) @ weights.T
    assert (right == product + bias).all() and (got == (product if len(shape) == 3 else right)).all()
EOF
