#!/usr/bin/env bash
# tflite-micro 0.dev20261023182759 and ai-edge-litert 2.3.0: a subgraph that CALL_ONCE runs sets a resource variable to
# 5; the model returns the variable and then assigns its input to it. A reset doesn't give the first value back in
# either: tflite-micro's reset() makes the variable 0 and never runs CALL_ONCE again; LiteRT's reset_all_variables()
# leaves the variable as it is. Only a new interpreter starts from 5.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   inputs 1, 2, a reset, inputs 3, 4
#   tflite-micro: [5, 1, 0, 3]
#   LiteRT:       [5, 1, 2, 3]

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ai-edge-litert==2.3.0 tflite-micro==0.dev20261023182759 flatbuffers==25.12.19 \
    numpy==2.4.6
"$folder/venv/bin/python" - <<'EOF'
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as tfl
from ai_edge_litert.interpreter import Interpreter
from tflite_micro import runtime

CODES = tfl.BuiltinOperator.CALL_ONCE, tfl.BuiltinOperator.VAR_HANDLE
CODES += tfl.BuiltinOperator.ASSIGN_VARIABLE, tfl.BuiltinOperator.READ_VARIABLE


def node(code, inputs, outputs, options):
    kind = getattr(tfl.BuiltinOptions, type(options).__name__.removesuffix("T"))
    return tfl.OperatorT(CODES.index(getattr(tfl.BuiltinOperator, code)), inputs, outputs, kind, options)


def handle(output):
    return node("VAR_HANDLE", [], [output], tfl.VarHandleOptionsT("", "kept"))


def assign(variable, value):
    return node("ASSIGN_VARIABLE", [variable, value], [], tfl.AssignVariableOptionsT())


def file():
    """Return the bytes of the model."""
    five = tfl.BufferT(np.frombuffer(np.float32(5).tobytes(), np.uint8))
    x, variable, kept = tfl.TensorT([1]), tfl.TensorT([], tfl.TensorType.RESOURCE), tfl.TensorT([1])
    nodes = [
        node("CALL_ONCE", [], [], tfl.CallOnceOptionsT(1)),
        handle(1),
        node("READ_VARIABLE", [1], [2], tfl.ReadVariableOptionsT()),
        assign(1, 0),
    ]
    main = tfl.SubGraphT([x, variable, kept], [0], [2], nodes)
    first = tfl.SubGraphT([tfl.TensorT([1], buffer=1), variable], [], [], [handle(1), assign(1, 0)])
    codes = [tfl.OperatorCodeT(127, version=1, builtinCode=code) for code in CODES]
    builder = flatbuffers.Builder()
    builder.Finish(tfl.ModelT(3, codes, [main, first], buffers=[tfl.BufferT(), five]).Pack(builder), b"TFL3")
    return bytes(builder.Output())


micro = runtime.Interpreter.from_bytes(file(), arena_size=100_000)
litert = Interpreter(model_content=file())
litert.allocate_tensors()
results = {"tflite-micro": [], "LiteRT": []}
for number in (1, 2, 3, 4):
    if number == 3:
        micro.reset()
        litert.reset_all_variables()
    x = np.array([number], np.float32)
    micro.set_input(x, 0)
    micro.invoke()
    results["tflite-micro"].append(int(micro.get_output(0)[0]))
    litert.set_tensor(litert.get_input_details()[0]["index"], x)
    litert.invoke()
    results["LiteRT"].append(int(litert.get_tensor(litert.get_output_details()[0]["index"])[0]))
for name, values in results.items():
    print(f"{name}: {values}")
assert results == {"tflite-micro": [5, 1, 0, 3], "LiteRT": [5, 1, 2, 3]}
EOF
