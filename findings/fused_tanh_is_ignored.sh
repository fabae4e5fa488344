#!/usr/bin/env bash
# ai-edge-litert 2.3.0: the schema has TANH among the activations that ADD and MUL may fuse. The file loads and runs,
# but the result is that of no activation, of the default and of the reference kernels. RELU6 is applied.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   ADD: plain [ 3.   -1.5   0.75  7.  ], its tanh [ 0.995 -0.905  0.635  1.   ]
#       AUTO: fused TANH [ 3.   -1.5   0.75  7.  ], fused RELU6 [3.   0.   0.75 6.  ]
#       BUILTIN_REF: fused TANH [ 3.   -1.5   0.75  7.  ], fused RELU6 [3.   0.   0.75 6.  ]
#   MUL: plain [ 2.    -1.     0.125 12.   ], its tanh [ 0.964 -0.762  0.124  1.   ]
#       AUTO: fused TANH [ 2.    -1.     0.125 12.   ], fused RELU6 [2.    0.    0.125 6.   ]
#       BUILTIN_REF: fused TANH [ 2.    -1.     0.125 12.   ], fused RELU6 [2.    0.    0.125 6.   ]

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


def fused(kind, x, y, function, resolver):
    tensors = [tfl.TensorT([4], tfl.TensorType.FLOAT32) for _ in range(3)]
    options = getattr(tfl, f"{kind.title()}OptionsT")(fusedActivationFunction=function)
    node = tfl.OperatorT(0, [0, 1], [2], getattr(tfl.BuiltinOptions, f"{kind.title()}Options"), options)
    content = file_of([tfl.SubGraphT(tensors, [0, 1], [2], [node])], getattr(tfl.BuiltinOperator, kind))
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.set_tensor(1, y)
    interpreter.invoke()
    return interpreter.get_tensor(2)


x, y, functions = np.float32([1, -2, 0.5, 4]), np.float32([2, 0.5, 0.25, 3]), tfl.ActivationFunctionType
for kind, plain in (("ADD", x + y), ("MUL", x * y)):
    print(f"{kind}: plain {plain}, its tanh {np.tanh(plain).round(3)}")
    for resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN_REF):
        tanh, relu6 = (fused(kind, x, y, f, resolver) for f in (functions.TANH, functions.RELU6))
        print(f"    {resolver.name}: fused TANH {tanh}, fused RELU6 {relu6}")
        assert (tanh == plain).all() and (relu6 == plain.clip(0, 6)).all()
EOF
