#!/usr/bin/env bash
# tflite-micro 0.dev20261023182759: RELU6 of INT8 clamps the stored integer and writes it as it is, although the
# result's scale and zero point are others than the operand's. It takes the file without an error. LiteRT rescales, and
# so does tflite-micro's RELU.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   RELU: LiteRT [0.0, 0.0, 0.0, 1.0, 3.0, 6.35], tflite-micro [0.0, 0.0, 0.0, 1.0, 3.0, 6.35]
#   RELU6: LiteRT [0.0, 0.0, 0.0, 1.0, 3.0, 6.0], tflite-micro [3.2, 3.2, 3.2, 3.7, 4.7, 6.2]

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tflite-micro==0.dev20261023182759 ai-edge-litert==2.3.0 flatbuffers==25.12.19 numpy==2.4.6
"$folder/venv/bin/python" - "$folder/model.tflite" <<'EOF'
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as tfl
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tflite_micro.python.tflite_micro import runtime


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


def in_tflite_micro(content, *values):
    interpreter = runtime.Interpreter.from_bytes(content, arena_size=100_000)
    for index, value in enumerate(values):
        interpreter.set_input(value, index)
    interpreter.invoke()
    return interpreter.get_output(0)


INT8 = tfl.TensorType.INT8
x = np.int8([-100, -20, 0, 20, 60, 127])  # -5, -1, 0, 1, 3 and 6.35 by scale 0.05
for name in ("RELU", "RELU6"):
    tensors = [quantized([6], INT8, 0.05, 0, "x"), quantized([6], INT8, 0.025, -128, "y")]
    content = file_of(getattr(tfl.BuiltinOperator, name), tensors, [0], [1], version=2)
    right, got = run(content, "BUILTIN_REF", x), in_tflite_micro(content, x)
    real = [((q.astype(int) + 128) * 0.025).round(3).tolist() for q in (right, got)]
    print(f"{name}: LiteRT {real[0]}, tflite-micro {real[1]}")
    assert (np.abs(right.astype(int) - got).max() <= 1) == (name == "RELU")
assert (got == x.clip(0, 120)).all()
EOF
