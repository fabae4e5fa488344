from helper import keep, spoken, stub

stub("requests", "scipy", "scipy.io", "scipy.io.wavfile", "sklearn", "tqdm", "speexdsp_ns")
stub("sklearn.linear_model", "sklearn.pipeline", "sklearn.preprocessing")
from openwakeword.model import Model

model = Model(inference_framework="tflite")
clip = spoken(3)
scores = [model.predict(clip[start : start + 1280]) for start in range(0, len(clip) - 1280, 1280)]
for name in scores[0]:
    keep(name, [float(each[name]) for each in scores])
