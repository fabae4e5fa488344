from helper import RNG, keep, model, stub

stub("microwakeword", "microwakeword.feature_generation")
from inference import Model

for name in ("hey_jarvis", "okay_nabu", "vad"):
    wake_word = Model(model(f"esphome-micro-wake-word-models/{name}.tflite"))
    keep(name, wake_word.predict_spectrogram((RNG.random((150, 40)) * 670).astype("uint16")))
