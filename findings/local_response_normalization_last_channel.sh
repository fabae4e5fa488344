#!/usr/bin/env bash
# ai-edge-litert 2.3.0: LOCAL_RESPONSE_NORMALIZATION divides by the squares of the channels from c - radius to c +
# radius. The reference kernel (BUILTIN_REF) leaves out the last of them, c + radius; the default one has all, as
# TensorFlow.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   by hand, all channels:     [0.1667 0.1333 0.1    0.0784 0.119 ]
#   by hand, without the last: [0.5    0.3333 0.2143 0.1538 0.119 ]
#   AUTO:                      [0.1667 0.1333 0.1    0.0784 0.119 ]
#   BUILTIN_REF:               [0.5    0.3333 0.2143 0.1538 0.119 ]

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


def file_of(graphs, *codes):
    """Return the bytes of a model; an operator's code is its place in ``codes``."""
    kinds = [tfl.OperatorCodeT(min(code, 127), version=1, builtinCode=code) for code in codes]
    builder = flatbuffers.Builder()
    builder.Finish(tfl.ModelT(3, kinds, graphs, buffers=buffers).Pack(builder), b"TFL3")
    return bytes(builder.Output())


radius, x = 1, np.float32([1, 2, 3, 4, 5])
tensors = [tfl.TensorT([1, 1, 1, 5], tfl.TensorType.FLOAT32) for _ in range(2)]
options = tfl.LocalResponseNormalizationOptionsT(radius, bias=1.0, alpha=1.0, beta=1.0)
node = tfl.OperatorT(0, [0], [1], tfl.BuiltinOptions.LocalResponseNormalizationOptions, options)
content = file_of([tfl.SubGraphT(tensors, [0], [1], [node])], tfl.BuiltinOperator.LOCAL_RESPONSE_NORMALIZATION)


def by_hand(last):
    """Return x / (1 + the sum of squares from c - radius to c + last)."""
    return np.array([x[c] / (1 + (x[max(c - radius, 0) : c + last + 1] ** 2).sum()) for c in range(5)])


print("by hand, all channels:    ", by_hand(radius).round(4))
print("by hand, without the last:", by_hand(radius - 1).round(4))
for resolver, last in ((OpResolverType.AUTO, radius), (OpResolverType.BUILTIN_REF, radius - 1)):
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x.reshape(1, 1, 1, 5))
    interpreter.invoke()
    got = interpreter.get_tensor(1).ravel()
    print(f"{resolver.name + ':':26}", got.round(4))
    np.testing.assert_allclose(got, by_hand(last), rtol=1e-5)
EOF
