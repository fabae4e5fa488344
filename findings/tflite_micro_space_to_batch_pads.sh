#!/usr/bin/env bash
# tflite-micro 0.dev20261023182759: SPACE_TO_BATCH_ND of INT8 does not pad with the zero point, which stands for 0. The
# kernel never sets the number that it pads with, so that the result depends on what was in memory. It takes the file
# without an error. LiteRT pads with the zero point.
#
# Seen, with Python 3.11 on x86-64 (the script fails if elements that are padding have the zero point, 7):
#   LiteRT [7, 7, 7, 5, 7, 7, 4, 6, 7, 2, 7, 8, 1, 3, 7, 9]
#   tflite-micro [0, 0, 0, 5, 0, 0, 4, 6, 0, 2, 0, 8, 1, 3, 7, 9], in other processes also with others than 0

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tflite-micro==0.dev20261023182759 ai-edge-litert==2.3.0 flatbuffers==25.12.19 numpy==2.4.6
"$folder/venv/bin/python" - <<'EOF'
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as tfl
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tflite_micro.python.tflite_micro import runtime

ZERO_POINT = 7
constants = [np.int32([2, 2]), np.int32([[1, 0], [1, 0]])]  # blocks of 2x2; a row above, a column to the left
step = {"scale": [0.5], "zeroPoint": [ZERO_POINT]}
tensors = [
    tfl.TensorT([1, 3, 3, 1], tfl.TensorType.INT8, name="x", quantization=tfl.QuantizationParametersT(**step)),
    tfl.TensorT([2], tfl.TensorType.INT32, 1, "block"),
    tfl.TensorT([2, 2], tfl.TensorType.INT32, 2, "paddings"),
    tfl.TensorT([4, 2, 2, 1], tfl.TensorType.INT8, name="y", quantization=tfl.QuantizationParametersT(**step)),
]
code = tfl.BuiltinOperator.SPACE_TO_BATCH_ND
options = tfl.BuiltinOptions.SpaceToBatchNDOptions, tfl.SpaceToBatchNDOptionsT()
graph = tfl.SubGraphT(tensors, [0], [3], [tfl.OperatorT(0, [0, 1, 2], [3], *options)])
buffers = [tfl.BufferT(), *(tfl.BufferT(np.frombuffer(c.tobytes(), np.uint8)) for c in constants)]
builder = flatbuffers.Builder()
codes = [tfl.OperatorCodeT(code, version=1, builtinCode=code)]
builder.Finish(tfl.ModelT(3, codes, [graph], buffers=buffers).Pack(builder), b"TFL3")
content = bytes(builder.Output())

x = np.arange(1, 10, dtype=np.int8).reshape(1, 3, 3, 1)
litert = Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
litert.allocate_tensors()
litert.set_tensor(0, x)
litert.invoke()
right = litert.get_tensor(3).ravel()
micro = runtime.Interpreter.from_bytes(content, arena_size=100_000)
micro.set_input(x, 0)
micro.invoke()
got = micro.get_output(0).ravel()
print("LiteRT", right.tolist())
print("tflite-micro", got.tolist())
padding = np.delete(np.arange(16), [3, 6, 7, 9, 11, 12, 13, 14, 15])
assert (right[padding] == ZERO_POINT).all()
assert (got[padding] != ZERO_POINT).all()
assert (np.delete(got, padding) == np.delete(right, padding)).all()
EOF
