"""Quantized in and out by the parameters of the dictionaries, as the LiteRT guides do it."""

import numpy as np
from ai_edge_litert.interpreter import Interpreter

interpreter = Interpreter(model_content=open("quantized.tflite", "rb").read())  # noqa: PTH123, SIM115
interpreter.allocate_tensors()
(x,), (y,) = interpreter.get_input_details(), interpreter.get_output_details()
scale, zero_point = x["quantization"]
image = np.random.default_rng(12).uniform(-1, 1, x["shape"]).astype(np.float32)
quantized = np.clip(np.round(image / scale + zero_point), 0, 255).astype(x["dtype"])
interpreter.set_tensor(x["index"], quantized)
interpreter.invoke()
parameters = y["quantization_parameters"]
scores = interpreter.get_tensor(y["index"]).astype(np.float32)
result = (scores - parameters["zero_points"]) * parameters["scales"]
