#!/usr/bin/env bash
# ai-edge-litert 2.3.0: BATCH_MATMUL of INT8 or INT16 by INT8 loses the product where the second operand has a scale
# per column. LiteRT accepts the file, and every element of the result is the zero point. The same file with one scale
# is right. LiteRT shows the scale of a tensor with several scales as 0 (`quantization` of get_tensor_details,
# TfLiteTensor's params.scale), which would explain it.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   INT8 by INT8, scales [0.02]: right [[1, 3, 5], [14, 3, 0]]
#       AUTO: [[1, 3, 5], [14, 3, 0]]
#       BUILTIN_REF: [[1, 3, 5], [14, 3, 0]]
#   INT8 by INT8, scales [0.02, 0.04, 0.08]: right [[1, 0, 0], [14, -1, -22]]
#       AUTO: [[7, 7, 7], [7, 7, 7]]
#       BUILTIN_REF: [[7, 7, 7], [7, 7, 7]]
#   INT16 by INT8, scales [0.02]: right [[-556, -372, -181], [679, -418, -728]]
#       AUTO: [[-556, -371, -181], [679, -417, -728]]
#       BUILTIN_REF: [[-556, -371, -181], [679, -417, -728]]
#   INT16 by INT8, scales [0.02, 0.04, 0.08]: right [[-556, -743, -724], [679, -835, -2912]]
#       AUTO: [[0, 0, 0], [0, 0, 0]]
#       BUILTIN_REF: [[0, 0, 0], [0, 0, 0]]

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
    kinds = [tfl.OperatorCodeT(min(code, 127), version=4, builtinCode=code) for code in codes]
    builder = flatbuffers.Builder()
    builder.Finish(tfl.ModelT(3, kinds, graphs, buffers=buffers).Pack(builder), b"TFL3")
    return bytes(builder.Output())


def quantization(scales, zero=0):
    return tfl.QuantizationParametersT(scale=scales, zeroPoint=[zero] * len(scales), quantizedDimension=1)


def product(x, scales, type, result_scale, zero, resolver):
    kinds = tfl.TensorType
    tensors = [
        tfl.TensorT(x.shape, type, quantization=quantization([0.05])),
        constant(weights, kinds.INT8, quantization=quantization(scales)),
        tfl.TensorT([2, 3], type, quantization=quantization([result_scale], zero)),
    ]
    options = tfl.BuiltinOptions.BatchMatMulOptions, tfl.BatchMatMulOptionsT()
    graph = tfl.SubGraphT(tensors, [0], [2], [tfl.OperatorT(0, [0, 1], [2], *options)])
    content = file_of([graph], tfl.BuiltinOperator.BATCH_MATMUL)
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(2)


weights = np.int8([[50, -20, 30], [-70, 90, 10], [20, 40, -60], [80, 5, 70]])
values = np.array([[70, 2, -50, -99], [-38, -95, 90, 3]])
for name, number, zero, result_scale in (("INT8", np.int8, 7, 1.0), ("INT16", np.int16, 0, 0.01)):
    for scales in ([0.02], [0.02, 0.04, 0.08]):
        right = np.rint(values * 0.05 @ (weights * scales) / result_scale) + zero
        print(f"{name} by INT8, scales {scales}: right", right.astype(int).tolist())
        for resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN_REF):
            got = product(number(values), scales, getattr(tfl.TensorType, name), result_scale, zero, resolver)
            print(f"    {resolver.name}:", got.tolist())
            if len(scales) == 1:
                assert np.abs(got - right).max() <= 1
            else:
                assert (got == zero).all()
EOF
