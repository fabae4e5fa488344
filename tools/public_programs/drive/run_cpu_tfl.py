from types import SimpleNamespace

import cv2
from helper import keep, model, photo, stub

stub("frigate", "frigate.detectors", "frigate.detectors.detection_api").DetectionApi = object
stub("frigate.detectors.detector_config").BaseDetectorConfig = object
stub("pydantic").Field = lambda **_: None
from cpu_tfl import CpuTfl

path = model("tensorflow-tflite-support/coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite")
detector = CpuTfl(SimpleNamespace(num_threads=2, model=SimpleNamespace(path=path)))
keep("detections", detector.detect_raw(cv2.resize(photo(), (300, 300))[None]))
keep("scores", detector.interpreter.get_tensor(detector.tensor_output_details[2]["index"]))
