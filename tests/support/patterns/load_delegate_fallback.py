"""A program that prefers a GPU delegate, by options as strings, and says which it got."""

import numpy as np
from ai_edge_litert.interpreter import Interpreter, load_delegate

delegates = []
for library in ("libnothing_delegate.so", "libedgetpu.so.1"):
    try:
        delegates.append(load_delegate(library, options={"device": "0", "verbosity": "1"}))
        break
    except (ValueError, OSError, RuntimeError):
        pass
interpreter = Interpreter(model_path="keypoints.tflite", experimental_delegates=delegates or None)
interpreter.allocate_tensors()
interpreter.set_tensor(0, np.ones((1, 42), np.float32))
interpreter.invoke()
result = [len(delegates), interpreter.get_tensor(interpreter.get_output_details()[0]["index"])]
