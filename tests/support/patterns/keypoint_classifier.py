"""The MediaPipe hand gesture classifier: a list of coordinates, the index of the best class."""

import numpy as np
from tflite_runtime import interpreter as tflite


class KeyPointClassifier:
    def __init__(self, model_path="keypoints.tflite", num_threads=1):
        self.interpreter = tflite.Interpreter(model_path=model_path, num_threads=num_threads)
        self.interpreter.allocate_tensors()
        self.input_details = self.interpreter.get_input_details()
        self.output_details = self.interpreter.get_output_details()

    def __call__(self, landmark_list):
        self.interpreter.set_tensor(self.input_details[0]["index"], np.array([landmark_list], dtype=np.float32))
        self.interpreter.invoke()
        return np.argmax(np.squeeze(self.interpreter.get_tensor(self.output_details[0]["index"])))


classify = KeyPointClassifier()
result = [int(classify(list(row))) for row in np.random.default_rng(5).uniform(-1, 1, (10, 42))]
