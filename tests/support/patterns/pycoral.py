"""pycoral's make_interpreter, and the common adapters on top of it."""

import numpy as np
import tflite_runtime.interpreter as tflite


def load_edgetpu_delegate(options=None):
    return tflite.load_delegate("libedgetpu.so.1", options or {})


def make_interpreter(model_path_or_content, device=None, delegate=None):
    if delegate:
        delegates = [delegate]
    else:
        delegates = [load_edgetpu_delegate({"device": device} if device else {})]
    if isinstance(model_path_or_content, bytes):
        return tflite.Interpreter(model_content=model_path_or_content, experimental_delegates=delegates)
    return tflite.Interpreter(model_path=model_path_or_content, experimental_delegates=delegates)


def input_tensor(interpreter):
    tensor_index = interpreter.get_input_details()[0]["index"]
    return interpreter.tensor(tensor_index)()[0]


def output_tensor(interpreter, i):
    return interpreter.tensor(interpreter.get_output_details()[i]["index"])()


def get_scores(interpreter):
    output_details = interpreter.get_output_details()[0]
    output_data = interpreter.tensor(output_details["index"])().flatten()
    scale, zero_point = output_details["quantization"]
    return scale * (output_data.astype(np.int64) - zero_point)


try:
    interpreter = make_interpreter("quantized.tflite")
except (ValueError, OSError):
    interpreter = tflite.Interpreter(model_path="quantized.tflite")
interpreter.allocate_tensors()
input_tensor(interpreter)[:, :] = np.random.default_rng(7).integers(0, 256, (8, 8, 3))
interpreter.invoke()
result = [get_scores(interpreter), output_tensor(interpreter, 0).copy()]
