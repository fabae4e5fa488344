#!/usr/bin/env bash
# tflite-micro 0.dev20261023182759: MUL of INT16 without a scale, plain integers, is 0 for every element. It takes the
# file without an error. LiteRT multiplies.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   MUL of [4, -3, 100, 7] and [2, 5, 20, -1]: LiteRT [8, -15, 2000, -7], tflite-micro [0, 0, 0, 0]

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


INT16 = tfl.TensorType.INT16
x, y = np.int16([4, -3, 100, 7]), np.int16([2, 5, 20, -1])
tensors = [tfl.TensorT([4], INT16, 0, name) for name in ("x", "y", "z")]
content = file_of(tfl.BuiltinOperator.MUL, tensors, [0, 1], [2], tfl.MulOptionsT(), 5)
right, got = run(content, "BUILTIN_REF", x, y), in_tflite_micro(content, x, y)
print(f"MUL of {x.tolist()} and {y.tolist()}: LiteRT {right.tolist()}, tflite-micro {got.tolist()}")
assert (right == x * y).all() and not got.any()
EOF
