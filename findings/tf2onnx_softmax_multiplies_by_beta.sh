#!/usr/bin/env bash
# tf2onnx 1.17.0: SOFTMAX with a `beta` other than 1 becomes Softmax(x) * beta, not Softmax(x * beta): the results add up
# to beta. No error or warning. Run here by onnxruntime 1.32.0.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes), of [1 2 3 4]:
#   beta 1.0: LiteRT [0.032, 0.087, 0.237, 0.644], tf2onnx [0.032, 0.087, 0.237, 0.644], sum 1.0
#   beta 0.5: LiteRT [0.102, 0.167, 0.276, 0.455], tf2onnx [0.016, 0.044, 0.118, 0.322], sum 0.5
#   beta 2.0: LiteRT [0.002, 0.016, 0.117, 0.865], tf2onnx [0.064, 0.174, 0.474, 1.288], sum 2.0

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


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


FLOAT32 = tfl.TensorType.FLOAT32
x = np.float32([[1, 2, 3, 4]])
for beta in (1.0, 0.5, 2.0):
    tensors = [tfl.TensorT([1, 4], FLOAT32, 0, name) for name in "xy"]
    content = file_of(tfl.BuiltinOperator.SOFTMAX, tensors, [0], [1], tfl.SoftmaxOptionsT(beta=beta))
    right, got = in_litert(content, x), in_onnxruntime(content, x)
    shown = [[round(float(n), 3) for n in each[0]] for each in (right, got)]
    print(f"beta {beta}: LiteRT {shown[0]}, tf2onnx {shown[1]}, sum {got.sum():.1f}")
    assert np.allclose(right, softmax(x * beta)) and np.allclose(got, softmax(x) * beta)
EOF
