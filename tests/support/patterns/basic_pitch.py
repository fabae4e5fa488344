"""basic-pitch: the signature's runner, called with windows by name."""

import numpy as np

try:
    import tflite_runtime.interpreter as tflite
except ImportError:
    tflite = None

interpreter = tflite.Interpreter("classifier.tflite")
assert interpreter.get_signature_list()["serving_default"]["inputs"] == ["image"]
model = interpreter.get_signature_runner()
windows = np.random.default_rng(6).standard_normal((3, 1, 8, 8, 3)).astype(np.float32)
result = np.concatenate([model(image=window)["probabilities"] for window in windows])
