#!/usr/bin/env bash
# ai-edge-litert 2.3.0: a WHILE body updates one variable by DYNAMIC_UPDATE_SLICE and returns the value from before as
# another. LiteRT updates in place, so "before" has the new element too. The same two results of a model without a
# WHILE are right.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   WHILE: updated [9.0, 2.0, 3.0], before [9.0, 2.0, 3.0]
#   no WHILE: updated [9.0, 2.0, 3.0], before [1.0, 2.0, 3.0]

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


def vector():
    return tfl.TensorT([3], tfl.TensorType.FLOAT32)


def update(tensors, x, *others):
    """Return the node, and the tensors: those given and the result, the last one."""
    tensors = [*tensors, constant(np.float32([9]), tfl.TensorType.FLOAT32)]
    tensors += [constant(np.int32([0]), tfl.TensorType.INT32), vector()]
    return tfl.OperatorT(3, [x, len(tensors) - 3, len(tensors) - 2], [len(tensors) - 1]), tensors


def number():
    return tfl.TensorT([], tfl.TensorType.INT32)


def loop():
    """Return the graphs of: while i < 1: i, x, before = i + 1, updated(x), x"""
    kinds, one = tfl.BuiltinOptions, constant(np.array(1, np.int32), tfl.TensorType.INT32)
    node = tfl.OperatorT(0, [0, 1, 2], [3, 4, 5], kinds.WhileOptions, tfl.WhileOptionsT(1, 2))
    tensors = [number(), vector(), vector(), number(), vector(), vector()]
    main = tfl.SubGraphT(tensors, [0, 1, 2], [3, 4, 5], [node])
    less = tfl.OperatorT(1, [0, 3], [4], kinds.LessOptions, tfl.LessOptionsT())
    tensors = [number(), vector(), vector(), one, tfl.TensorT([], tfl.TensorType.BOOL)]
    condition = tfl.SubGraphT(tensors, [0, 1, 2], [4], [less])
    add = tfl.OperatorT(2, [0, 3], [4], kinds.AddOptions, tfl.AddOptionsT())
    node, tensors = update([number(), vector(), vector(), one, number()], 1)
    return [main, condition, tfl.SubGraphT(tensors, [0, 1, 2], [4, 7, 1], [add, node])]


def alone():
    """Return the graph of: updated(x), x"""
    node, tensors = update([number(), vector()], 1)
    return [tfl.SubGraphT(tensors, [1], [4, 1], [node])]


ops, x = tfl.BuiltinOperator, np.float32([1, 2, 3])
for name, graphs, outputs, before in (("WHILE", loop(), (4, 5), [9, 2, 3]), ("no WHILE", alone(), (4, 1), [1, 2, 3])):
    content = file_of(graphs, ops.WHILE, ops.LESS, ops.ADD, ops.DYNAMIC_UPDATE_SLICE)
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        value = x if detail["index"] == 1 else np.zeros(detail["shape"], detail["dtype"])
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    got = [interpreter.get_tensor(index).tolist() for index in outputs]
    print(f"{name}: updated {got[0]}, before {got[1]}")
    assert got == [[9, 2, 3], before]
EOF
