"""A program that runs a model, ``MODEL INPUTS OUTPUTS``: CEIL is wrong, FLOOR is refused, and SQRT ends the process."""

import os
import signal
import sys
from pathlib import Path

import numpy as np

from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import read

model, inputs, outputs = sys.argv[1:]
ops = {node.op.name for graph in read(Path(model).read_bytes()).subgraphs for node in graph.nodes}
if "FLOOR" in ops:
    sys.exit("no kernel of FLOOR")
if "SQRT" in ops:
    os.kill(os.getpid(), signal.SIGABRT)
interpreter = Interpreter(model)
given = np.load(inputs)
for detail, name in zip(interpreter.get_input_details(), given.files, strict=True):
    interpreter.resize_tensor_input(detail["index"], given[name].shape)
interpreter.allocate_tensors()
for detail, name in zip(interpreter.get_input_details(), given.files, strict=True):
    interpreter.set_tensor(detail["index"], given[name])
interpreter.invoke()
found = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
np.savez(outputs, *(value + 1 if "CEIL" in ops else value for value in found))
