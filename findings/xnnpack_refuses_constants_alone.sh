#!/usr/bin/env bash
# ai-edge-litert 2.3.0: a file whose only node dequantizes a FLOAT16 constant, with no inputs: allocate_tensors works,
# and invoke raises, since XNNPACK takes the node and fails to set up its runtime. The kernels without XNNPACK return
# the constant.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   BUILTIN_REF: [1.0, 2.5, -3.0]
#   BUILTIN_WITHOUT_DEFAULT_DELEGATES: [1.0, 2.5, -3.0]
#   AUTO: raises: failed to setup XNNPACK runtimeNode number 1 (TfLiteXNNPackDelegate) failed to invoke.

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


def run(content, resolver, *values):
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType[resolver])
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), values):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


FLOAT16, FLOAT32 = tfl.TensorType.FLOAT16, tfl.TensorType.FLOAT32
tensors = [tfl.TensorT([3], FLOAT16, 1, "half"), tfl.TensorT([3], FLOAT32, 0, "whole")]
content = file_of(tfl.BuiltinOperator.DEQUANTIZE, tensors, [0], [1], version=3, buffers=[np.float16([1, 2.5, -3])])
for resolver in ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO"):
    try:
        print(f"{resolver}: {run(content, resolver).tolist()}")
        assert resolver != "AUTO"
    except RuntimeError as error:
        print(f"{resolver}: raises: {str(error).splitlines()[0]}")
        assert resolver == "AUTO"
EOF
