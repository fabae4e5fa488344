from helper import keep, model, photo
from phytec_yolov8n_tflite.utils import dequantize, load_interpreter, preprocess

path = model("mlcommons-tiny/vww_96_int8.tflite")
interpreter, given, made, size, quantization, dtype = load_interpreter(path, "/usr/lib/libvx_delegate.so")
tensor, _ = preprocess(photo(), size, dtype, *quantization)
interpreter.set_tensor(given["index"], tensor)
interpreter.invoke()
keep("scores", dequantize(interpreter.get_tensor(made[0]["index"]), *made[0]["quantization"]))
