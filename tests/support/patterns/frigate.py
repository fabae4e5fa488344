"""frigate's detectors: a TPU's delegate if it loads, else the CPU with threads."""

import numpy as np

try:
    from tflite_runtime.interpreter import Interpreter, load_delegate
except ModuleNotFoundError:
    from tensorflow.lite.python.interpreter import Interpreter, load_delegate


class Detector:
    def __init__(self, path, device):
        try:
            delegate = load_delegate("libedgetpu.so.1.0", {"device": device})
            self.interpreter = Interpreter(model_path=path, experimental_delegates=[delegate])
            self.kind = "tpu"
        except (ValueError, OSError):
            self.interpreter = Interpreter(model_path=path, num_threads=3)
            self.kind = "cpu"
        self.interpreter.allocate_tensors()
        self.tensor_input_details = self.interpreter.get_input_details()
        self.tensor_output_details = self.interpreter.get_output_details()

    def detect_raw(self, tensor_input):
        self.interpreter.set_tensor(self.tensor_input_details[0]["index"], tensor_input)
        self.interpreter.invoke()
        return self.interpreter.tensor(self.tensor_output_details[0]["index"])()[0].copy()


detector = Detector("quantized.tflite", "usb")
image = np.random.default_rng(2).integers(0, 256, (1, 8, 8, 3), dtype=np.uint8)
result = [detector.kind, detector.detect_raw(image)]
