#!/usr/bin/env bash
# ai-edge-litert 2.3.0: POW by an exponent of one element clamps infinities to the largest float, although POW has no
# activation. An exponent for each element keeps them, as does TensorFlow.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   x:              [   inf   -inf 1.e+30 2.e+00]
#   x ^ [3 3 3 3]:  [ inf -inf  inf   8.]
#   x ^ [3]:        [ 3.4028235e+38 -3.4028235e+38  3.4028235e+38  8.0000000e+00]

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
    kinds = [tfl.OperatorCodeT(min(code, 127), version=1, builtinCode=code) for code in codes]
    builder = flatbuffers.Builder()
    builder.Finish(tfl.ModelT(3, kinds, graphs, buffers=buffers).Pack(builder), b"TFL3")
    return bytes(builder.Output())


def power(x, exponents):
    tensors = [tfl.TensorT(shape, tfl.TensorType.FLOAT32) for shape in (x.shape, exponents.shape, x.shape)]
    node = tfl.OperatorT(0, [0, 1], [2], tfl.BuiltinOptions.PowOptions, tfl.PowOptionsT())
    content = file_of([tfl.SubGraphT(tensors, [0, 1], [2], [node])], tfl.BuiltinOperator.POW)
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.set_tensor(1, exponents)
    interpreter.invoke()
    return interpreter.get_tensor(2)


x, most = np.float32([np.inf, -np.inf, 1e30, 2]), np.finfo(np.float32).max
each, one = power(x, np.float32([3, 3, 3, 3])), power(x, np.float32([3]))
print("x:             ", x)
print("x ^ [3 3 3 3]: ", each)
print("x ^ [3]:       ", one)
assert each.tolist() == [np.inf, -np.inf, np.inf, 8]
assert one.tolist() == [most, -most, most, 8]
EOF
