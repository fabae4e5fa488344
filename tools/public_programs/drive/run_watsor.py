import shutil
from pathlib import Path
from types import SimpleNamespace

from helper import keep, model, photo, stub

stub("watsor.stream.share")
from watsor.detection.tensorflow_lite_cpu import TensorFlowLiteObjectDetector

Path("model").mkdir(exist_ok=True)
shutil.copy(model("tensorflow-tflite-support/coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite"), "model/cpu.tflite")
image, found = photo(), [SimpleNamespace(bounding_box=SimpleNamespace()) for _ in range(10)]
TensorFlowLiteObjectDetector("model").detect(image.shape, image, found)
keep("labels", [each.label for each in found])
keep("confidences", [each.confidence for each in found])
boxes = [each.bounding_box for each in found]
keep("boxes", [(box.x_min, box.y_min, box.x_max, box.y_max) for box in boxes])
