import sys
import urllib.request
from types import SimpleNamespace

import cv2
import numpy as np
from helper import keep, model, photo, stub

urllib.request.urlretrieve = lambda *_: None
box = SimpleNamespace(cls=np.array([0]), xyxy=np.array([[20, 20, 220, 220]]))
faces = lambda path: [SimpleNamespace(boxes=box)]  # noqa: E731
faces.names = {0: "face"}
stub("ultralytics", "pandas", "matplotlib", "matplotlib.pyplot").YOLO = None
sys.modules["ultralytics"].YOLO = lambda path: faces
from equiface.verification import verify

for name in ("first.png", "second.png"):
    cv2.imwrite(name, photo())
path = model("tensorflow-tflite-support/mobilenet_v1_0.25_224_1_default_1.tflite")
same, similarity = verify(path, "first.png", "second.png", image_size=(224, 224))
keep("same", bool(same))
keep("similarity", similarity)
