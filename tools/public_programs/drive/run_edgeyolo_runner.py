from edgeyolo_runner.models.tflite_detector import TFLiteDetector
from helper import RNG, keep, model

detector = TFLiteDetector(model("google-coral-test_data/movenet_single_pose_lightning_ptq.tflite"))
keep("size", detector.input_size)
(details,), interpreter = detector.input_details, detector.interpreter
interpreter.set_tensor(details["index"], RNG.integers(0, 256, details["shape"]).astype(details["dtype"]))
interpreter.invoke()
keep("points", interpreter.get_tensor(detector.output_details[0]["index"]))
