import cv2
import detect
from helper import keep, model, photo
from tflite_runtime.interpreter import Interpreter

interpreter = Interpreter(model("tensorflow-tflite-support/coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite"))
interpreter.allocate_tensors()
image = photo()
scale = detect.set_input(interpreter, (320, 240), lambda size: cv2.resize(image, size))
interpreter.invoke()
found = detect.get_output(interpreter, 0.1, scale)
keep("classes", [each.id for each in found])
keep("scores", [each.score for each in found])
keep("boxes", [tuple(each.bbox) for each in found])
