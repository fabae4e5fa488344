"""DTLN in real time: a state that goes out of one invoke into the next."""

import ai_edge_litert.interpreter as tflite
import numpy as np

interpreter = tflite.Interpreter(model_path="denoiser.tflite")
interpreter.allocate_tensors()
input_details, output_details = interpreter.get_input_details(), interpreter.get_output_details()
states = np.zeros(input_details[1]["shape"]).astype("float32")
audio = np.random.default_rng(3).standard_normal((20, 16)).astype("float32")
frames = []
for block in audio:
    interpreter.set_tensor(input_details[0]["index"], np.reshape(block, (1, 1, -1)))
    interpreter.set_tensor(input_details[1]["index"], states)
    interpreter.invoke()
    frames.append(np.squeeze(interpreter.get_tensor(output_details[0]["index"])))
    states = interpreter.get_tensor(output_details[1]["index"])
result = frames
