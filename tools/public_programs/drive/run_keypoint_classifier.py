from helper import RNG, keep, model
from keypoint_classifier import KeyPointClassifier

path = model("Kazuhito00-hand-gesture-recognition-using-mediapipe/keypoint_classifier.tflite")
classifier = KeyPointClassifier(path)
keep("signs", [int(classifier(RNG.standard_normal(42))) for _ in range(20)])
