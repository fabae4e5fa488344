import json
import runpy
import sys
from pathlib import Path

import cv2
from helper import PROGRAM, keep, model, photo, stub

stub("utils").Color = {"LIME": (0, 255, 0)}
sys.modules["utils"].draw_text_with_background = lambda image, text, place: keep(f"{text} {place}", True)


class Camera:
    frames = 3

    def __init__(self, *_):
        pass

    def isOpened(self):  # noqa: N802  # OpenCV's name
        return True

    def get(self, _):
        return 320

    def read(self):
        return True, photo()

    def release(self):
        pass


def show(_, image):
    keep(f"frame {Camera.frames}", image)
    Camera.frames -= 1


cv2.VideoCapture = Camera
cv2.imshow = show
cv2.waitKey = lambda _: ord("q") if not Camera.frames else 0
cv2.destroyAllWindows = lambda: None
Path("labels.json").write_text(json.dumps({str(i): f"class {i}" for i in range(91)}))
path = model("tensorflow-tflite-support/coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite")
sys.argv = ["tflite_inference.py", "-m", path, "-l", "labels.json"]
runpy.run_path(str(PROGRAM), run_name="__main__")
