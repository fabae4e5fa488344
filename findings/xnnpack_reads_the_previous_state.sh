#!/usr/bin/env bash
# ai-edge-litert 2.3.0: ADD doubles x, an RNN adds it to its state, and MUL reads that state. In the order of the file
# MUL reads the state that the RNN has just written, as the kernels without XNNPACK do. The default interpreter merges
# ADD and MUL into one XNNPACK node, which runs before the RNN: MUL reads the state of the run before.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   BUILTIN_WITHOUT_DEFAULT_DELEGATES: [state, 10 * state] = [[2.0, 20.0], [4.0, 40.0], [6.0, 60.0]]
#   AUTO: [state, 10 * state] = [[2.0, 0.0], [4.0, 20.0], [6.0, 40.0]]

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ai-edge-litert==2.3.0 flatbuffers==25.12.19 numpy==2.4.6
"$folder/venv/bin/python" - <<'EOF'
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as tfl
from ai_edge_litert.interpreter import Interpreter, OpResolverType

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


FLOAT32 = tfl.TensorType.FLOAT32
one, options = np.ones((1, 1), np.float32), tfl.BuiltinOptions
tensors = [
    tfl.TensorT([1, 1], FLOAT32),  # 0: x
    tfl.TensorT([1, 1], FLOAT32),  # 1: x + x
    constant(one, FLOAT32),
    constant(one, FLOAT32),
    constant(np.zeros(1, np.float32), FLOAT32),
    tfl.TensorT([1, 1], FLOAT32, isVariable=True),  # 5: the state, the sum of all x + x
    tfl.TensorT([1, 1], FLOAT32),  # 6: the same, the RNN's output
    constant(10 * one, FLOAT32),
    tfl.TensorT([1, 1], FLOAT32),  # 8: 10 * state
]
nodes = [
    tfl.OperatorT(0, [0, 0], [1], options.AddOptions, tfl.AddOptionsT()),
    tfl.OperatorT(1, [1, 2, 3, 4, 5], [6], options.RNNOptions, tfl.RNNOptionsT()),
    tfl.OperatorT(2, [5, 7], [8], options.MulOptions, tfl.MulOptionsT()),
]
ops = tfl.BuiltinOperator
content = file_of([tfl.SubGraphT(tensors, [0], [6, 8], nodes)], ops.ADD, ops.RNN, ops.MUL)
for resolver, read in (
    (OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, [20, 40, 60]),
    (OpResolverType.AUTO, [0, 20, 40]),
):
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    pairs = []
    for _ in range(3):
        interpreter.set_tensor(0, one)
        interpreter.invoke()
        pairs.append([interpreter.get_tensor(index).item() for index in (6, 8)])
    print(f"{resolver.name}: [state, 10 * state] =", pairs)
    assert pairs == [[2, read[0]], [4, read[1]], [6, read[2]]]
EOF
