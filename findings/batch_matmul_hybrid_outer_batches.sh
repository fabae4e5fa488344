#!/usr/bin/env bash
# ai-edge-litert 2.3.0: BATCH_MATMUL of FLOAT32 by INT8 weights is wrong from the second outer batch on where the first
# operand has several outer and several inner batches. Its rows are quantized each by its own scale, and products are
# multiplied by that scale again: outer batch b takes the scales from row b * rows on, where b * inner batches * rows is
# right. Below, each row's largest element is twice that of the row before, so that a factor of 2^-4 says: the scale of
# four rows before.
# BUILTIN_REF and BUILTIN_WITHOUT_DEFAULT_DELEGATES are wrong. XNNPACK (AUTO) is right; so are one batch dimension, and
# a second operand whose inner batch dimension is 1, unless that is left out.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes): the binary logarithm of LiteRT's result over the
# right one, by row
#   [6, 2, 4] by [6, 4, 5]
#       AUTO, BUILTIN_REF: [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0]]
#   [2, 3, 2, 4] by [2, 3, 4, 5]
#       AUTO: [[[0, 0], [0, 0], [0, 0]], [[0, 0], [0, 0], [0, 0]]]
#       BUILTIN_REF: [[[0, 0], [0, 0], [0, 0]], [[-4, -4], [-4, -4], [-4, -4]]]
#   [2, 3, 2, 4] by [1, 1, 4, 5]
#       AUTO, BUILTIN_REF: [[[0, 0], [0, 0], [0, 0]], [[0, 0], [0, 0], [0, 0]]]
#   [2, 3, 1, 4] by [4, 5]
#       AUTO: [[[0], [0], [0]], [[0], [0], [0]]]
#       BUILTIN_REF: [[[0], [0], [0]], [[-2], [-2], [-2]]]

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

SCALE = 0.01


def product(x, weights, resolver):
    kinds = tfl.TensorType
    tensors = [
        tfl.TensorT(x.shape, kinds.FLOAT32),
        tfl.TensorT(weights.shape, kinds.INT8, 1, quantization=tfl.QuantizationParametersT(scale=[SCALE], zeroPoint=[0])),
        tfl.TensorT(np.matmul(x, weights).shape, kinds.FLOAT32),
    ]
    buffers = [tfl.BufferT(), tfl.BufferT(np.frombuffer(weights.tobytes(), np.uint8))]
    options = tfl.BuiltinOptions.BatchMatMulOptions, tfl.BatchMatMulOptionsT()
    graph = tfl.SubGraphT(tensors, [0], [2], [tfl.OperatorT(0, [0, 1], [2], *options)])
    code = tfl.BuiltinOperator.BATCH_MATMUL
    model = tfl.ModelT(3, [tfl.OperatorCodeT(code, version=4, builtinCode=code)], [graph], buffers=buffers)
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    interpreter = Interpreter(model_content=bytes(builder.Output()), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(2)


rng = np.random.default_rng(3)
for x_shape, weights_shape, far in (
    ([6, 2, 4], [6, 4, 5], 0),
    ([2, 3, 2, 4], [2, 3, 4, 5], -4),
    ([2, 3, 2, 4], [1, 1, 4, 5], 0),
    ([2, 3, 1, 4], [4, 5], -2),
):
    rows = x_shape[:-1]
    x = rng.uniform(0.5, 1, x_shape)
    x[..., 0] = 1  # the largest of each row, before the next line
    x = np.float32(x * 2.0 ** np.arange(np.prod(rows)).reshape(*rows, 1))
    weights = rng.integers(20, 128, weights_shape).astype(np.int8)
    print(x_shape, "by", weights_shape)
    for resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
        ratio = product(x, weights, resolver) / np.matmul(x, weights * SCALE)
        factors = np.log2(np.median(ratio, axis=-1))
        print(f"    {resolver.name}:", (np.rint(factors).astype(int)).tolist())
        right = np.zeros(rows)
        if resolver != OpResolverType.AUTO:
            right[1:] = far
        assert np.abs(factors - right).max() < 0.05, factors
EOF
