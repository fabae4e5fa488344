from helper import face, keep, model
from tf_bodypix.model import load_tflite_model

FIXED = "hugocornellier-face_detection_tflite/selfie_segmenter.tflite"
OPEN = "tensorflow-tflite-support/dilated_conv.tflite"
for name, sizes in ((FIXED, [256]), (OPEN, [24, 48])):
    predict = load_tflite_model(model(name))
    for size in sizes:
        for output, value in predict(face(size).astype("float32")[None] / 255).items():
            keep(f"{output} {size}", value)
