import cv2
from helper import keep, model, photo
from imBroker.broker import tflBroker

cv2.imwrite("photo.png", photo())
broker = tflBroker(model("mlcommons-tiny/pretrainedResnet.tflite"), {i: f"class {i}" for i in range(10)})
keep("class", str(broker.predict_single_image("photo.png")))
keep("scores", broker.model.get_tensor(broker.output_details[0]["index"]))
