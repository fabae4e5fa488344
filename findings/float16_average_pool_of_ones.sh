#!/usr/bin/env bash
# ai-edge-litert 2.3.0: AVERAGE_POOL_2D of FLOAT16 ones is less than 1 from a window of 48 x 48 on: its default kernels
# (XNNPACK) add up in FLOAT16, whose whole numbers end at 2048. MEAN of the same FLOAT16 tensor, over the same
# dimensions, is 1. LiteRT's own kernels refuse both in FLOAT16, so there is nothing to compare with in the package.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   32 x 32 ones: AVERAGE_POOL_2D 1.0, MEAN 1.0
#   48 x 48 ones: AVERAGE_POOL_2D 0.98828125, MEAN 1.0
#   64 x 64 ones: AVERAGE_POOL_2D 0.9443359375, MEAN 1.0
#   96 x 96 ones: AVERAGE_POOL_2D 0.9140625, MEAN 1.0

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ai-edge-litert==2.3.0 flatbuffers==25.12.19 numpy==2.4.6
"$folder/venv/bin/python" - <<'EOF'
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as tfl
from ai_edge_litert.interpreter import Interpreter

HALF, INT32 = tfl.TensorType.FLOAT16, tfl.TensorType.INT32


def file_of(size):
    """Return a model that averages an image of [1, size, size, 8] in both ways."""
    window = tfl.Pool2DOptionsT(tfl.Padding.VALID, 1, 1, size, size)
    axes = np.int32([1, 2])
    buffers = [tfl.BufferT(), tfl.BufferT(np.frombuffer(axes.tobytes(), np.uint8))]
    tensors = [
        tfl.TensorT([1, size, size, 8], HALF),
        tfl.TensorT([2], INT32, 1),
        tfl.TensorT([1, 1, 1, 8], HALF),
        tfl.TensorT([1, 1, 1, 8], HALF),
    ]
    operators = [
        tfl.OperatorT(0, [0], [2], tfl.BuiltinOptions.Pool2DOptions, window),
        tfl.OperatorT(1, [0, 1], [3], tfl.BuiltinOptions.ReducerOptions, tfl.ReducerOptionsT(True)),
    ]
    codes = [
        tfl.OperatorCodeT(code, version=1, builtinCode=code)
        for code in (tfl.BuiltinOperator.AVERAGE_POOL_2D, tfl.BuiltinOperator.MEAN)
    ]
    graph = tfl.SubGraphT(tensors, [0], [2, 3], operators)
    builder = flatbuffers.Builder()
    builder.Finish(tfl.ModelT(3, codes, [graph], buffers=buffers).Pack(builder), b"TFL3")
    return bytes(builder.Output())


for size in (32, 48, 64, 96):
    interpreter = Interpreter(model_content=file_of(size))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones((1, size, size, 8), np.float16))
    interpreter.invoke()
    pooled, mean = (interpreter.get_tensor(tensor)[0, 0, 0, 0] for tensor in (2, 3))
    print(f"{size} x {size} ones: AVERAGE_POOL_2D {pooled}, MEAN {mean}")
    assert mean == 1
    assert (pooled == 1) == (size == 32)
EOF
