"""Programs that try, and do something else on a RuntimeError."""

import numpy as np
from ai_edge_litert.interpreter import Interpreter

interpreter = Interpreter(model_path="waveform.tflite")
index = interpreter.get_input_details()[0]["index"]
result = []
try:
    interpreter.invoke()
except RuntimeError:
    result.append("not allocated")
try:
    interpreter.resize_tensor_input(index, [3, 4], strict=True)
except RuntimeError:
    result.append("cannot be resized")
interpreter.resize_tensor_input(index, [5])
try:
    interpreter.invoke()
except RuntimeError:
    interpreter.allocate_tensors()
    interpreter.set_tensor(index, np.ones(5, np.float32))
    interpreter.invoke()
    result.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
