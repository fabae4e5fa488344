"""microWakeWord: a streaming model whose variables are reset between recordings."""

import numpy as np
from ai_edge_litert.interpreter import Interpreter


class Model:
    def __init__(self, path):
        self.interpreter = Interpreter(model_path=path)
        self.interpreter.allocate_tensors()
        self.input_details, self.output_details = (
            self.interpreter.get_input_details(),
            self.interpreter.get_output_details(),
        )
        for i in range(len(self.input_details)):
            self.interpreter.set_tensor(
                self.input_details[i]["index"],
                np.zeros(self.input_details[i]["shape"], dtype=self.input_details[i]["dtype"]),
            )

    def predict(self, frames):
        scores = []
        for frame in frames:
            self.interpreter.set_tensor(
                self.input_details[0]["index"], frame[None].astype(self.input_details[0]["dtype"])
            )
            self.interpreter.invoke()
            scores.append(self.interpreter.get_tensor(self.output_details[0]["index"])[0][0])
        return scores


frames = np.random.default_rng(4).standard_normal((12, 8))
result = Model("wake_word.tflite").predict(frames)
