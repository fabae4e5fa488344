from pathlib import Path
from types import SimpleNamespace

from helper import RNG, keep, model, stub

stub("data").Category = lambda label, score: (label, score)
from classifier import Classifier

Path("labels.txt").write_text("\n".join(f"pose {i}" for i in range(4)))
path = model("Kazuhito00-hand-gesture-recognition-using-mediapipe/keypoint_classifier.tflite")
classifier = Classifier(path, "labels.txt")


def keypoint():
    y, x, score = RNG.random(3)
    return SimpleNamespace(coordinate=SimpleNamespace(x=x, y=y), score=score)


for person in range(3):
    found = classifier.classify_pose(SimpleNamespace(keypoints=[keypoint() for _ in range(14)]))
    keep(f"labels {person}", [label for label, _ in found])
    keep(f"scores {person}", [score for _, score in found])
