"""YAMNet: a strict resize to the waveform's length, outputs by index."""

import numpy as np
from ai_edge_litert.interpreter import Interpreter

interpreter = Interpreter("waveform.tflite")
waveform_input_index = interpreter.get_input_details()[0]["index"]
embeddings_index, mean_index = (details["index"] for details in interpreter.get_output_details())
waveform = np.linspace(-2, 2, 156, dtype=np.float32)
interpreter.resize_tensor_input(waveform_input_index, [len(waveform)], strict=True)
interpreter.allocate_tensors()
interpreter.set_tensor(waveform_input_index, waveform)
interpreter.invoke()
result = [interpreter.get_tensor(embeddings_index), interpreter.get_tensor(mean_index)]
