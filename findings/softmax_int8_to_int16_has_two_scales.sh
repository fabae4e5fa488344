#!/usr/bin/env bash
# ai-edge-litert 2.3.0: SOFTMAX from INT8 to INT16, whose result has scale 1/32768 and zero point 0. The default kernel
# stores 32768 p. The reference kernel stores 65536 p - 32768, as if scale 1/65536 and zero point -32768 were declared.
# The sum of the default's results is 1, of the reference's -4.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   exact:       [0.223, 0.135, 0.082, 0.368, 0.018, 0.174]
#   AUTO:        [0.223, 0.135, 0.082, 0.368, 0.018, 0.174], sum 1.00
#   BUILTIN_REF: [-0.554, -0.729, -0.836, -0.265, -0.963, -0.653], sum -4.00

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ai-edge-litert==2.3.0 flatbuffers==25.12.19 numpy==2.4.6
"$folder/venv/bin/python" - "$folder/model.tflite" <<'EOF'
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as tfl
from ai_edge_litert.interpreter import Interpreter, OpResolverType


def file_of(code, tensors, inputs, outputs, options=None, version=1, buffers=()):
    """Return the bytes of a model of one node. tensors: TensorT; those of ``buffers`` are constants."""
    kind = None if options is None else getattr(tfl.BuiltinOptions, type(options).__name__[:-1])
    node = tfl.OperatorT(0, inputs, outputs, kind or 0, options)
    given = [t for t in inputs if not tensors[t].buffer]
    graph = tfl.SubGraphT(tensors, given, outputs, [node])
    codes = [tfl.OperatorCodeT(min(code, 127), version=version, builtinCode=code)]
    stored = [tfl.BufferT(), *(tfl.BufferT(np.frombuffer(b.tobytes(), np.uint8)) for b in buffers)]
    builder = flatbuffers.Builder()
    builder.Finish(tfl.ModelT(3, codes, [graph], buffers=stored).Pack(builder), b"TFL3")
    return bytes(builder.Output())


def quantized(shape, kind, scale, zero, name, buffer=0):
    parameters = tfl.QuantizationParametersT(scale=[scale], zeroPoint=[zero])
    return tfl.TensorT(shape, kind, buffer, name, parameters)


def run(content, resolver, *values):
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType[resolver])
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), values):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


INT8, INT16 = tfl.TensorType.INT8, tfl.TensorType.INT16
x = np.int8([[10, 0, -10, 20, -40, 5]])
exact = np.exp(x * 0.05) / np.exp(x * 0.05).sum()
tensors = [quantized([1, 6], INT8, 0.05, 0, "x"), quantized([1, 6], INT16, 1 / 32768, 0, "y")]
content = file_of(tfl.BuiltinOperator.SOFTMAX, tensors, [0], [1], tfl.SoftmaxOptionsT(beta=1.0), version=2)
print(f"exact:       {exact[0].round(3).tolist()}")
got = {name: run(content, name, x)[0].astype(int) for name in ("AUTO", "BUILTIN_REF")}
for name, stored in got.items():
    real = (stored / 32768).round(3)
    print(f"{name + ':':12} {real.tolist()}, sum {real.sum().round(2):.2f}")
assert np.abs(got["AUTO"] - exact[0] * 32768).max() < 20
assert np.abs(got["BUILTIN_REF"] - (exact[0] * 65536 - 32768)).max() < 40
EOF
