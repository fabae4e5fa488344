import classify
import cv2
from helper import keep, model, photo
from tflite_runtime.interpreter import Interpreter

interpreter = Interpreter(model("google-coral-test_data/mobilenet_v1_0.25_128_quant.tflite"))
interpreter.allocate_tensors()
classify.set_input(interpreter, cv2.resize(photo(), classify.input_size(interpreter)))
interpreter.invoke()
found = classify.get_output(interpreter, 5)
keep("classes", [each.id for each in found])
keep("scores", [each.score for each in found])
