#!/usr/bin/env bash
# openvino 2026.4.1: RESIZE_NEAREST_NEIGHBOR of a .tflite file with half_pixel_centers, as TensorFlow's
# tf.image.resize(method="nearest") exports it, is computed without it: element i is that at floor(i * scale), not at
# floor((i + 0.5) * scale). Only whole multiples of the size agree. No error or warning. LiteRT computes the latter.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes), of [0 1 2 3]:
#   to 5, half_pixel_centers: LiteRT [0, 1, 2, 2, 3], OpenVINO [0, 0, 1, 2, 3]
#   to 3, half_pixel_centers: LiteRT [0, 2, 3], OpenVINO [0, 1, 2]
#   to 8, half_pixel_centers: LiteRT [0, 0, 1, 1, 2, 2, 3, 3], OpenVINO [0, 0, 1, 1, 2, 2, 3, 3]

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
from ai_edge_litert.interpreter import Interpreter

RESIZE = tfl.BuiltinOperator.RESIZE_NEAREST_NEIGHBOR
X = np.arange(4, dtype=np.float32)


def file_of(size):
    """Return the bytes of a model that resizes [1, 1, 4, 1] to [1, 1, size, 1]."""
    kinds = tfl.TensorType
    tensors = [
        tfl.TensorT([1, 1, 4, 1], kinds.FLOAT32, name="x"),
        tfl.TensorT([2], kinds.INT32, buffer=1, name="size"),
        tfl.TensorT([1, 1, size, 1], kinds.FLOAT32, name="y"),
    ]
    buffers = [tfl.BufferT(), tfl.BufferT(np.array([1, size], np.int32).view(np.uint8))]
    options = tfl.ResizeNearestNeighborOptionsT(alignCorners=False, halfPixelCenters=True)
    node = tfl.OperatorT(0, [0, 1], [2], tfl.BuiltinOptions.ResizeNearestNeighborOptions, options)
    graph = tfl.SubGraphT(tensors, [0], [2], [node])
    builder = flatbuffers.Builder()
    codes = [tfl.OperatorCodeT(RESIZE, version=3, builtinCode=RESIZE)]
    builder.Finish(tfl.ModelT(3, codes, [graph], buffers=buffers).Pack(builder), b"TFL3")
    return bytes(builder.Output())


for size in (5, 3, 8):
    with open(sys.argv[1], "wb") as file:
        file.write(file_of(size))
    litert = Interpreter(sys.argv[1])
    litert.allocate_tensors()
    litert.set_tensor(0, X.reshape(1, 1, 4, 1))
    litert.invoke()
    right = litert.get_tensor(2).astype(int).ravel().tolist()
    compiled = openvino.Core().compile_model(sys.argv[1], "CPU")
    got = compiled([X.reshape(1, 1, 4, 1)])[0].astype(int).ravel().tolist()
    print(f"to {size}, half_pixel_centers: LiteRT {right}, OpenVINO {got}")
    assert right == [int((i + 0.5) * 4 / size) for i in range(size)]
    assert got == [i * 4 // size for i in range(size)]
EOF
