from helper import RNG, keep, model, stub

stub("pyaudio", "sonopy")
from precise_lite_runner.runner import TFLiteRunner

runner = TFLiteRunner(model("MycroftAI-plugin-wake-word-precise-lite/hey_mycroft.tflite"))
shape = runner.input_details[0]["shape"]
keep("scores", runner.predict(RNG.standard_normal((5, *shape[1:])).astype("float32")))
