from helper import RNG, keep, model, stub

stub("precise_lite.threshold_decoder", "precise_lite.model", "precise_lite.util", "precise_lite.vectorization")
stub("precise_lite.params")
from precise_lite.network_runner import TFLiteRunner

runner = TFLiteRunner(model("MycroftAI-plugin-wake-word-precise-lite/hey_mycroft.tflite"))
shape = runner.input_details[0]["shape"]
keep("scores", runner.predict(RNG.standard_normal((5, *shape[1:]))))
keep("score", runner.run(RNG.standard_normal(shape[1:])))
