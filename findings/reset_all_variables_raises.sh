#!/usr/bin/env bash
# ai-edge-litert 2.3.0: an RNN takes its state's shape from the batch: SHAPE, STRIDED_SLICE, then PACK or
# CONCATENATION with the number of units, and FILL into the variable tensor. allocate_tensors and invoke work with
# either operator, but with PACK reset_all_variables raises, before an invoke and after it: the state is then a tensor
# of dynamic allocation (4, kTfLiteDynamic), and only those planned in advance are reset. With CONCATENATION it works.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   PACK
#       before invoke: raises: tensor.allocation_type != kTfLiteCustom (4 != 6)
#       after invoke:  raises: tensor.allocation_type != kTfLiteCustom (4 != 6)
#   CONCATENATION
#       before invoke: works
#       after invoke:  works

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ai-edge-litert==2.3.0 flatbuffers==25.12.19 numpy==2.4.6
"$folder/venv/bin/python" - <<'EOF'
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as tfl
from ai_edge_litert.interpreter import Interpreter

buffers = [tfl.BufferT()]


def constant(value, type, **fields):
    """Return a tensor with data."""
    buffers.append(tfl.BufferT(np.frombuffer(value.tobytes(), np.uint8)))
    return tfl.TensorT(value.shape, type, len(buffers) - 1, **fields)


def file_of(graphs, *codes):
    """Return the bytes of a model; an operator's code is its place in ``codes``."""
    kinds = [tfl.OperatorCodeT(min(code, 127), version=1, builtinCode=code) for code in codes]
    builder = flatbuffers.Builder()
    builder.Finish(tfl.ModelT(3, kinds, graphs, buffers=buffers).Pack(builder), b"TFL3")
    return bytes(builder.Output())


FLOAT32, INT32 = tfl.TensorType.FLOAT32, tfl.TensorType.INT32
UNITS = 4


def stateful(pack):
    """Return the file of an RNN whose state has the shape [batch, UNITS]."""
    ops, kinds = tfl.BuiltinOperator, tfl.BuiltinOptions
    part = [] if pack else [1]  # PACK joins scalars, CONCATENATION vectors
    tensors = [
        tfl.TensorT([1, 3], FLOAT32, shapeSignature=[-1, 3]),
        tfl.TensorT([2], INT32),  # the input's shape
        constant(np.int32([0]), INT32),
        constant(np.int32([1]), INT32),
        tfl.TensorT(part, INT32),  # the batch
        constant(np.full(part, UNITS, np.int32), INT32),
        tfl.TensorT([2], INT32),  # the state's shape
        constant(np.array(0, np.float32), FLOAT32),
        tfl.TensorT([1, UNITS], FLOAT32, isVariable=True),
        *(constant(np.ones(shape, np.float32), FLOAT32) for shape in ((UNITS, 3), (UNITS, UNITS), UNITS)),
        tfl.TensorT([1, UNITS], FLOAT32),
    ]
    slicing = tfl.StridedSliceOptionsT(shrinkAxisMask=1 if pack else 0)
    join, joining = ops.CONCATENATION, (kinds.ConcatenationOptions, tfl.ConcatenationOptionsT())
    if pack:
        join, joining = ops.PACK, (kinds.PackOptions, tfl.PackOptionsT(2))
    nodes = [
        tfl.OperatorT(0, [0], [1], kinds.ShapeOptions, tfl.ShapeOptionsT(INT32)),
        tfl.OperatorT(1, [1, 2, 3, 3], [4], kinds.StridedSliceOptions, slicing),
        tfl.OperatorT(2, [4, 5], [6], *joining),
        tfl.OperatorT(3, [6, 7], [8], kinds.FillOptions, tfl.FillOptionsT()),
        tfl.OperatorT(4, [0, 9, 10, 11, 8], [12], kinds.RNNOptions, tfl.RNNOptionsT()),
    ]
    graph = tfl.SubGraphT(tensors, [0], [12], nodes)
    return file_of([graph], ops.SHAPE, ops.STRIDED_SLICE, join, ops.FILL, ops.RNN)


def reset(interpreter):
    try:
        interpreter.reset_all_variables()
    except RuntimeError as error:
        return "raises: tensor" + str(error).split("tensor")[1].split("tflite/")[0]
    return "works"


for name, pack in (("PACK", True), ("CONCATENATION", False)):
    interpreter = Interpreter(model_content=stateful(pack))
    interpreter.allocate_tensors()
    before = reset(interpreter)
    interpreter.set_tensor(0, np.ones((1, 3), np.float32))
    interpreter.invoke()
    assert (interpreter.get_tensor(12) == 4).all()
    after = reset(interpreter)
    print(f"{name}\n    before invoke: {before}\n    after invoke:  {after}")
    assert [before.startswith("raises: "), after.startswith("raises: ")] == [pack, pack]
EOF
