#!/usr/bin/env bash
# openvino 2026.4.1: a WHILE of a .tflite file whose body returns two of its variables in the other order, (b, a) of
# (a, b), computes (b, b), without an error or a warning; the same loop that leaves them as they are is right. A WHILE
# in the body of another is refused: the frontend looks for the inner one's subgraphs in the outer one's.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   three turns that keep (10, 20): [10, 20]
#   three turns that swap (10, 20): [20, 20]
#   a loop in a loop: Incorrect subgraph idx 3. There are only 0subgraphs currently

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ai-edge-litert==2.3.0 flatbuffers==25.12.19 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps openvino==2026.4.1  # without its telemetry
"$folder/venv/bin/python" - "$folder/model.tflite" <<'EOF'
import sys
from pathlib import Path

import flatbuffers
import numpy as np
import openvino
from ai_edge_litert import schema_py_generated as tfl

OPS = tfl.BuiltinOperator.WHILE, tfl.BuiltinOperator.LESS, tfl.BuiltinOperator.ADD
STATE = [0, 1, 2]  # i, a, b
PATH = Path(sys.argv[1])


def graph(outputs, *nodes):
    """Return a subgraph: its tensors are i, a, b, a constant (1 or the limit), and results."""
    types = [tfl.TensorType.INT32] * 9
    if nodes[0].opcodeIndex == 1:
        types[4] = tfl.TensorType.BOOL
    constant = 2 if nodes[0].opcodeIndex == 1 else 1
    tensors = [tfl.TensorT([1], type, constant * (t == 3), f"t{t}") for t, type in enumerate(types)]
    return tfl.SubGraphT(tensors, STATE, outputs, [*nodes])


def less():
    return tfl.OperatorT(1, [0, 3], [4], tfl.BuiltinOptions.LessOptions, tfl.LessOptionsT())


def add():
    return tfl.OperatorT(2, [0, 3], [4], tfl.BuiltinOptions.AddOptions, tfl.AddOptionsT())


def loop(condition, body, inputs, outputs):
    return tfl.OperatorT(0, inputs, outputs, tfl.BuiltinOptions.WhileOptions, tfl.WhileOptionsT(condition, body))


def model(*graphs):
    """Return the model that OpenVINO reads."""
    constants = [tfl.BufferT(), *(tfl.BufferT(np.frombuffer(np.int32(n).tobytes(), np.uint8)) for n in (1, 3))]
    codes = [tfl.OperatorCodeT(min(code, 127), version=1, builtinCode=code) for code in OPS]
    builder = flatbuffers.Builder()
    builder.Finish(tfl.ModelT(3, codes, [*graphs], buffers=constants).Pack(builder), b"TFL3")
    PATH.write_bytes(builder.Output())
    return openvino.Core().read_model(PATH)


main = graph([4, 5, 6], loop(1, 2, STATE, [4, 5, 6]))
results = {}
for name, outputs in (("keep", [4, 1, 2]), ("swap", [4, 2, 1])):
    run = openvino.Core().compile_model(model(main, graph([4], less()), graph(outputs, add())), "CPU")
    got = [int(x[0]) for x in run([np.array([n], np.int32) for n in (0, 10, 20)]).values()][1:]
    print(f"three turns that {name} (10, 20): {got}")
    results[name] = got
assert results == {"keep": [10, 20], "swap": [20, 20]}

outer = graph([4, 6, 7], add(), loop(3, 4, STATE, [5, 6, 7]))
try:
    model(main, graph([4], less()), outer, graph([4], less()), graph([4, 1, 2], add()))
except Exception as error:
    (line,) = (line for line in str(error).splitlines() if line.startswith("Incorrect"))
    print(f"a loop in a loop: {line}")
    assert line == "Incorrect subgraph idx 3. There are only 0subgraphs currently"
else:
    raise AssertionError("the loop in a loop was read")
EOF
