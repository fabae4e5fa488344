"""MoveNet multipose: every frame may have another size."""

import numpy as np
from ai_edge_litert.interpreter import Interpreter

interpreter = Interpreter(model_path="any_image.tflite")
rng = np.random.default_rng(8)
result = []
for size in ((4, 6), (8, 8), (4, 6), (2, 12)):
    frame = rng.integers(0, 256, (1, *size, 3)).astype(np.uint8)
    input_details = interpreter.get_input_details()
    if bool(input_details[0]["shape_signature"][1] == -1):
        interpreter.resize_tensor_input(input_details[0]["index"], frame.shape, strict=True)
    interpreter.allocate_tensors()
    interpreter.set_tensor(input_details[0]["index"], frame)
    interpreter.invoke()
    result.append(np.squeeze(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])))
