from helper import keep, model, photo, stub

stub("pyttsx3")
from riconoscitore_oggetti.classificatore import Classificatore

labels = [f"class {i}" for i in range(1001)]
classifier = Classificatore(model("tensorflow-tflite-support/mobilenet_v1_0.25_224_1_default_1.tflite"), labels)
for frame in range(3):
    label, confidence, scores = classifier.predici(photo())
    keep(f"label {frame}", label)
    keep(f"scores {frame}", scores)
name, confidence = classifier.predizione_stabile()
keep("label", name)
keep("confidence", confidence)
