"""Programs that try, and do something else on a ValueError."""

import numpy as np
from tflite_runtime.interpreter import Interpreter

result = []
try:
    interpreter = Interpreter(model_path="no_such_model.tflite")
except ValueError:
    interpreter = Interpreter(model_path="keypoints.tflite")
    result.append("not there")
interpreter.allocate_tensors()
index = interpreter.get_input_details()[0]["index"]
values = np.linspace(-1, 1, 42)
try:
    interpreter.set_tensor(index, values)
except ValueError:
    interpreter.set_tensor(index, values.astype(np.float32)[None])
    result.append("converted")
try:
    interpreter.get_signature_runner("serving_default")
except ValueError:
    result.append("no signature")
interpreter.invoke()
result.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
