#!/usr/bin/env bash
# ai-edge-litert 2.3.0: a recurrent operator (RNN, here) goes on from one invoke to the next, since its state is a
# variable tensor. In the body of a WHILE the same operator begins anew whenever the WHILE runs: the state is reset.
# Nothing says so. Weights of 1 and no bias make the RNN a running sum of its inputs.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   main graph: inputs 1, 2, 3 give [1.0, 3.0, 6.0]
#   WHILE: inputs 1, 2, 3 give [1.0, 2.0, 3.0]

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


def constant(value, type, **fields):
    """Return a tensor with data."""
    buffers.append(tfl.BufferT(np.frombuffer(value.tobytes(), np.uint8)))
    return tfl.TensorT(value.shape, type, len(buffers) - 1, **fields)


def file_of(graphs, *codes):
    """Return the bytes of a model; an operator's code is its place in ``codes``."""
    kinds = [tfl.OperatorCodeT(min(code, 127), version=1, builtinCode=code) for code in codes]
    builder = flatbuffers.Builder()
    builder.Finish(tfl.ModelT(3, kinds, graphs, buffers=buffers).Pack(builder), b"TFL3")
    return bytes(builder.Output())


FLOAT32, INT32 = tfl.TensorType.FLOAT32, tfl.TensorType.INT32


def rnn(tensors, x):
    """Return a running sum: the node, and the tensors, of which the last one is the result."""
    weights = [constant(np.ones((1, 1), np.float32), FLOAT32) for _ in range(2)]
    bias, state = constant(np.zeros(1, np.float32), FLOAT32), tfl.TensorT([1, 1], FLOAT32, isVariable=True)
    n = len(tensors)
    options = tfl.BuiltinOptions.RNNOptions, tfl.RNNOptionsT()
    node = tfl.OperatorT(3, [x, n, n + 1, n + 2, n + 3], [n + 4], *options)
    return node, [*tensors, *weights, bias, state, tfl.TensorT([1, 1], FLOAT32)]


def variables():
    return [tfl.TensorT([], INT32), tfl.TensorT([1, 1], FLOAT32)]


def loop():
    """Return the graphs of: while i < 1: i, x = i + 1, rnn(x)"""
    kinds, one = tfl.BuiltinOptions, constant(np.array(1, np.int32), INT32)
    node = tfl.OperatorT(0, [0, 1], [2, 3], kinds.WhileOptions, tfl.WhileOptionsT(1, 2))
    main = tfl.SubGraphT(variables() + variables(), [0, 1], [2, 3], [node])
    less = tfl.OperatorT(1, [0, 2], [3], kinds.LessOptions, tfl.LessOptionsT())
    condition = tfl.SubGraphT([*variables(), one, tfl.TensorT([], tfl.TensorType.BOOL)], [0, 1], [3], [less])
    add = tfl.OperatorT(2, [0, 2], [3], kinds.AddOptions, tfl.AddOptionsT())
    node, tensors = rnn([*variables(), one, tfl.TensorT([], INT32)], 1)
    return [main, condition, tfl.SubGraphT(tensors, [0, 1], [3, len(tensors) - 1], [add, node])]


def alone():
    node, tensors = rnn(variables(), 1)
    return [tfl.SubGraphT(tensors, [0, 1], [0, len(tensors) - 1], [node])]


ops = tfl.BuiltinOperator
for name, graphs, expected in (("main graph", alone(), [1, 3, 6]), ("WHILE", loop(), [1, 2, 3])):
    interpreter = Interpreter(model_content=file_of(graphs, ops.WHILE, ops.LESS, ops.ADD, ops.RNN))
    interpreter.allocate_tensors()
    sums = []
    for x in (1, 2, 3):
        interpreter.set_tensor(0, np.array(0, np.int32))
        interpreter.set_tensor(1, np.float32([[x]]))
        interpreter.invoke()
        sums.append(interpreter.get_tensor(interpreter.get_output_details()[1]["index"]).item())
    print(f"{name}: inputs 1, 2, 3 give {sums}")
    assert sums == expected
EOF
