#!/usr/bin/env bash
# ai-edge-litert 2.3.0: a WHILE whose body returns its two variables in the other order, (b, a) of (a, b), computes
# (b, b). The body's outputs are copied over its inputs one by one, and the second copy reads what the first one
# wrote. TensorFlow's while_loop swaps them.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   (10, 20) swapped 0 times: [10, 20]
#   (10, 20) swapped 1 times: [20, 20]
#   (10, 20) swapped 2 times: [20, 20]

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


def graph(tensors, inputs, outputs, code, ins, outs, kind, options):
    kind = getattr(tfl.BuiltinOptions, kind)
    return tfl.SubGraphT(tensors, inputs, outputs, [tfl.OperatorT(code, ins, outs, kind, options)])


def number():
    return tfl.TensorT([], tfl.TensorType.INT32)


def swap():
    """Return the file of: while i < times: i, a, b = i + 1, b, a"""
    ops, one = tfl.BuiltinOperator, constant(np.array(1, np.int32), tfl.TensorType.INT32)
    main = [number() for _ in range(8)]  # i, times, a, b, and what becomes of them
    four, more = [0, 1, 2, 3], [4, 5, 6, 7]
    loop = graph(main, four, more, 0, four, more, "WhileOptions", tfl.WhileOptionsT(1, 2))
    tensors = [number(), number(), number(), number(), tfl.TensorT([], tfl.TensorType.BOOL)]
    condition = graph(tensors, four, [4], 1, [0, 1], [4], "LessOptions", tfl.LessOptionsT())
    tensors = [number(), number(), number(), number(), one, number()]
    body = graph(tensors, four, [5, 1, 3, 2], 2, [0, 4], [5], "AddOptions", tfl.AddOptionsT())
    return file_of([loop, condition, body], ops.WHILE, ops.LESS, ops.ADD)


for times in (0, 1, 2):
    interpreter = Interpreter(model_content=swap())
    interpreter.allocate_tensors()
    for index, value in enumerate((0, times, 10, 20)):
        interpreter.set_tensor(index, np.array(value, np.int32))
    interpreter.invoke()
    got = [int(interpreter.get_tensor(index)) for index in (6, 7)]
    print(f"(10, 20) swapped {times} times: {got}")
    assert got == ([20, 20] if times else [10, 20])
EOF
