#!/usr/bin/env bash
# ai-edge-litert 2.3.0: MUL of UINT32 with a fused RELU_N1_TO_1 is 1 for every element, 0 too: the lower bound, -1,
# wraps to 4294967295. INT32 is right, and so is UINT32 with RELU6.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   INT32 [ 0  5  1 30] * [2 0 1 2], RELU_N1_TO_1: [0, 0, 1, 1]
#   UINT32 [ 0  5  1 30] * [2 0 1 2], RELU_N1_TO_1: [1, 1, 1, 1]
#   UINT32 [ 0  5  1 30] * [2 0 1 2], RELU6: [0, 0, 1, 6]

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

buffers = [tfl.BufferT()]


def file_of(graphs, *codes):
    """Return the bytes of a model; an operator's code is its place in ``codes``."""
    kinds = [tfl.OperatorCodeT(min(code, 127), version=7, builtinCode=code) for code in codes]
    builder = flatbuffers.Builder()
    builder.Finish(tfl.ModelT(3, kinds, graphs, buffers=buffers).Pack(builder), b"TFL3")
    return bytes(builder.Output())


def product(x, y, type, function):
    tensors = [tfl.TensorT(x.shape, type) for _ in range(3)]
    options = tfl.BuiltinOptions.MulOptions, tfl.MulOptionsT(fusedActivationFunction=function)
    graph = tfl.SubGraphT(tensors, [0, 1], [2], [tfl.OperatorT(0, [0, 1], [2], *options)])
    interpreter = Interpreter(model_content=file_of([graph], tfl.BuiltinOperator.MUL))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.set_tensor(1, y)
    interpreter.invoke()
    return interpreter.get_tensor(2).tolist()


kinds, functions = tfl.TensorType, tfl.ActivationFunctionType
for name, function, number, expected in (
    ("RELU_N1_TO_1", functions.RELU_N1_TO_1, "INT32", [0, 0, 1, 1]),
    ("RELU_N1_TO_1", functions.RELU_N1_TO_1, "UINT32", [1, 1, 1, 1]),
    ("RELU6", functions.RELU6, "UINT32", [0, 0, 1, 6]),
):
    x, y = (np.array(values, number.lower()) for values in ([0, 5, 1, 30], [2, 0, 1, 2]))
    got = product(x, y, getattr(kinds, number), function)
    print(f"{number} {x} * {y}, {name}: {got}")
    assert got == expected
EOF
