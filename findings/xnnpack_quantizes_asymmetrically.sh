#!/usr/bin/env bash
# ai-edge-litert 2.3.0: FullyConnectedOptions.asymmetric_quantize_inputs says how float activations are quantized for
# INT8 weights. The reference kernel obeys. The default one (XNNPACK) quantizes asymmetrically even if it is false, so
# that the numbers of one file differ.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   exact: [[ 5.9849997 10.319    ]]
#   asymmetric_quantize_inputs=False, AUTO: [[ 5.994902 10.316471]]
#   asymmetric_quantize_inputs=False, BUILTIN_REF: [[ 5.992126 10.28189 ]]
#   asymmetric_quantize_inputs=True, AUTO: [[ 5.994902 10.316471]]
#   asymmetric_quantize_inputs=True, BUILTIN_REF: [[ 5.9949017 10.31647  ]]

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
    kinds = [tfl.OperatorCodeT(min(code, 127), version=9, builtinCode=code) for code in codes]
    builder = flatbuffers.Builder()
    builder.Finish(tfl.ModelT(3, kinds, graphs, buffers=buffers).Pack(builder), b"TFL3")
    return bytes(builder.Output())


def product(x, weights, asymmetric, resolver):
    scales = tfl.QuantizationParametersT(scale=[0.01], zeroPoint=[0])
    tensors = [
        tfl.TensorT(x.shape, tfl.TensorType.FLOAT32),
        constant(weights, tfl.TensorType.INT8, quantization=scales),
        tfl.TensorT([1, 2], tfl.TensorType.FLOAT32),
    ]
    options = tfl.FullyConnectedOptionsT(asymmetricQuantizeInputs=asymmetric)
    node = tfl.OperatorT(0, [0, 1, -1], [2], tfl.BuiltinOptions.FullyConnectedOptions, options)
    content = file_of([tfl.SubGraphT(tensors, [0], [2], [node])], tfl.BuiltinOperator.FULLY_CONNECTED)
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(2)


x, weights = np.float32([[0.3, 0.7, 10, 3.1]]), np.int8([[127, -127, 64, 3], [1, -3, 64, 127]])
print("exact:", x @ (weights * np.float32(0.01)).T)
got = {}
for asymmetric in (False, True):
    for resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN_REF):
        got[asymmetric, resolver.name] = product(x, weights, asymmetric, resolver)
        print(f"asymmetric_quantize_inputs={asymmetric}, {resolver.name}:", got[asymmetric, resolver.name])
np.testing.assert_allclose(got[False, "AUTO"], got[True, "AUTO"], rtol=1e-5)
np.testing.assert_allclose(got[True, "AUTO"], got[True, "BUILTIN_REF"], rtol=1e-5)
assert (np.abs(got[False, "AUTO"] - got[False, "BUILTIN_REF"]) > 1e-3).all()
EOF
