"""The Raspberry Pi SSD examples: outputs by their order, a threshold, one tensor set by index."""

import numpy as np
from tflite_runtime.interpreter import Interpreter


def get_output_tensor(interpreter, index):
    output_details = interpreter.get_output_details()[index]
    return np.squeeze(interpreter.get_tensor(output_details["index"]))


def set_input_tensors(interpreter):
    rng = np.random.default_rng(1)
    for details in interpreter.get_input_details():
        values = rng.uniform(0, 1, details["shape"]).astype(details["dtype"])
        interpreter.set_tensor(details["index"], values)


def detect_objects(interpreter, threshold):
    set_input_tensors(interpreter)
    interpreter.invoke()
    boxes, classes, scores = (get_output_tensor(interpreter, i) for i in range(3))
    count = int(get_output_tensor(interpreter, 3))
    return [
        {"bounding_box": boxes[i], "class_id": classes[i], "score": scores[i]}
        for i in range(count)
        if scores[i] >= threshold
    ]


interpreter = Interpreter("detector.tflite")
interpreter.allocate_tensors()
result = detect_objects(interpreter, 0.4)
