"""TensorFlow's label_image: a delegate by an option, a float or quantized model, the best scores."""

import numpy as np
import tflite_runtime.interpreter as tflite

ext_delegate, ext_delegate_options = None, {}

interpreter = tflite.Interpreter(model_path="classifier.tflite", experimental_delegates=ext_delegate, num_threads=1)
interpreter.allocate_tensors()
input_details = interpreter.get_input_details()
output_details = interpreter.get_output_details()
floating_model = input_details[0]["dtype"] == np.float32
height, width = input_details[0]["shape"][1], input_details[0]["shape"][2]
input_data = np.expand_dims(np.random.default_rng(0).integers(0, 256, (height, width, 3)), axis=0)
if floating_model:
    input_data = (np.float32(input_data) - 127.5) / 127.5
interpreter.set_tensor(input_details[0]["index"], input_data)
interpreter.invoke()
results = np.squeeze(interpreter.get_tensor(output_details[0]["index"]))
result = [(int(i), float(results[i])) for i in results.argsort()[-5:][::-1]]
