from helper import PROGRAM, keep, spoken, stub

stub("requests", "scipy", "scipy.io", "scipy.io.wavfile", "sklearn", "tqdm", "speexdsp_ns")
stub("sklearn.linear_model", "sklearn.pipeline", "sklearn.preprocessing")
from openwakeword.model import Model

MODELS = PROGRAM.parent / "wyoming-openwakeword" / "wyoming_openwakeword" / "models"
model = Model(
    wakeword_models=[str(MODELS / f"{name}_v0.1.tflite") for name in ("alexa", "hey_jarvis", "hey_mycroft")],
    inference_framework="tflite",
    melspec_model_path=str(MODELS / "melspectrogram.tflite"),
    embedding_model_path=str(MODELS / "embedding_model.tflite"),
)
clip = spoken(3)
scores = [model.predict(clip[start : start + 1280]) for start in range(0, len(clip) - 1280, 1280)]
for name in scores[0]:
    keep(name, [float(each[name]) for each in scores])
keep("features", model.preprocessor.get_features(16))
